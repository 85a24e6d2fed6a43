//! Destroying a service, now or with its handle.

use std::time::Duration;

use cxi_ioctl::Command;
use cxi_ioctl::abi::service::SvcDestroyCmd;

use super::Services;
use crate::error::{ErrorKind, NotClosed, Result};
use crate::explain::Attempt;
use crate::{Backoff, Clock, ServiceId, SystemClock};

impl Services {
    /// Destroys a service (SVC_DESTROY). Its VNIs, reservations and id are free afterward.
    ///
    /// # Errors
    ///
    /// - [`ErrorKind::NoSuchService`] (EINVAL): for example, another process destroyed it first. If
    ///   the driver answers EINVAL although it has the service, it does not know this form of the
    ///   command, and the error is [`ErrorKind::Refused`].
    /// - [`ErrorKind::Busy`] (EBUSY): the service has an LNI, possibly of a process that is just
    ///   ending, or its usage is being read at this moment.
    /// - [`ErrorKind::InvalidInput`]: the default service cannot be destroyed. Nothing was sent.
    #[doc(alias = "cxil_destroy_svc")]
    pub fn destroy(&self, id: ServiceId) -> Result<()> {
        if id.is_default() {
            let text = "the default service (1) cannot be destroyed; it can be disabled";
            return Err(self.device.invalid(SvcDestroyCmd::OPCODE, text));
        }
        self.check_vni_count(id, SvcDestroyCmd::OPCODE)?;
        self.device.attempt(Attempt::OnService(id), &SvcDestroyCmd::of(id.get()))
    }

    /// Destroys a service as soon as it is no longer in use, trying for at most `deadline`. The
    /// first pause is 1 ms; each is twice as long as the one before, up to 1 s.
    ///
    /// # Errors
    ///
    /// As [`destroy`](Self::destroy). [`ErrorKind::Busy`] after the deadline says how long and how
    /// often this was tried.
    pub fn destroy_when_idle(&self, id: ServiceId, deadline: Duration) -> Result<()> {
        self.destroy_when_idle_with(id, deadline, Backoff::default(), &SystemClock)
    }

    /// As [`destroy_when_idle`](Self::destroy_when_idle), with custom pauses and a custom clock.
    ///
    /// # Errors
    ///
    /// As [`destroy_when_idle`](Self::destroy_when_idle).
    pub fn destroy_when_idle_with(
        &self,
        id: ServiceId,
        deadline: Duration,
        backoff: Backoff,
        clock: &dyn Clock,
    ) -> Result<()> {
        let start = clock.now();
        let mut attempts = 0;
        for pause in backoff.pauses() {
            let error = match self.destroy(id) {
                Err(error) if error.is_busy() => error,
                result => return result,
            };
            attempts += 1;
            let waited = clock.now().saturating_sub(start);
            let left = deadline.saturating_sub(waited);
            if left.is_zero() {
                let busy = ErrorKind::Busy {
                    what: format!("service {id}").into(),
                    waited: Some((waited, attempts)),
                };
                let device = &self.device;
                return Err(device.error(busy, error.errno(), SvcDestroyCmd::OPCODE));
            }
            // The last attempt is made at the deadline, not before it.
            clock.sleep(pause.max(Duration::from_micros(1)).min(left));
        }
        // Never reached, because the pauses do not end.
        self.destroy(id)
    }
}

/// A service that is destroyed when this value is dropped, unless it is [kept](Self::keep).
///
/// Dropping tries once and ignores errors; [`destroy`](Self::destroy) reports them.
///
/// ```
/// # use cxi::{Device, ServiceSpec, Vni};
/// # use cxi_mock::{Nic, NicConfig};
/// # let nic = Nic::new(NicConfig::new())?;
/// # let services = Device::cxi0(nic.root()?).services();
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
        Self { services, id, kept: false }
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
            Err(error) => Err(NotClosed { handle: self, error }),
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
