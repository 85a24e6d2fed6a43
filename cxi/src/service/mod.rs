//! Services: who may use which VNIs and traffic classes, and how much of the NIC.

mod builder;
mod change;
mod conflict;
mod create;
mod destroy;
#[cfg(feature = "serde")]
mod forms;
#[cfg(feature = "serde")]
mod json;
mod netns;
mod presence;
mod read;
mod release;
mod scoped;
mod settings;
mod shortage;
mod spec;
mod usage;
mod vni_range;

use crate::Device;

pub use builder::ServiceSpecBuilder;
pub use read::{Service, ServiceBuffer};
pub use scoped::ScopedService;
pub use spec::{InvalidSpec, ServiceSpec};
pub use usage::Usage;

/// The services of a NIC.
///
/// Changing one takes CAP_SYS_ADMIN in the initial user namespace, on a physical function (else
/// EPERM); reading is open to everybody. A service belongs to the NIC: it stays when the process
/// ends, until it is destroyed or the driver is unloaded.
///
/// ```
/// # use cxi::{Device, DeviceId};
/// # use cxi_mock::{Credentials, Nic, NicConfig};
/// # let nic = Nic::new(NicConfig::new())?;
/// # let file = nic.open()?.transport(Credentials::root());
/// # let device = Device::with_transport(DeviceId::new(0), file);
/// use cxi::{Member, ServiceSpec, Vni};
///
/// let services = device.services();
/// let spec = ServiceSpec::builder()
///     .member(Member::Uid(1000))
///     .vni(Vni::new(1024)?)
///     .build()?;
/// let id = services.create(&spec)?;
/// assert!(services.get(id)?.is_enabled());
/// services.destroy(id)?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Services {
    device: Device,
}

impl Services {
    pub(crate) fn new(device: Device) -> Self {
        Self { device }
    }

    /// The NIC.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }
}

const _: () = {
    const fn send_sync<T: Send + Sync + 'static>() {}
    send_sync::<Services>();
    send_sync::<ServiceSpec>();
    send_sync::<Service>();
    send_sync::<ScopedService>();
};
