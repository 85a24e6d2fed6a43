//! How many more such jobs a NIC can take.

use super::nic_usage::NicUsage;
use cxi::{Limits, Resource};

/// How many more services with the same limits a NIC can take, and what runs out first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Forecast {
    /// How many fit; `None` if any number does, because nothing is reserved.
    pub fits: Option<u32>,
    /// What runs out first.
    pub first_out: Option<Bottleneck>,
}

/// What runs out first.
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

/// Calculates for how many more services with these limits the driver would have room on a NIC.
///
/// ```
/// use cxi::{DeviceId, Limit, Limits, Resource, ResourceMap};
/// use cxi_job::limits::{Bottleneck, NicUsage, forecast};
///
/// let nic = NicUsage::new(DeviceId::new(0), ResourceMap::from_fn(|_| 1000), Vec::new());
/// let mut limits = Limits::default();
/// limits[Resource::Acs] = Limit::new(400, 1000)?;
/// let forecast = forecast(&nic, &limits);
/// assert_eq!(forecast.fits, Some(2));
/// assert_eq!(
///     forecast.first_out,
///     Some(Bottleneck::Resource(Resource::Acs))
/// );
/// # Ok::<(), cxi::InvalidLimit>(())
/// ```
#[must_use]
pub fn forecast(nic: &NicUsage, limits: &Limits) -> Forecast {
    let taken = nic.reservations();
    let resources = limits.iter().filter_map(|(resource, limit)| {
        let reserved = u32::from(limit.reserved());
        let left = taken.reservable(resource, nic.totals[resource]);
        let fits = left.checked_div(reserved)?;
        Some((fits, Bottleneck::Resource(resource)))
    });
    let pools = |taken: bool, left: usize, kind| {
        taken.then(|| (u32::try_from(left).unwrap_or(u32::MAX), kind))
    };
    let tles = pools(
        limits.takes_tle_pool(),
        taken.tle_pools_left(),
        Bottleneck::TlePools,
    );
    let les = pools(
        limits.takes_le_pool(nic.le_pool_by_maximum),
        taken.le_pools_left(),
        Bottleneck::LePools,
    );
    let least = resources
        .chain(tles)
        .chain(les)
        .min_by_key(|(fits, _)| *fits);
    Forecast {
        fits: least.map(|(fits, _)| fits),
        first_out: least.map(|(_, what)| what),
    }
}
