//! A service as it is asked for: its specification and what the driver takes one by one.

use cxi::{Device, LnisPerRgid, ServiceId, ServiceSpec};

#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) spec: ServiceSpec,
    pub(crate) lnis_per_rgid: Option<LnisPerRgid>,
    pub(crate) exclusive_cp: bool,
}

impl Wanted {
    /// Creates it on one NIC. The id is there too if only what comes after the creation fails.
    pub(crate) fn create(&self, device: &Device) -> Result<ServiceId, Unfinished> {
        let services = device.services();
        let id = services
            .create(&self.spec)
            .map_err(|error| Unfinished { made: None, error })?;
        self.complete(device, id).map_err(|error| Unfinished {
            made: Some(id),
            error,
        })?;
        Ok(id)
    }

    fn complete(&self, device: &Device, id: ServiceId) -> cxi::Result<()> {
        let services = device.services();
        if let Some(count) = self.lnis_per_rgid {
            services.set_lnis_per_rgid(id, count)?;
        }
        if self.exclusive_cp {
            // The driver takes it only while the service is disabled.
            services.set_enabled(id, false)?;
            services.set_exclusive_cp(id, true)?;
            services.set_enabled(id, self.spec.is_enabled())?;
        }
        Ok(())
    }
}

/// A service that could not be made, or only in part.
pub(crate) struct Unfinished {
    pub(crate) made: Option<ServiceId>,
    pub(crate) error: cxi::Error,
}
