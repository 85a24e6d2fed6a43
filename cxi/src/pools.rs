//! Pools that the services of a NIC share, and the driver's arithmetic for when they run out.
//!
//! When the driver refuses a reservation, it does not say which services are in the way. That can
//! be calculated from a list of services:
//!
//! ```
//! use cxi::pools::Reservations;
//! use cxi::{Limit, Limits, Resource, ServiceId};
//!
//! let job = Limits::none()
//!     .with(Resource::Txqs, Limit::new(16, 64)?)
//!     .with(Resource::Tles, Limit::at_most(1))
//!     .as_stored();
//! let services = [(ServiceId::new(2)?, job), (ServiceId::new(3)?, job)];
//! let taken = Reservations::from_services(services, false);
//! assert_eq!(taken.reservable(Resource::Txqs, 1024), 992);
//! assert_eq!(taken.reserved(Resource::Tles), 16);
//! assert_eq!(taken.tle_pools_left(), 2);
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

use crate::{Limit, Limits, Resource, ResourceMap, ServiceId};

/// LE pools of each processing element that services can have. One more is shared by all services
/// without one.
pub const LE_POOLS: usize = 15;

/// TLE pools of a NIC, that of the default service included.
pub const TLE_POOLS: usize = 4;

/// Places in the table of VNIs of a NIC.
pub const VNI_SLOTS: usize = 256;

/// The least that the driver reserves if any TLE is asked for, or no limits are set.
pub const MIN_TLES: u16 = 8;

impl Limits {
    /// The limits that the driver makes of these: it reserves all the TLEs that a service may
    /// have, and at least [`MIN_TLES`].
    #[must_use]
    pub fn as_stored(mut self) -> Self {
        if self.takes_tle_pool() {
            let tles = &mut self[Resource::Tles];
            *tles = Limit::exactly(tles.reserved().max(MIN_TLES));
        }
        self
    }

    /// Returns whether a service with these limits takes a TLE pool.
    #[must_use]
    pub fn takes_tle_pool(&self) -> bool {
        self[Resource::Tles] != Limit::NONE
    }

    /// Returns whether a service with these limits takes an LE pool. `by_maximum` is true for
    /// drivers where every service that may have LEs does, whether it reserves any or not:
    /// [`Device::le_pool_by_maximum`](crate::Device::le_pool_by_maximum).
    #[must_use]
    pub fn takes_le_pool(&self, by_maximum: bool) -> bool {
        let les = self[Resource::Les];
        les.reserved() > 0 || (by_maximum && les.max() > 0)
    }
}

/// Returns whether a service with these limits holds one of the [`LE_POOLS`]. The default service
/// does not: it has the pool that is shared.
#[must_use]
pub fn holds_le_pool(service: ServiceId, limits: &Limits, by_maximum: bool) -> bool {
    !service.is_default() && limits.takes_le_pool(by_maximum)
}

/// Reservations of services on a NIC, in use or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reservations {
    reserved: ResourceMap<u32>,
    le_pools: usize,
    tle_pools: usize,
}

impl Reservations {
    /// The sum over services; `le_pool_by_maximum` as in [`Limits::takes_le_pool`].
    #[must_use]
    pub fn from_services(
        services: impl IntoIterator<Item = (ServiceId, Limits)>,
        le_pool_by_maximum: bool,
    ) -> Self {
        let mut sum = Self::default();
        for (service, limits) in services {
            for (resource, limit) in limits.iter() {
                let reserved = &mut sum.reserved[resource];
                *reserved = reserved.saturating_add(limit.reserved().into());
            }
            sum.le_pools += usize::from(holds_le_pool(service, &limits, le_pool_by_maximum));
            sum.tle_pools += usize::from(limits.takes_tle_pool());
        }
        sum
    }

    /// Returns the number of a resource that is reserved.
    #[must_use]
    pub fn reserved(&self, resource: Resource) -> u32 {
        self.reserved[resource]
    }

    /// Returns the number of a NIC's `total` that can still be reserved: the driver refuses to
    /// reserve more.
    #[must_use]
    pub fn reservable(&self, resource: Resource, total: u32) -> u32 {
        total.saturating_sub(self.reserved[resource])
    }

    /// Returns the number of services that can still get an LE pool.
    #[must_use]
    pub const fn le_pools_left(&self) -> usize {
        LE_POOLS.saturating_sub(self.le_pools)
    }

    /// Returns the number of services that can still get a TLE pool.
    #[must_use]
    pub const fn tle_pools_left(&self) -> usize {
        TLE_POOLS.saturating_sub(self.tle_pools)
    }
}
