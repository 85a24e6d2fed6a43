//! Makers of a node's services, according to records.
//!
//! A service is destroyed only by whoever made it, or by an order that names it. Nothing in the
//! driver says who made a service: two with the same user and VNI may be of a job and of an
//! administrator. What a record names is its maker's; everything else is *foreign*: another
//! scheduler's, another tool's, or of a record that is lost.

use std::collections::BTreeMap;

use cxi::{DeviceId, Limits, Members, Resource, Service, ServiceId, TrafficClasses, VniAccess};
use serde::{Deserialize, Serialize};

use cxi_site::JobId;

/// A service by its place, and what it must still be: IDs are reused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct OwnedService {
    /// The NIC.
    pub device: DeviceId,
    /// The service.
    pub service: ServiceId,
    /// Its members; `None` for everyone.
    pub members: Option<Members>,
    /// Its VNIs.
    pub vnis: VniAccess,
    /// Its terms when it was made; `None` if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terms: Option<Terms>,
}

/// Terms of a service, by which others of the same users on the same VNIs differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Terms {
    /// Its traffic classes; `None` for all.
    pub traffic_classes: Option<TrafficClasses>,
    /// Its limits; `None` for none.
    pub limits: Option<Limits>,
}

impl Terms {
    pub(crate) fn of(service: &Service) -> Self {
        let limits = service.is_limited().then(|| service.limits());
        Self { traffic_classes: service.traffic_classes(), limits }
    }

    /// Returns whether a service can have been made for these: of what was short, it has less.
    fn allow(&self, service: &Service) -> bool {
        let found = Self::of(service);
        let limits = match (self.limits.map(Limits::as_stored), found.limits) {
            (None, None) => true,
            (Some(asked), Some(have)) => have.iter().all(|(resource, have)| {
                let asked = asked[resource];
                have.reserved() <= asked.reserved()
                    && (have.max() == asked.max() || resource == Resource::Tles)
            }),
            _ => false,
        };
        limits && found.traffic_classes == self.traffic_classes
    }
}

impl OwnedService {
    /// A service as it is now.
    #[must_use]
    pub fn of(device: DeviceId, service: &Service) -> Self {
        let (members, vnis) = (service.members(), service.vnis());
        let terms = Some(Terms::of(service));
        Self { device, service: service.id(), members, vnis, terms }
    }

    /// Returns whether a service is this one.
    #[must_use]
    pub fn is(&self, device: DeviceId, service: &Service) -> bool {
        let found = Self::of(device, service);
        let terms = self.terms.or(found.terms);
        *self == Self { terms: self.terms, ..found } && terms == found.terms
    }
}

/// Maker of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Maker {
    Job {
        job: JobId,
        lives: bool,
    },
    /// Somebody who removes it without the scheduler, in words.
    Other(String),
    /// A program that was to remove it and has ended, in words.
    Ended(String),
}

/// Claim of one record.
#[derive(Debug, Clone)]
pub(crate) struct Claim {
    pub(crate) maker: Maker,
    pub(crate) services: Vec<OwnedService>,
    /// Services of which no more is known, because the record cannot be used.
    pub(crate) unknown: Vec<(DeviceId, ServiceId)>,
    /// Services that its maker has begun to make, and has not named yet.
    pub(crate) intent: Option<Intent>,
}

/// Services that a prolog that may have been killed was about to make.
#[derive(Debug, Clone)]
pub(crate) struct Intent {
    pub(crate) members: Option<Members>,
    pub(crate) vnis: VniAccess,
    pub(crate) begun: Vec<Begun>,
}

/// Service that a prolog begins to make on a NIC, until it has named it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Begun {
    /// The NIC.
    pub device: DeviceId,
    /// The services that were there before it began.
    pub before: Vec<ServiceId>,
    /// The terms that it asks for.
    pub terms: Terms,
}

impl Intent {
    fn fits(&self, device: DeviceId, service: &Service) -> bool {
        // The driver gets a range after it has made the service, which is disabled until then.
        let without_range = !service.is_enabled()
            && service.vnis() == VniAccess::Unrestricted
            && matches!(self.vnis, VniAccess::Range(_));
        let Some(begun) = self.begun.iter().find(|begun| begun.device == device) else {
            return false;
        };
        !service.is_system()
            && !service.id().is_default()
            && !begun.before.contains(&service.id())
            && service.members() == self.members
            && (service.vnis() == self.vnis || without_range)
            && begun.terms.allow(service)
    }
}

/// The claims of all records of a node.
#[derive(Debug, Clone, Default)]
pub(crate) struct Owners(pub(crate) Vec<Claim>);

impl Owners {
    /// The maker of each of these services, which are all that the NICs have; `None` for a foreign one.
    ///
    /// A service that a killed prolog made without naming it is its own only if it is the only one
    /// on its NIC that it can be, and only one prolog can have made it.
    pub(crate) fn of(&self, services: &[(DeviceId, Service)]) -> Vec<Option<&Maker>> {
        let named = |(device, service): &(DeviceId, Service)| {
            let names = |claim: &&Claim| claim.services.iter().any(|one| one.is(*device, service));
            let place = (*device, service.id());
            // A record that says more says it better: the number may belong to another service by now.
            let by_number = || self.0.iter().find(|claim| claim.unknown.contains(&place));
            self.0.iter().find(names).or_else(by_number)
        };
        let mut makers: Vec<Option<&Maker>> =
            services.iter().map(|service| Some(&named(service)?.maker)).collect();
        let mut begun: BTreeMap<usize, Vec<&Maker>> = BTreeMap::new();
        for claim in &self.0 {
            let Some(intent) = &claim.intent else { continue };
            let mut fitting: BTreeMap<DeviceId, Vec<usize>> = BTreeMap::new();
            for (at, (device, service)) in services.iter().enumerate() {
                if makers[at].is_none() && intent.fits(*device, service) {
                    fitting.entry(*device).or_default().push(at);
                }
            }
            for at in fitting.into_values().filter(|places| places.len() == 1).flatten() {
                begun.entry(at).or_default().push(&claim.maker);
            }
        }
        for (at, claimants) in begun {
            if let [maker] = claimants[..] {
                makers[at] = Some(maker);
            }
        }
        makers
    }
}

/// Returns the maker of a service that an ended job did not make, in words.
pub(crate) fn reason(maker: Option<&Maker>) -> String {
    match maker {
        None => "no record says who made it".to_owned(),
        Some(Maker::Job { job, .. }) => format!("job {job} made it"),
        Some(Maker::Other(maker) | Maker::Ended(maker)) => format!("{maker} made it"),
    }
}
