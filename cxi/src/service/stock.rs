//! Stock of a NIC: the resources that its services hold, and those that are short or taken when
//! SVC_ALLOC fails.

use cxi_ioctl::abi::service::{RSRC_COUNT, SvcDesc, SvcFailInfo, SvcFlags};
use zerocopy::FromZeros;

use super::read::flags;
use super::spec::effective_limits;
use super::{Service, Services};
use crate::driver::Capabilities;
use crate::error::{Shortage, VniConflict};
use crate::pools::{Reservations, VNI_SLOTS};
use crate::{Limit, Resource, ResourceMap, VniAccess, VniRange};

/// Resources that the services of a NIC hold, and all that it has.
#[derive(Debug)]
pub(crate) struct Stock {
    totals: ResourceMap<u16>,
    taken: Reservations,
    /// Places in the table of VNIs that services hold.
    pub(crate) vni_slots: usize,
    proven: Capabilities,
}

/// Returns the resource that SVC_ALLOC lacked when it failed with ENOSPC. `stock` is what the NIC
/// shows while it is still, or nearly, as it was at the refusal.
pub(crate) fn shortage(
    desc: &SvcDesc,
    fail_info: Option<SvcFailInfo>,
    stock: Option<&Stock>,
) -> Shortage {
    let wanted = effective_limits(desc);
    let fail_info = fail_info.unwrap_or_else(SvcFailInfo::new_zeroed);
    if fail_info.no_le_pools != 0 {
        return Shortage::LePools;
    }
    if fail_info.no_tle_pools != 0 {
        return Shortage::TlePools;
    }
    if let Some((resource, limit, available)) = first_short(&wanted, &fail_info.rsrc_avail) {
        // SHS 13.0 finds its table of VNIs full before it checks resources, and then names
        // nothing: all zeros. Trust zeros unless the list proves that there is room.
        let nothing_named = fail_info.rsrc_avail == [0; RSRC_COUNT];
        let proven_wrong = stock.is_some_and(|stock| {
            !stock.names_pools() && stock.reservable(resource) >= limit.reserved()
        });
        if !(nothing_named && proven_wrong) {
            return Shortage::Reservation { resource, requested: limit.reserved(), available };
        }
    }
    let own_slots = desc.num_vld_vnis.into();
    stock.map_or(Shortage::Unclear { vni_slots: 0 }, |stock| stock.unnamed(&wanted, own_slots))
}

impl Services {
    /// Returns whether a service with LEs would be refused for lack of TLEs, as far as visible.
    pub(super) fn short_of_tles(&self, desc: &SvcDesc) -> Option<Shortage> {
        let wanted = effective_limits(desc);
        let limited = flags(desc).contains(SvcFlags::RESOURCE_LIMITS);
        let (les, tles) = (wanted[Resource::Les], wanted[Resource::Tles]);
        let asks_for_les = !limited || les.max() > 0;
        if !asks_for_les || les.reserved() > 0 || tles.max() == 0 {
            return None;
        }
        let stock = Stock::of(self)?;
        let available = stock.reservable(Resource::Tles);
        if tles.reserved() > available {
            return Some(Shortage::Reservation {
                resource: Resource::Tles,
                requested: tles.reserved(),
                available,
            });
        }
        (stock.taken.tle_pools_left() == 0).then_some(Shortage::TlePools)
    }
}

/// With drivers up to SHS 13.0 a disabled service holds places, too.
fn slots(services: &[Service], proven: Capabilities) -> usize {
    let frees_disabled = proven.contains(Capabilities::DISABLED_VNIS_OFF);
    services
        .iter()
        .filter(|service| service.is_enabled() || !frees_disabled)
        .map(|service| usize::from(service.descriptor().num_vld_vnis))
        .sum()
}

fn first_short(
    wanted: &ResourceMap<Limit>,
    available: &[u16; 8],
) -> Option<(Resource, Limit, u16)> {
    let available = ResourceMap::from(*available);
    Resource::CHECK_ORDER
        .into_iter()
        .map(|resource| (resource, wanted[resource], available[resource]))
        .find(|(_, limit, available)| limit.reserved() > *available)
}

impl Stock {
    /// Lists the services; `None` if the NIC does not answer.
    pub(crate) fn of(services: &Services) -> Option<Self> {
        let device = &services.device;
        let totals = device.totals().ok()?;
        let proven = device.proven_capabilities().ok()?;
        let list = services.list_without_ranges().ok()?;
        Some(Self {
            totals,
            taken: device.reservations(&list).ok()?,
            vni_slots: slots(&list, proven),
            proven,
        })
    }

    /// Returns whether the driver itself says that no pool is left.
    fn names_pools(&self) -> bool {
        self.proven.contains(Capabilities::POOL_FLAGS)
    }

    fn reservable(&self, resource: Resource) -> u16 {
        let left = self.taken.reservable(resource, self.totals[resource].into());
        u16::try_from(left).unwrap_or(u16::MAX)
    }

