//! Resources of a NIC: all of them, those reserved, and those in use.

use crate::driver::Capabilities;
use crate::error::Result;
use crate::pools::Reservations;
use crate::{Device, ResourceMap, Service, ServiceId};

/// One resource of a NIC, summed over all services.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ResourceLevel {
    /// Number that the NIC has.
    pub total: u16,
    /// Number that services have reserved, in use or not.
    pub reserved: u16,
    /// Number that can still be reserved. A larger reservation is refused with ENOSPC.
    pub reservable: u16,
    /// Number in use, as far as the driver reports it.
    pub in_use: u16,
    /// Number in use beyond reservations, taken from the shared part.
    pub shared_in_use: u16,
    /// `true` if the driver reported the use of every service.
    pub in_use_complete: bool,
}

/// All resources of a NIC, summed over all services.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Availability {
    /// Each resource.
    pub resources: ResourceMap<ResourceLevel>,
    /// LE pools left for services: each service that reserves LEs takes one. Up to SHS 14.0.0 each
    /// service that may have LEs at all takes one, and is counted that way if the driver may be
    /// that old.
    pub le_pools: usize,
    /// TLE pools left for services: each service with TLEs takes one.
    pub tle_pools: usize,
}

impl Device {
    /// Returns what is reserved, in use, and still reservable (SVC_LIST_GET, SVC_RSRC_LIST_GET).
    ///
    /// This reproduces the driver's arithmetic from the outside: a reservation fits if it is at
    /// most `reservable`. What a service may *use* is a different matter. Without a reservation it
    /// is limited by its maximum and by the NIC's total, not by what others have reserved; a
    /// reservation is therefore only as good as the others' restraint.
    ///
    /// The two commands do not run at the same instant: services that come or go in between distort
    /// the sums.
    ///
    /// # Errors
    ///
    /// EIO if the device has been removed.
    pub fn availability(&self) -> Result<Availability> {
        let totals = self.totals()?;
        let services = self.services().list_without_ranges()?;
        let usage = self.services().usage_all()?;
        let in_use = |id: ServiceId, resource| {
            usage.iter().find(|usage| usage.service == id)?.reported[resource]
        };
        let taken = self.reservations(&services)?;
        let resources = totals.map(|resource, total| {
            let reserved = u16::try_from(taken.reserved(resource)).unwrap_or(u16::MAX);
            let mut level = ResourceLevel {
                total,
                reserved,
                reservable: total.saturating_sub(reserved),
                in_use_complete: true,
                ..ResourceLevel::default()
            };
            for service in &services {
                match in_use(service.id(), resource) {
                    Some(count) => {
                        level.in_use = level.in_use.saturating_add(count);
                        let reserved = service.limits()[resource].reserved();
                        let shared = count.saturating_sub(reserved);
                        level.shared_in_use = level.shared_in_use.saturating_add(shared);
                    }
                    None => level.in_use_complete = false,
                }
            }
            level
        });
        Ok(Availability {
            resources,
            le_pools: taken.le_pools_left(),
            tle_pools: taken.tle_pools_left(),
        })
    }

    /// Returns the reservations of these services, which are all that the NIC has.
    pub(crate) fn reservations(&self, services: &[Service]) -> Result<Reservations> {
        let services = services.iter().map(|service| (service.id(), service.limits()));
        let by_maximum = self.le_pool_by_maximum()?;
        Ok(Reservations::from_services(services, by_maximum))
    }

    /// Returns whether a service that may have LEs takes an LE pool even without a reservation, or
    /// may do so: 14.0.0 cannot always be distinguished from later releases.
    ///
    /// # Errors
    ///
    /// As [`Device::driver`](Self::driver).
    pub fn le_pool_by_maximum(&self) -> Result<bool> {
        Ok(!self.driver()?.can(Capabilities::LE_POOL_BY_RESERVATION))
    }
}
