//! Services: who may use which VNIs and traffic classes, and how much of the NIC.

mod builder;
mod change;
mod create;
mod destroy;
#[cfg(feature = "serde")]
mod forms;
mod invalid;
#[cfg(feature = "serde")]
mod json;
mod query;
mod read;
mod settings;
mod spec;
pub(crate) mod stock;
mod table;

use crate::Device;

pub use builder::ServiceSpecBuilder;
pub use destroy::ScopedService;
pub use invalid::{Contradiction, InvalidSpec, Restriction};
pub use query::Usage;
pub use read::Service;
pub use spec::ServiceSpec;
pub use table::{ServiceSetting, SettingChange, SettingForm, SettingValue};

/// The services of a NIC.
///
/// Changing a service needs CAP_SYS_ADMIN in the initial user namespace and a physical function
/// (otherwise EPERM); reading needs no privilege. A service belongs to the NIC: it outlives the
/// process, until it is destroyed or the driver is unloaded.
///
/// ```
/// # use cxi::Device;
/// # use cxi_mock::{Nic, NicConfig};
/// # let nic = Nic::new(NicConfig::new())?;
/// # let device = Device::cxi0(nic.root()?);
/// use cxi::{Member, ServiceSpec, Vni};
///
/// let services = device.services();
/// let spec = ServiceSpec::builder().member(Member::Uid(1000)).vni(Vni::new(1024)?).build()?;
/// let id = services.create(&spec)?;
/// assert!(services.get(id)?.is_enabled());
/// services.destroy(id)?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Services {
    device: Device,
}

impl Device {
    /// The services of the NIC.
    #[must_use]
    pub fn services(&self) -> Services {
        Services { device: self.clone() }
    }
}

impl Services {
    /// The NIC.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }
}
