//! Destroying a service.

use std::time::Duration;

use cxi_ioctl::Command;
use cxi_ioctl::abi::service::SvcDestroyCmd;

use super::Services;
use crate::error::{Error, ErrorKind, Result};
use crate::explain::Attempt;
use crate::{Backoff, Clock, ServiceId, SystemClock};

impl Services {
    /// Destroys a service (SVC_DESTROY). Its VNIs, reservations and id are free afterwards.
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
            return Err(Error::invalid(ErrorKind::InvalidInput(text.into()))
                .during(SvcDestroyCmd::OPCODE)
                .on(self.device.id()));
        }
        self.check_vni_count(id, SvcDestroyCmd::OPCODE)?;
        self.device
            .attempt(Attempt::OnService(id), &SvcDestroyCmd::of(id.get()))
    }

    /// Destroys a service as soon as it is no longer in use, trying for at most `deadline`. The
    /// first pause is 1 ms; each is twice as long as the one before, up to 1 s.
    ///
    /// # Errors
    ///
    /// As [`destroy`](Self::destroy). [`ErrorKind::Busy`] after the deadline says how long and how
    /// often this was tried.
    pub fn destroy_when_idle(&self, id: ServiceId, deadline: Duration) -> Result<()> {
        self.destroy_when_idle_with(id, deadline, Backoff::default(), &SystemClock::new())
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
                return Err(Error::new(
                    ErrorKind::Busy {
                        what: format!("service {id}").into(),
                        waited: Some((waited, attempts)),
                    },
                    error.errno(),
                )
                .during(SvcDestroyCmd::OPCODE)
                .on(self.device.id()));
            }
            // The last attempt is made at the deadline, not before it.
            clock.sleep(pause.max(Duration::from_micros(1)).min(left));
        }
        // The pauses never end.
        self.destroy(id)
    }
}
