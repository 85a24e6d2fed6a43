//! The environment for a call of the library: a mock NIC, an open file that misbehaves from a certain
//! moment on, and another file that never does.
#![allow(missing_docs, clippy::missing_panics_doc, reason = "the calls are its only users")]

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cxi::{
    Device, DeviceId, Limit, Limits, Lni, Member, Resource, ResourceMap, ServiceId, ServiceSpec,
    ServiceSpecBuilder, Services, Vni, VniRange,
};
use cxi_ioctl::Transport;
use cxi_mock::Nic;

/// The value of a call, as text, and the services that it should have created.
#[derive(Debug, PartialEq, Eq)]
pub struct Value {
    pub text: String,
    pub made: Vec<ServiceId>,
}

/// A value without a service.
pub fn shown(value: impl fmt::Debug) -> Value {
    Value { text: format!("{value:?}"), made: Vec::new() }
}

/// A NIC, and an open file of it that misbehaves once it is armed.
pub struct Stage {
    pub device: Device,
    /// Another open file, which works.
    pub upkeep: Device,
    arm: Box<dyn Fn()>,
    made: RefCell<Vec<ServiceId>>,
}

impl fmt::Debug for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stage").finish_non_exhaustive()
    }
}

pub const DEVICE: DeviceId = DeviceId::new(0);
pub const UID: u32 = 0;
const IDLE: Duration = Duration::from_secs(10);

pub fn vni(number: u16) -> Vni {
    Vni::new(number).unwrap()
}

pub fn block() -> VniRange {
    VniRange::new(vni(2048), 16).unwrap()
}

/// Some of each resource except TLEs, for which there are few pools.
pub fn some_of_all() -> Limits {
    ResourceMap::from_fn(|resource| match resource {
        Resource::Tles => Limit::NONE,
        _ => Limit::at_most(64),
    })
}

pub fn spec() -> ServiceSpecBuilder {
    ServiceSpec::builder().member(Member::Uid(UID)).limits(some_of_all())
}

impl Stage {
    /// A stage with an open file of a mock that goes wrong once `arm` was called.
    pub fn new(nic: &Arc<Nic>, file: Arc<dyn Transport>, arm: impl Fn() + 'static) -> Self {
        let upkeep = Device::with_transport(DEVICE, Arc::new(nic.root().unwrap()));
        Self::on(Device::with_transport(DEVICE, file), upkeep, arm)
    }

    /// A stage with two open files, of which the first goes wrong once `arm` was called.
    pub fn on(device: Device, upkeep: Device, arm: impl Fn() + 'static) -> Self {
        Self { device, upkeep, arm: Box::new(arm), made: RefCell::default() }
    }

    /// Makes the file misbehave from now on.
    pub fn arm(&self) {
        (self.arm)();
    }

    /// The device, which misbehaves from now on.
    pub fn armed(&self) -> &Device {
        self.arm();
        &self.device
    }

    /// Its services, which misbehave from now on.
    pub fn services(&self) -> Services {
        self.armed().services()
    }

    /// A service that existed before the call.
    pub fn service(&self, spec: ServiceSpecBuilder) -> ServiceId {
        let spec = spec.build().unwrap();
        let id = self.upkeep.services().create(&spec).unwrap();
        self.made.borrow_mut().push(id);
        id
    }

    /// A service with a VNI list, as most calls need it.
    pub fn listed(&self) -> ServiceId {
        self.service(spec().vni(vni(1024)))
    }

    /// From now on, a service no longer belongs to the call.
    pub fn keep(&self, id: ServiceId) {
        self.made.borrow_mut().push(id);
    }

    /// A disabled service with a range.
    pub fn ranged(&self) -> ServiceId {
        self.service(spec().vni_range(block()).enabled(false))
    }

    /// A disabled service that waits for its range.
    pub fn waiting(&self) -> ServiceId {
        self.service(spec().unrestricted_vnis().enabled(false))
    }

    /// An LNI of such a service.
    pub fn lni(&self) -> Lni {
        self.device.alloc_lni(self.listed()).unwrap()
    }

    /// The services that exist, without the default one.
    fn existing(&self) -> Vec<ServiceId> {
        let services = self.upkeep.services().list().unwrap();
        let ids = services.iter().map(cxi::Service::id);
        ids.filter(|id| !id.is_default()).collect()
    }

    /// The services that exist and belong to the call.
    pub fn made(&self) -> Vec<ServiceId> {
        let prepared = self.made.borrow();
        let mut services = self.existing();
        services.retain(|id| !prepared.contains(id));
        services
    }

    /// Closes the file, which frees what handles could not, and destroys all services.
    pub fn end(self) {
        let services = self.existing();
        drop((self.device, self.arm));
        for id in services {
            // A served file is closed asynchronously.
            self.upkeep.services().destroy_when_idle(id, IDLE).unwrap();
        }
    }
}
