//! A service that is destroyed with its handle.

use super::Services;
use crate::ServiceId;
use crate::error::NotClosed;

/// A service that is destroyed when this value is dropped, unless it is [kept](Self::keep).
///
/// Dropping tries once and ignores errors; [`destroy`](Self::destroy) reports them.
///
/// ```
/// # use cxi::{Device, ServiceSpec, Vni};
/// # use cxi_mock::{Nic, NicConfig};
/// # let nic = Nic::new(NicConfig::new())?;
/// # let services = Device::from(nic.root()?).services();
/// # let spec = ServiceSpec::builder().vni(Vni::new(1024)?).build()?;
/// let service = services.create_scoped(&spec)?;
/// let id = service.id();
/// drop(service);
/// assert!(services.get(id).is_err());
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "the service is destroyed when this is dropped"]
pub struct ScopedService {
    services: Services,
    id: ServiceId,
    /// It was kept, or is already destroyed.
    kept: bool,
}

impl ScopedService {
    pub(super) fn new(services: Services, id: ServiceId) -> Self {
        Self {
            services,
            id,
            kept: false,
        }
    }

    /// The service.
    #[must_use]
    pub fn id(&self) -> ServiceId {
        self.id
    }

    /// The services of the NIC.
    #[must_use]
    pub fn services(&self) -> &Services {
        &self.services
    }

    /// Keeps the service.
    #[allow(clippy::must_use_candidate, reason = "the id may be known already")]
    pub fn keep(mut self) -> ServiceId {
        self.kept = true;
        self.id
    }

    /// Destroys the service now.
    ///
    /// # Errors
    ///
    /// As [`Services::destroy`]; the error contains the handle.
    pub fn destroy(self) -> Result<(), NotClosed<Self>> {
        match self.services.destroy(self.id) {
            Ok(()) => {
                self.keep();
                Ok(())
            }
            Err(error) => Err(NotClosed {
                handle: self,
                error,
            }),
        }
    }
}

impl Drop for ScopedService {
    fn drop(&mut self) {
        if !self.kept {
            // Errors cannot be reported from here; use `destroy` to see them.
            let _ = self.services.destroy(self.id);
        }
    }
}
