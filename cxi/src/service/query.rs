//! Reading services and what they have in use.

use std::fmt;

use cxi_ioctl::abi::service::{
    RsrcUse, SvcGetCmd, SvcListGetCmd, SvcRsrcGetCmd, SvcRsrcListGetCmd,
};
use cxi_ioctl::{Command, Errno, ListCommand, fetch_list};

use super::read::numbered;
use super::{Service, Services};
use crate::error::{Error, ErrorKind, Result};
use crate::explain::Attempt;
use crate::{Resource, ResourceMap, ServiceId};

/// The driver's value for "not applicable".
const NOT_APPLICABLE: u16 = 0xFFFF;

/// Resources that a service has in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Usage {
    /// The service.
    pub service: ServiceId,
    /// Number of each resource; for LEs, on the processing element with most in use.
    ///
    /// `None` if the driver does not report it: drivers newer than SHS 14.0, for LEs and TLEs of a
    /// service without its own pool. Older drivers show 0, or the use of the default pool.
    #[cfg_attr(feature = "serde", serde(rename = "in_use"))]
    pub reported: ResourceMap<Option<u16>>,
    /// TLE pool of the service; 0 is the default service's, and also means none.
    pub tle_pool: u32,
}

impl Usage {
    /// Returns the number of a resource that is in use; 0 if the driver [reports](Self::reported)
    /// nothing.
    #[must_use]
    pub fn in_use(&self, resource: Resource) -> u16 {
        self.reported[resource].unwrap_or_default()
    }

    fn from_kernel(service: ServiceId, raw: &RsrcUse) -> Self {
        Self {
            service,
            reported: ResourceMap::from(
                raw.in_use.map(|count| (count != NOT_APPLICABLE).then_some(count)),
            ),
            tle_pool: raw.tle_pool_id,
        }
    }
}

/// `service 5 uses TXQs 2, LEs 10`, with what the driver does not report.
impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = ResourceMap::from_fn(|resource| self.in_use(resource));
        write!(f, "service {} uses {known}", self.service)?;
        for (name, _) in self.reported.iter().filter(|(_, count)| count.is_none()) {
            write!(f, "; {name} not reported")?;
        }
        Ok(())
    }
}

impl Services {
    /// Reads one service (SVC_GET), and its VNI range if it has one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoSuchService`] (EINVAL).
    #[doc(alias = "cxil_get_svc")]
    pub fn get(&self, id: ServiceId) -> Result<Service> {
        let service = self.read(id)?;
        self.with_range(service)
    }

    /// Reads one service without its VNI range.
    pub(super) fn read(&self, id: ServiceId) -> Result<Service> {
        let desc = self.device.attempt(Attempt::OnService(id), &SvcGetCmd::of(id.get()))?;
        let service =
            Service::from_kernel(desc).map_err(|error| self.nonsense::<SvcGetCmd>(error))?;
        if service.id() == id {
            return Ok(service);
        }
        let text = format!("asked for service {id}, the driver answered about {}", service.id());
        let error = Error::new(ErrorKind::Nonsense(text.into()), Errno::EPROTO);
        Err(self.nonsense::<SvcGetCmd>(error))
    }

    /// An error for an answer that makes no sense.
    fn nonsense<C: Command>(&self, error: Error) -> Error {
        error.during(C::OPCODE).on(self.device.id())
    }

    fn with_range(&self, service: Service) -> Result<Service> {
        if service.restricted_vnis() {
            return Ok(service);
        }
        let range = self.range_of(&service)?;
        Ok(service.with_range(range))
    }

    /// All services with their VNI ranges: SVC_LIST_GET, and SVC_GET_VNI_RANGE for each that
    /// does not list its VNIs.
    ///
    /// Drivers newer than SHS 14.0 list them by id, older ones in the order of creation.
    ///
    /// # Errors
    ///
    /// EIO if the device has been removed.
    #[doc(alias = "cxil_get_svc_list")]
    pub fn list(&self) -> Result<Vec<Service>> {
        let mut services = self.list_without_ranges()?;
        for service in &mut services {
            *service = match self.with_range(*service) {
                Err(error) if error.errno() == Errno::EINVAL => self.again(*service)?,
                result => result?,
            };
        }
        Ok(services)
    }

    /// A service whose range the driver denies may be gone, or its id may belong to another one.
    fn again(&self, listed: Service) -> Result<Service> {
        match self.get(listed.id()) {
            // It existed when it was listed.
            Err(error) if matches!(error.kind(), ErrorKind::NoSuchService { .. }) => Ok(listed),
            result => result,
        }
    }

    /// One SVC_LIST_GET: services with a range appear to have no VNIs.
    pub(crate) fn list_without_ranges(&self) -> Result<Vec<Service>> {
        let listed = self.fetch::<SvcListGetCmd>()?;
        let mut services = Vec::with_capacity(listed.len());
        for desc in listed {
            let service = Service::from_kernel(desc);
            services.push(service.map_err(|error| self.nonsense::<SvcListGetCmd>(error))?);
        }
        Ok(services)
    }

    fn fetch<C: ListCommand>(&self) -> Result<Vec<C::Item>> {
        let device = &self.device;
        let items = fetch_list::<C>(device.transport(), device.services_expected())
            .map_err(|error| device.explain(&Attempt::Other, error))?;
        device.services_seen(items.len());
        Ok(items)
    }

    /// Returns the resources that a service has in use (SVC_RSRC_GET).
    ///
    /// While this runs, the service is in use for a moment: destroying it may fail with EBUSY.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoSuchService`] (EINVAL).
    #[doc(alias = "cxil_get_svc_rsrc_use")]
    pub fn usage(&self, id: ServiceId) -> Result<Usage> {
        let raw = self.device.attempt(Attempt::OnService(id), &SvcRsrcGetCmd::of(id.get()))?;
        Ok(Usage::from_kernel(id, &raw))
    }

    /// Returns the resources that every service has in use (SVC_RSRC_LIST_GET), in the order of
    /// [`list`](Self::list).
    ///
    /// # Errors
    ///
    /// EIO if the device has been removed.
    #[doc(alias = "cxil_get_svc_rsrc_list")]
    pub fn usage_all(&self) -> Result<Vec<Usage>> {
        self.fetch::<SvcRsrcListGetCmd>()?
            .iter()
            .map(|entry| {
                let id = numbered(entry.svc_id)
                    .map_err(|error| self.nonsense::<SvcRsrcListGetCmd>(error))?;
                Ok(Usage::from_kernel(id, entry))
            })
            .collect()
    }
}
