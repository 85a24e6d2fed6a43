//! Where a call is tried: a mock NIC, an open file that misbehaves from a certain moment on, and
//! what must be true afterwards.

use std::cell::RefCell;
use std::sync::Arc;

use cxi::{
    Device, DeviceId, Limit, Limits, Lni, Member, Resource, ResourceMap, ServiceId, ServiceSpec,
    ServiceSpecBuilder, Vni, VniRange,
};
use cxi_ioctl::{DriverRelease, Errno, Exchange, Fault, Faulty, Opcode, Record};
use cxi_mock::{InProcess, Nic, NicConfig, NicState};

use crate::calls::{self, Call};
use crate::twist::{Twist, Twisted};

/// What goes wrong from the moment on at which a call is made.
#[derive(Clone, Debug)]
pub(crate) enum Plan {
    /// Nothing.
    Fine,
    /// Commands fail.
    Fail(Fault),
    /// The answers to a command differ.
    Twist(Opcode, Twist),
    /// Windows of device memory cannot be mapped.
    Windows(Errno),
}

/// The value of a call, as text, and the services that it is to have made.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Value {
    pub(crate) text: String,
    pub(crate) made: Vec<ServiceId>,
}

/// A value without a service.
pub(crate) fn shown(value: impl std::fmt::Debug) -> Value {
    Value {
        text: format!("{value:?}"),
        made: Vec::new(),
    }
}

/// What came of a call.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) result: cxi::Result<Value>,
    /// The commands that the call and the end of its handles sent.
    pub(crate) log: Vec<Exchange>,
    /// Services that exist now, and did not before.
    pub(crate) made: Vec<ServiceId>,
    /// Whether the NIC is as before while the file is still open, new services aside.
    pub(crate) clean: bool,
}

type FaultyFile = Faulty<Arc<Twisted<InProcess>>>;

/// A NIC, and an open file of it that goes wrong when it is armed.
pub(crate) struct Stage {
    pub(crate) device: Device,
    /// Another open file, with which nothing is wrong.
    pub(crate) upkeep: Device,
    fault: Arc<FaultyFile>,
    record: Arc<Record<Arc<FaultyFile>>>,
    plan: Plan,
    made: RefCell<Vec<ServiceId>>,
}

/// Whether every value, length and release is tried, and not only those that are apart.
pub(crate) fn all_of_it() -> bool {
    std::env::var_os("CXI_TEST_FULL").is_some_and(|value| !value.is_empty())
}

/// Releases that differ in what calls send, or all of them.
pub(crate) fn releases() -> &'static [DriverRelease] {
    if all_of_it() {
        &DriverRelease::ALL
    } else {
        &[
            DriverRelease::Shs13_0,
            DriverRelease::Shs14_0_1,
            DriverRelease::Main,
        ]
    }
}

/// Each call on each release that can do it, with what comes of it when nothing goes wrong.
pub(crate) fn each_call(mut act: impl FnMut(DriverRelease, &Arc<Nic>, &Call, Run)) {
    for release in releases() {
        let nic = nic(*release);
        for call in calls::all() {
            if let Some(fine) = run(&nic, call, Plan::Fine) {
                act(*release, &nic, call, fine);
            }
        }
    }
}

pub(crate) const DEVICE: DeviceId = DeviceId::new(0);
pub(crate) const UID: u32 = 0;

pub(crate) fn nic(release: DriverRelease) -> Arc<Nic> {
    Nic::new(NicConfig::new().release(release)).unwrap()
}

pub(crate) fn vni(number: u16) -> Vni {
    Vni::new(number).unwrap()
}

pub(crate) fn block() -> VniRange {
    VniRange::new(vni(2048), 16).unwrap()
}

/// Some of everything but TLEs, which come in few pools.
pub(crate) fn some_of_all() -> Limits {
    ResourceMap::from_fn(|resource| match resource {
        Resource::Tles => Limit::NONE,
        _ => Limit::at_most(64),
    })
}

pub(crate) fn spec() -> ServiceSpecBuilder {
    ServiceSpec::builder()
        .member(Member::Uid(UID))
        .limits(some_of_all())
}

