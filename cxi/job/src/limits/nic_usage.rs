//! Resources of a NIC and the services that hold them, as plain data.

use serde::{Deserialize, Serialize};
use std::fmt;

use cxi::pools::{Reservations, holds_le_pool};
use cxi::{DeviceId, Limits, Resource, ResourceMap, ServiceId};

/// One NIC: its totals and its services.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NicUsage {
    /// Number of the NIC.
    pub device: DeviceId,
    /// Number of each resource that it has. For LEs: on each processing element.
    pub totals: ResourceMap<u32>,
    /// Its services, including the default one.
    pub services: Vec<ServiceUsage>,
    /// `true` if every service that may have LEs takes an LE pool, as with drivers up to SHS
    /// 14.0.0. With later ones only a service that reserves LEs does.
    #[serde(default)]
    pub le_pool_by_maximum: bool,
}

impl NicUsage {
    /// A NIC with these totals and services, where only services that reserve LEs take LE pools.
    #[must_use]
    pub const fn new(
        device: DeviceId,
        totals: ResourceMap<u32>,
        services: Vec<ServiceUsage>,
    ) -> Self {
        Self { device, totals, services, le_pool_by_maximum: false }
    }

    /// Returns the reservations of the services: the driver's arithmetic.
    pub(super) fn reservations(&self) -> Reservations {
        let services = self.services.iter();
        Reservations::from_services(
            services.map(|service| (service.service, service.limits)),
            self.le_pool_by_maximum,
        )
    }

    /// Returns the number of a resource that the driver can still reserve.
    #[must_use]
    pub fn unreserved(&self, resource: Resource) -> u32 {
        self.reservations().reservable(resource, self.totals[resource])
    }

    /// The services that hold a TLE pool.
    pub fn tle_pool_holders(&self) -> impl Iterator<Item = &ServiceUsage> {
        self.services.iter().filter(|service| service.limits.takes_tle_pool())
    }

    /// The services that hold an LE pool.
    pub fn le_pool_holders(&self) -> impl Iterator<Item = &ServiceUsage> {
        self.services.iter().filter(|service| self.holds_le_pool(service))
    }

    pub(crate) fn holds_le_pool(&self, service: &ServiceUsage) -> bool {
        holds_le_pool(service.service, &service.limits, self.le_pool_by_maximum)
    }
}

/// One service of a NIC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ServiceUsage {
    /// ID of the service.
    pub service: ServiceId,
    /// Its owner, for people: `uid 5588`.
    pub owner: Option<String>,
    /// `true` if it is a system service.
    pub system: bool,
    /// Numbers that it has reserved and may use.
    pub limits: Limits,
    /// Numbers that it uses; `None` if the driver does not report them.
    pub in_use: ResourceMap<Option<u16>>,
}

impl ServiceUsage {
    /// A user's service with these limits and unknown use.
    #[must_use]
    pub fn new(service: ServiceId, limits: Limits) -> Self {
        Self { service, owner: None, system: false, limits, in_use: ResourceMap::default() }
    }

    /// Sets its owner, for people.
    #[must_use]
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// Makes it a system service.
    #[must_use]
    pub const fn system(mut self) -> Self {
        self.system = true;
        self
    }

    /// Sets what it uses, as the driver reports it: 65535 means that the driver does not know (LEs
    /// and TLEs of a service without its own pool).
    #[must_use]
    pub fn in_use(mut self, reported: ResourceMap<u16>) -> Self {
        self.in_use = reported.map(|_, count| (count != u16::MAX).then_some(count));
        self
    }

    /// Returns whether it is always there, unlike a job's service.
    pub(super) const fn is_permanent(&self) -> bool {
        self.system || self.service.is_default()
    }

    /// Returns the number that no other service can have: the larger of reservation and use.
    #[must_use]
    pub fn holds(&self, resource: Resource) -> u16 {
        self.in_use[resource].unwrap_or(0).max(self.limits[resource].reserved())
    }
}

/// A service that holds what a job wants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HeldBy {
    /// ID of the service.
    pub service: ServiceId,
    /// Its owner, for people.
    pub owner: Option<String>,
    /// Number that it has.
    pub amount: u16,
}

impl HeldBy {
    pub(super) fn of(service: &ServiceUsage, resource: Resource) -> Self {
        Self {
            service: service.service,
            owner: service.owner.clone(),
            amount: service.holds(resource),
        }
    }
}

impl fmt::Display for HeldBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "service {}", self.service)?;
        match &self.owner {
            Some(owner) => write!(f, " ({owner})"),
            None => Ok(()),
        }
    }
}

/// Resource that runs out first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Bottleneck {
    /// A resource.
    Resource(Resource),
    /// TLE pools.
    TlePools,
    /// LE pools.
    LePools,
}

/// Calculates for how many more services with these limits the driver would have room on a NIC, and
/// what runs out then; `None` if for any number, because nothing is reserved.
///
/// ```
/// use cxi::{DeviceId, Limit, Limits, Resource, ResourceMap};
/// use cxi_job::limits::{Bottleneck, NicUsage, forecast};
///
/// let nic = NicUsage::new(DeviceId::new(0), ResourceMap::from_fn(|_| 1000), Vec::new());
/// let mut limits = Limits::default();
/// limits[Resource::Acs] = Limit::new(400, 1000)?;
/// let acs = Bottleneck::Resource(Resource::Acs);
/// assert_eq!(forecast(&nic, &limits), Some((2, acs)));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn forecast(nic: &NicUsage, limits: &Limits) -> Option<(u32, Bottleneck)> {
    let taken = nic.reservations();
    let resources = limits.iter().filter_map(|(resource, limit)| {
        let reserved = u32::from(limit.reserved());
        let fits = taken.reservable(resource, nic.totals[resource]).checked_div(reserved)?;
        Some((fits, Bottleneck::Resource(resource)))
    });
    let pools = |taken: bool, left: usize, kind| {
        taken.then(|| (u32::try_from(left).unwrap_or(u32::MAX), kind))
    };
    let tles = pools(limits.takes_tle_pool(), taken.tle_pools_left(), Bottleneck::TlePools);
    let les = pools(
        limits.takes_le_pool(nic.le_pool_by_maximum),
        taken.le_pools_left(),
        Bottleneck::LePools,
    );
    resources.chain(tles).chain(les).min_by_key(|(fits, _)| *fits)
}
