//! Making the service of one NIC.

use std::time::Duration;

use cxi::error::{Error, ErrorKind, Shortage};
use cxi::pools::MIN_TLES;
use cxi::{Limit, Limits, Resource, Service, ServiceId, ServiceSpec, VniAccess};
use cxi_ioctl::Errno;

use super::error::{LeftBehind, LeftBehindReason, NicFailure};
use super::prepare::{Adopt, Prepared, matches_spec};
use crate::describe;
use crate::job_request::{JobLimits, JobRequest};
use crate::limits::{Cut, CutReason, HeldBy, RgidSharing};

/// Number of times that a refused request is scaled back. Each attempt asks for less: there are
/// eight resources and two kinds of pools, and other processes may take something in the meantime.
const ATTEMPTS: usize = 16;

/// An existing service, made or adopted.
#[derive(Debug, Clone)]
pub(super) struct Made {
    pub(super) service: ServiceId,
    pub(super) limits: Option<Limits>,
    pub(super) cuts: Vec<Cut>,
}

impl Prepared<'_> {
    /// Makes the service, or returns what went wrong and what is left of it.
    pub(super) fn make(&self, request: &JobRequest) -> Result<Made, (NicFailure, Vec<LeftBehind>)> {
        if let Some(adopt) = &self.adopt {
            return self.adopt(adopt, request);
        }
        let mut spec = self.spec;
        let mut cuts = self.cuts.clone();
        let mut attempts = 1..ATTEMPTS;
        let service = loop {
            let error = match self.device.services().create(&spec) {
                Ok(service) => break service,
                Err(error) => error,
            };
            let left = self.account(&spec, &error);
            if left.is_empty()
                && attempts.next().is_some()
                && let Some(limits) =
                    self.smaller(spec.limits().copied(), &error, request, &mut cuts)
            {
                spec = spec.with_limits(Some(limits));
                continue;
            }
            // A leftover that has been destroyed since is not left behind.
            let known = error.leftover().map(|known| Some(known.service));
            let gone = known.is_some_and(|known| left.iter().all(|left| left.service != known));
            let error = if gone { error.without_leftover() } else { error };
            return Err((self.refused(&spec, error), left));
        };
        let made = Made { service, limits: spec.limits().copied(), cuts };
        match self.share_rgids(service, request) {
            Ok(()) => Ok(made),
            Err(error) => {
                let left = self.unmake(&made);
                Err((self.refused(&spec, error), left.into_iter().collect()))
            }
        }
    }

    fn adopt(
        &self,
        adopt: &Adopt,
        request: &JobRequest,
    ) -> Result<Made, (NicFailure, Vec<LeftBehind>)> {
        let made = adopt.made.clone();
        let enabled = if adopt.enabled {
            Ok(())
        } else {
            self.device.services().set_enabled(made.service, true)
        };
        match enabled.and_then(|()| self.share_rgids(made.service, request)) {
            Ok(()) => Ok(made),
            Err(error) => {
                let left = self.unmake(&made).into_iter().collect();
                Err((self.refused(&self.spec, error), left))
            }
        }
    }

    fn share_rgids(&self, service: ServiceId, request: &JobRequest) -> Result<(), Error> {
        let Some(count) = self.lnis_per_rgid else { return Ok(()) };
        let services = self.device.services();
        // The driver refuses even the current number while the service is in use.
        if self.adopt.is_some() && services.lnis_per_rgid(service)? == count {
            return Ok(());
        }
        match services.set_lnis_per_rgid(service, count) {
            // The job runs already, and its own processes have RGIDs.
            Err(error)
                if self.adopt.is_some()
                    && error.errno() == Errno::EBUSY
                    && matches!(request.rgids, RgidSharing::Spread { .. }) =>
            {
                Ok(())
            }
            result => result,
        }
    }

    /// Destroys what [`make`](Self::make) made; returns what is left if that fails.
    pub(super) fn unmake(&self, made: &Made) -> Option<LeftBehind> {
        let reason = if self.adopt.is_some() {
            LeftBehindReason::Adopted
        } else {
            LeftBehindReason::Stuck(self.destroy(made.service).err()?)
        };
        Some(LeftBehind { device: self.device.id(), service: Some(made.service), reason })
    }

    /// Returns limits that ask for less of what was short, if the planning mode allows it.
    fn smaller(
        &self,
        limits: Option<Limits>,
        error: &Error,
        request: &JobRequest,
        cuts: &mut Vec<Cut>,
    ) -> Option<Limits> {
        let (ErrorKind::NotEnough(shortage), JobLimits::Planned { policy, mode, .. }) =
            (error.kind(), &request.limits)
        else {
            return None;
        };
        let mut limits = limits?;
        let (resource, available) = match shortage {
            Shortage::Reservation { resource, available, .. } => (*resource, *available),
            Shortage::TlePools => (Resource::Tles, 0),
            Shortage::LePools => (Resource::Les, 0),
            _ => return None,
        };
        let floor = mode.floor(policy, resource)?;
        let limit = &mut limits[resource];
        if available >= limit.reserved() {
            return None;
        }
        let pool = matches!(shortage, Shortage::TlePools | Shortage::LePools);
        let wanted = self.asked.map_or(*limit, |asked| asked[resource]).reserved();
        let available = match resource {
            // Pools are all or nothing, whatever the floor.
            Resource::Tles if available < MIN_TLES => 0,
            Resource::Tles => available,
            _ if pool => 0,
            _ if u32::from(available) < floor.min(wanted.into()) => return None,
            _ => available,
        };
        *limit = match resource {
            Resource::Tles => Limit::exactly(available),
            _ => Limit::new(available, limit.max()).ok()?,
        };
        let holders = self.holders(resource);
        cuts.retain(|cut| cut.resource != resource);
        cuts.push(Cut {
            device: self.device.id(),
            resource,
            wanted: wanted.into(),
            available: available.into(),
            reason: match shortage {
                Shortage::TlePools => CutReason::NoTlePool(holders),
                Shortage::LePools => CutReason::NoLePool(holders),
                _ => CutReason::Held(holders),
            },
        });
        cuts.sort_by_key(|cut| cut.resource.index());
        Some(limits)
    }

    fn holders(&self, resource: Resource) -> Vec<HeldBy> {
        let Ok(services) = self.device.services().list() else { return Vec::new() };
        let holding = services.iter().filter_map(|service| {
            let amount = service.limits()[resource].reserved();
            (amount > 0).then(|| HeldBy {
                service: service.id(),
                owner: Some(describe::owner(service)),
                amount,
            })
        });
        holding.collect()
    }
}

/// Longest time that undoing waits for a busy service. No process of the job runs yet, so at most a
/// process that reads the service's usage holds it, and only for a moment.
const UNDO: Duration = Duration::from_millis(500);

/// Likeness of a service that appeared in the meantime to the one requested.
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
        let left = |service, reason| LeftBehind { device: self.device.id(), service, reason };
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
    let netns = spec.members().is_some_and(|members| members.netns().is_some());
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

/// Returns whether the driver may have made a service in spite of the error: the command was sent,
/// and the driver gave no reason for refusing it.
fn may_have_happened(error: &Error) -> bool {
    let refused =
        matches!(error.errno(), Errno::ENOSPC | Errno::EEXIST | Errno::EPERM | Errno::EACCES);
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
