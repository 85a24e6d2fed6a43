//! Making the service of one NIC.

use super::error::{LeftBehind, LeftBehindReason, NicFailure};
use super::prepare::{Adopt, Prepared};
use crate::describe;
use crate::job_request::{JobLimits, JobRequest};
use crate::limits::{Cut, CutReason, HeldBy, RgidSharing};
use cxi::error::{Error, ErrorKind, Shortage};
use cxi::pools::MIN_TLES;
use cxi::{Limit, Limits, Resource, ServiceId};
use cxi_ioctl::Errno;

/// How often a refused request is scaled back. Each attempt asks for less: there are eight
/// resources and two kinds of pools, and other processes may take something in the meantime.
const ATTEMPTS: usize = 16;

/// An existing service, made or adopted.
#[derive(Debug)]
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
            let error = if gone {
                error.without_leftover()
            } else {
                error
            };
            return Err((self.refused(&spec, error), left));
        };
        let made = Made {
            service,
            limits: spec.limits().copied(),
            cuts,
        };
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
        let made = Made {
            service: adopt.service,
            limits: None,
            cuts: Vec::new(),
        };
        let enabled = if adopt.enabled {
            Ok(())
        } else {
            self.device.services().set_enabled(adopt.service, true)
        };
        match enabled.and_then(|()| self.share_rgids(adopt.service, request)) {
            Ok(()) => Ok(made),
            Err(error) => {
                let left = self.unmake(&made).into_iter().collect();
                Err((self.refused(&self.spec, error), left))
            }
        }
    }

    fn share_rgids(&self, service: ServiceId, request: &JobRequest) -> Result<(), Error> {
        let Some(count) = self.lnis_per_rgid else {
            return Ok(());
        };
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
        Some(LeftBehind {
            device: self.device.id(),
            service: Some(made.service),
            reason,
        })
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
            Shortage::Reservation {
                resource,
                available,
                ..
            } => (*resource, *available),
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
        let wanted = self
            .asked
            .map_or(*limit, |asked| asked[resource])
            .reserved();
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
        let Ok(services) = self.device.services().list() else {
            return Vec::new();
        };
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
