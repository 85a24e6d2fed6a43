//! Finding and undoing what a failed attempt left behind.

use std::time::Duration;

use super::error::{LeftBehind, LeftBehindReason};
use super::prepare::{Prepared, matches_spec};
use cxi::error::{Error, ErrorKind};
use cxi::{Service, ServiceId, ServiceSpec, VniAccess};
use cxi_ioctl::Errno;

/// How long undoing waits for a busy service: at most a reader of its usage is holding it.
const UNDO: Duration = Duration::from_millis(500);

/// How a service that appeared in the meantime compares with the one requested.
enum Likeness {
    /// It is the requested one.
    Same,
    /// It may be the requested one, before it got its VNI range or its namespace.
    Unfinished,
    /// It is a different one.
    Other,
}

impl Prepared<'_> {
    /// Destroys what a failed attempt left on the NIC, and returns what remains.
    ///
    /// A refusal with a reason means that nothing was made: a service that looks like this job's
    /// belongs to another process. A lost answer shows as an errno without a reason, and the driver
    /// keeps a service whose id it could not deliver. Only then is a service that looks like this
    /// job's destroyed.
    pub(super) fn account(&self, spec: &ServiceSpec, error: &Error) -> Vec<LeftBehind> {
        let left = |service, reason| LeftBehind {
            device: self.device.id(),
            service,
            reason,
        };
        let mut behind = Vec::new();
        if let Some(known) = error.leftover() {
            if matches!(known.error.kind(), ErrorKind::Quirk { .. }) {
                let reason = LeftBehindReason::Hazard(known.error.to_string());
                behind.push(left(Some(known.service), reason));
            } else if let Err(error) = self.destroy(known.service) {
                behind.push(left(Some(known.service), LeftBehindReason::Stuck(error)));
            }
        }
        if error.command().is_none() || !may_have_happened(error) {
            return behind;
        }
        let services = match self.device.services().list() {
            Ok(services) => services,
            Err(asking) => {
                behind.push(left(None, LeftBehindReason::Unknown(asking)));
                return behind;
            }
        };
        let named: Vec<Option<ServiceId>> = behind.iter().map(|left| left.service).collect();
        let new = services.iter().filter(|service| {
            !self.before.contains(&service.id()) && !named.contains(&Some(service.id()))
        });
        for service in new {
            match likeness(service, spec) {
                Likeness::Same => {
                    if let Err(error) = self.destroy(service.id()) {
                        behind.push(left(Some(service.id()), LeftBehindReason::Stuck(error)));
                    }
                }
                Likeness::Unfinished => {
                    behind.push(left(Some(service.id()), LeftBehindReason::Unclear));
                }
                Likeness::Other => {}
            }
        }
        behind
    }

    /// Destroys a service of this job; one that no longer exists counts as destroyed.
    pub(super) fn destroy(&self, service: ServiceId) -> Result<(), Error> {
        let services = self.device.services();
        let destroy = || match services.destroy_when_idle(service, UNDO) {
            Err(error) if matches!(error.kind(), ErrorKind::NoSuchService { .. }) => Ok(()),
            result => result,
        };
        match destroy() {
            Err(error) if !error.is_busy() => destroy(),
            result => result,
        }
    }
}

fn likeness(service: &Service, spec: &ServiceSpec) -> Likeness {
    let same_limits = match spec.limits() {
        None => !service.is_limited(),
        Some(limits) => service.is_limited() && service.limits() == limits.as_stored(),
    };
    if !same_limits {
        return Likeness::Other;
    }
    if matches_spec(service, spec) {
        return Likeness::Same;
    }
    let unset_range =
        matches!(spec.vnis(), VniAccess::Range(_)) && service.vnis() == VniAccess::Unrestricted;
    let same_vnis = service.vnis() == spec.vnis();
    let netns = spec
        .members()
        .is_some_and(|members| members.netns().is_some());
    let unset_netns = netns && service.members().is_some_and(|members| members.is_empty());
    let same_members = service.members().as_ref() == spec.members();
    if same_vnis && unset_netns {
        // No other process makes a service with this job's VNIs.
        Likeness::Same
    } else if unset_range && (same_members || unset_netns) {
        Likeness::Unfinished
    } else {
        Likeness::Other
    }
}

/// Whether the driver may have made a service in spite of the error: the command was sent, and the
/// driver gave no reason for refusing it.
fn may_have_happened(error: &Error) -> bool {
    let refused = matches!(
        error.errno(),
        Errno::ENOSPC | Errno::EEXIST | Errno::EPERM | Errno::EACCES
    );
    !refused
        && !matches!(
            error.kind(),
            ErrorKind::InvalidSpec(_)
                | ErrorKind::InvalidInput(_)
                | ErrorKind::Unsupported { .. }
                | ErrorKind::NotGuaranteed { .. }
                | ErrorKind::Quirk { .. }
                | ErrorKind::NotEnough(_)
                | ErrorKind::VniTaken(_)
                | ErrorKind::NotPermitted(_)
                | ErrorKind::NoSuchService { .. }
                | ErrorKind::ServiceDisabled { .. }
        )
}