impl Stage {
    fn new(nic: &Arc<Nic>, plan: Plan) -> Self {
        let open = || nic.root().unwrap();
        let fault = Arc::new(Faulty::new(Arc::new(Twisted::new(open()))));
        let record = Arc::new(Record::new(Arc::clone(&fault)));
        Self {
            device: Device::with_transport(DEVICE, Arc::clone(&record)),
            upkeep: Device::with_transport(DEVICE, Arc::new(open())),
            fault,
            record,
            plan,
            made: RefCell::default(),
        }
    }

    /// From here on it goes wrong.
    pub(crate) fn arm(&self) {
        let _before = self.record.take();
        let twisted = self.fault.inner();
        match &self.plan {
            Plan::Fine => {}
            Plan::Fail(injection) => self.fault.inject(injection.clone()),
            Plan::Twist(opcode, twist) => twisted.plan(*opcode, twist.clone()),
            Plan::Windows(errno) => twisted.refuse_windows(*errno),
        }
    }

    /// The device, which goes wrong from here on.
    pub(crate) fn armed(&self) -> &Device {
        self.arm();
        &self.device
    }

    /// A service that was there before.
    pub(crate) fn service(&self, spec: ServiceSpecBuilder) -> ServiceId {
        let spec = spec.build().unwrap();
        let id = self.upkeep.services().create(&spec).unwrap();
        self.made.borrow_mut().push(id);
        id
    }

    /// A service with a VNI list, as most calls need it.
    pub(crate) fn listed(&self) -> ServiceId {
        self.service(spec().vni(vni(1024)))
    }

    /// From here on a service is not the call's any more.
    pub(crate) fn keep(&self, id: ServiceId) {
        self.made.borrow_mut().push(id);
    }

    /// A disabled service with a range.
    pub(crate) fn ranged(&self) -> ServiceId {
        self.service(spec().vni_range(block()).enabled(false))
    }

    /// A disabled service that waits for its range.
    pub(crate) fn waiting(&self) -> ServiceId {
        self.service(spec().unrestricted_vnis().enabled(false))
    }

    /// An LNI of such a service.
    pub(crate) fn lni(&self) -> Lni {
        self.device.alloc_lni(self.listed()).unwrap()
    }

    fn services(&self) -> Vec<ServiceId> {
        let services = self.upkeep.services().list().unwrap();
        let ids = services.iter().map(cxi::Service::id);
        ids.filter(|id| !id.is_default()).collect()
    }
}

/// Makes a call on a NIC, and gives the NIC back as it was. `None` if the release does not have
/// what the call needs.
pub(crate) fn run(nic: &Arc<Nic>, call: &Call, plan: Plan) -> Option<Run> {
    let before = nic.state();
    let hazards = nic.hazards();
    let keeps_numbers = !matches!(plan, Plan::Twist(..));
    let stage = Stage::new(nic, plan);
    if !(call.possible)(nic.config().release) {
        return None;
    }
    let result = (call.act)(&stage);
    let mut log = stage.record.take().exchanges;
    log.retain(|sent| sent.opcode().is_some());

    let prepared = stage.made.take();
    let there = stage.services();
    let made: Vec<ServiceId> = there
        .iter()
        .copied()
        .filter(|id| !prepared.contains(id))
        .collect();
    let clean = no_objects(&nic.state());
    let Stage {
        device,
        upkeep,
        fault,
        record,
        ..
    } = stage;
    // Closes the file: what handles could not give back is free then.
    drop((device, fault, record));
    for id in there {
        upkeep.services().destroy(id).unwrap();
    }
    drop(upkeep);
    while nic.tick() {}
    assert_eq!(
        nic.state(),
        before,
        "{}: the NIC is not as it was",
        call.name
    );
    if keeps_numbers {
        assert_eq!(nic.hazards(), hazards, "{}: a hazard", call.name);
    }
    Some(Run {
        result,
        log,
        made,
        clean,
    })
}

fn no_objects(state: &NicState) -> bool {
    state.stats == cxi_mock::ObjectCounts::default() && state.rgids.is_empty()
}
