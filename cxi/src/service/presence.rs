//! What EINVAL means for a command about a service.
//!
//! A driver answers EINVAL if the service does not exist. A driver of another version also answers
//! EINVAL to a command, or a form of it, that it does not know. The two must not be confused: a
//! service that is believed to be gone is forgotten, and would hold its VNIs for ever.

use cxi_ioctl::abi::service::{SvcDesc, SvcGetCmd};
use cxi_ioctl::{CommandError, Errno};

use super::Services;
use crate::ServiceId;
use crate::error::ErrorKind;

/// Whether a service exists.
pub(super) enum Presence {
    There,
    Gone,
    /// The driver does not reveal it.
    Unknown,
}

impl Services {
    /// Queries whether a service exists.
    pub(super) fn presence(&self, id: ServiceId) -> Presence {
        match self.ask(id) {
            Ok(_) => Presence::There,
            Err(Errno::EINVAL) => self.absence(id),
            Err(_) => Presence::Unknown,
        }
    }

    /// What EINVAL of SVC_GET means for a service. The default service always exists: only a driver
    /// that answers for that one knows the command.
    fn absence(&self, id: ServiceId) -> Presence {
        if !id.is_default() && self.ask(ServiceId::DEFAULT).is_ok() {
            Presence::Gone
        } else {
            Presence::Unknown
        }
    }

    fn ask(&self, id: ServiceId) -> Result<SvcDesc, Errno> {
        let command = SvcGetCmd {
            svc_id: id.get(),
            ..SvcGetCmd::new()
        };
        self.device.execute(&command).map_err(CommandError::errno)
    }

    /// EINVAL of SVC_GET.
    pub(super) fn why_not_read(&self, id: ServiceId, errno: Errno) -> Option<ErrorKind> {
        if errno != Errno::EINVAL {
            return None;
        }
        match self.absence(id) {
            Presence::Gone => Some(ErrorKind::NoSuchService { service: id }),
            _ => None,
        }
    }

    /// EINVAL of another command for which a missing service is the only reason.
    pub(crate) fn why_invalid(&self, id: ServiceId, errno: Errno) -> Option<ErrorKind> {
        if errno != Errno::EINVAL {
            return None;
        }
        match self.presence(id) {
            Presence::Gone => Some(ErrorKind::NoSuchService { service: id }),
            Presence::There => Some(ErrorKind::Refused(
                format!(
                    "service {id} exists, and the driver refuses the command nevertheless \
                     (EINVAL): it does not know it, or not in this form, or the service was made \
                     just now under the id of one that is gone"
                )
                .into(),
            )),
            Presence::Unknown => None,
        }
    }
}