    /// Returns the resource that the driver did not name, in the order in which it checks.
    fn unnamed(&self, wanted: &ResourceMap<Limit>, own_slots: usize) -> Shortage {
        let (les, tles) = (wanted[Resource::Les], wanted[Resource::Tles]);
        if !self.names_pools() && les.max() > 0 && self.taken.le_pools_left() == 0 {
            return Shortage::LePools;
        }
        let reservable = self.reservable(Resource::Tles);
        if tles.reserved() > reservable {
            return Shortage::Reservation {
                resource: Resource::Tles,
                requested: tles.reserved(),
                available: reservable,
            };
        }
        if !self.names_pools() && tles.max() > 0 && self.taken.tle_pools_left() == 0 {
            return Shortage::TlePools;
        }
        if self.vni_slots + own_slots > VNI_SLOTS {
            return Shortage::VniTable { used: self.vni_slots };
        }
        Shortage::Unclear { vni_slots: self.vni_slots }
    }
}

impl VniConflict {
    /// Finds a service that has one of the VNIs. `counts` says which overlaps matter.
    pub(crate) fn find<'a>(
        services: impl IntoIterator<Item = &'a Service>,
        wanted: &[VniRange],
        counts: impl Fn(VniRange, VniRange) -> bool,
    ) -> Option<Self> {
        services.into_iter().find_map(|service| {
            let held = match service.vnis() {
                VniAccess::Range(range) => vec![range],
                // SHS 13.0 claims the listed VNIs even where the list does not restrict.
                _ => service.listed_vnis().iter().map(VniRange::from).collect(),
            };
            wanted.iter().find_map(|wanted| {
                let hits = |held: &&VniRange| wanted.overlaps(**held) && counts(*wanted, **held);
                Some(Self {
                    wanted: *wanted,
                    holder: Some(service.id()),
                    held: Some(*held.iter().find(hits)?),
                })
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ServiceId;
    use crate::pools::{LE_POOLS, TLE_POOLS};

    const OLD: Capabilities = Capabilities::empty();
    const NEW: Capabilities = Capabilities::FROM_13_1;

    /// A NIC with room for everything.
    fn room(proven: Capabilities) -> Stock {
        Stock {
            totals: ResourceMap::from_fn(|_| 100),
            taken: Reservations::default(),
            vni_slots: 0,
            proven,
        }
    }

    fn wanting(resource: Resource, limit: Limit) -> ResourceMap<Limit> {
        let mut wanted = ResourceMap::default();
        wanted[resource] = limit;
        wanted
    }

    #[test]
    fn pools_are_out_only_where_the_driver_does_not_say_so_itself() {
        let (les, tles) = (Limit::at_most(1), Limit::exactly(8));
        let les = wanting(Resource::Les, les);
        let tles = wanting(Resource::Tles, tles);
        let none = ResourceMap::default();
        let unclear = Shortage::Unclear { vni_slots: 0 };
        // The default service may have LEs, and its pool is not one of the fifteen; its TLE pool
        // is one of the four.
        let full = LE_POOLS + 1;
        for (having, services, wanted, old, expected) in [
            (&les, full - 1, &les, true, &unclear),
            (&les, full, &les, true, &Shortage::LePools),
            (&les, full, &les, false, &unclear),
            (&les, full, &none, true, &unclear),
            (&tles, TLE_POOLS - 1, &tles, true, &unclear),
            (&tles, TLE_POOLS, &tles, true, &Shortage::TlePools),
            (&tles, TLE_POOLS, &tles, false, &unclear),
            (&tles, TLE_POOLS, &none, true, &unclear),
        ] {
            let ids = (1..).take(services).map(|id| ServiceId::new(id).unwrap());
            let services = ids.map(|id| (id, *having));
            let stock = Stock {
                taken: Reservations::from_services(services, old),
                ..room(if old { OLD } else { NEW })
            };
            assert_eq!(&stock.unnamed(wanted, 0), expected, "{stock:?} {wanted:?}");
        }
    }

    #[test]
    fn what_just_fits_is_not_short() {
        let tles = |count| wanting(Resource::Tles, Limit::exactly(count));
        let unclear = Shortage::Unclear { vni_slots: 0 };
        assert_eq!(room(NEW).unnamed(&tles(100), 0), unclear);
        let short =
            Shortage::Reservation { resource: Resource::Tles, requested: 101, available: 100 };
        assert_eq!(room(NEW).unnamed(&tles(101), 0), short);

        let stock = Stock { vni_slots: VNI_SLOTS - 2, ..room(NEW) };
        let none = ResourceMap::default();
        let vni_slots = VNI_SLOTS - 2;
        assert_eq!(stock.unnamed(&none, 2), Shortage::Unclear { vni_slots });
        let full = Shortage::VniTable { used: vni_slots };
        assert_eq!(stock.unnamed(&none, 3), full);
    }
}
