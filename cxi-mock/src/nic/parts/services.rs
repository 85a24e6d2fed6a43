//! The services with their resource groups, and what is reserved for them.

use std::collections::BTreeMap;

use cxi_ioctl::Errno;
use cxi_ioctl::abi::service::{DEFAULT_SVC_ID, RSRC_LE, RSRC_TLE, RsrcLimits, SvcFailInfo};

use super::accounting::{Accounting, Reservation, Slot};
use super::group::Group;
use super::ids::{Ids, count};
use super::pools::Pools;
use super::vnis::Vnis;
use crate::nic::inconsistency::Inconsistency;
use crate::rules::Rules;
use crate::state::ResourceState;

/// More than a driver could make, so that a broken snapshot cannot demand unlimited memory.
const MOST_SERVICES: u32 = 1 << 20;
/// Highest id of a service.
const LAST_ID: u32 = i32::MAX.unsigned_abs();

/// All services by id, each with its group.
#[derive(Clone, Debug)]
pub(crate) struct Services {
    ids: Ids,
    groups: BTreeMap<u32, Group>,
    next_seq: u64,
    accounting: Accounting,
    pools: Pools,
}

impl Services {
    /// No services, and nothing reserved of these totals.
    pub(crate) fn new(totals: RsrcLimits) -> Self {
        Self {
            ids: Ids::new(DEFAULT_SVC_ID, LAST_ID),
            groups: BTreeMap::new(),
            next_seq: 0,
            accounting: Accounting::new(totals),
            pools: Pools::default(),
        }
    }

    /// The device totals, as maxima.
    pub(crate) fn totals(&self) -> RsrcLimits {
        self.accounting.totals()
    }

    pub(crate) fn count(&self) -> u32 {
        count(self.groups.len())
    }

    /// The id of the next service; ENOSPC when all are taken.
    pub(crate) fn next_id(&self) -> Result<u32, Errno> {
        self.ids.peek().ok_or(Errno::ENOSPC)
    }

    /// Adds a service under the [next](Self::next_id) id, as the youngest.
    pub(crate) fn add(&mut self, group: Group) {
        if let Some(id) = self.ids.alloc() {
            self.put(id, group);
        }
    }

    fn put(&mut self, id: u32, mut group: Group) {
        group.seq = self.next_seq;
        self.next_seq += 1;
        self.groups.insert(id, group);
    }

    pub(crate) fn remove(&mut self, id: u32) -> Option<Group> {
        let group = self.groups.remove(&id)?;
        self.ids.free(id);
        Some(group)
    }

    /// EINVAL for an unknown service.
    pub(crate) fn get(&self, id: u32) -> Result<&Group, Errno> {
        self.groups.get(&id).ok_or(Errno::EINVAL)
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> Result<&mut Group, Errno> {
        self.groups.get_mut(&id).ok_or(Errno::EINVAL)
    }

    /// As [`get`](Self::get); EBUSY while the service has LNIs.
    pub(crate) fn idle(&self, id: u32) -> Result<&Group, Errno> {
        let group = self.get(id)?;
        if group.lnis > 0 {
            return Err(Errno::EBUSY);
        }
        Ok(group)
    }

    /// All services by id.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Group)> {
        self.groups.iter().map(|(id, group)| (*id, group))
    }

    /// All services in the order that lists have: by id, or oldest first.
    pub(crate) fn listed(&self, by_id: bool) -> Vec<(u32, &Group)> {
        let mut groups: Vec<_> = self.iter().collect();
        if !by_id {
            groups.sort_unstable_by_key(|(_, group)| group.seq);
        }
        groups
    }

    /// Returns whether [`charge`](Self::charge) would succeed.
    pub(crate) fn may_charge(&self, svc: u32, slot: Slot) -> Result<(), Errno> {
        let group = self.get(svc)?;
        if !group.is_enabled() {
            return Err(Errno::EKEYREVOKED);
        }
        self.accounting.may_charge(&group.reserved.entries, slot)
    }

    /// Charges a unit to a service.
    pub(crate) fn charge(&mut self, svc: u32, slot: Slot) -> Result<(), Errno> {
        let group = self.groups.get_mut(&svc).ok_or(Errno::EINVAL)?;
        if !group.is_enabled() {
            return Err(Errno::EKEYREVOKED);
        }
        self.accounting.charge(&mut group.reserved.entries, slot)
    }

    /// Gives a unit back.
    pub(crate) fn refund(&mut self, svc: u32, slot: Slot) {
        if let Some(group) = self.groups.get_mut(&svc) {
            self.accounting.refund(&mut group.reserved.entries, slot);
        }
    }

    /// Reserves what a new service is to have. `info` receives what was short.
    pub(crate) fn reserve(
        &mut self,
        id: u32,
        limits: &RsrcLimits,
        rules: &Rules,
        info: &mut SvcFailInfo,
    ) -> Result<Reservation, Errno> {
        let (available, fits) = self.accounting.available(limits);
        info.rsrc_avail = available;
        fits?;
        let mut reservation = Reservation::default();
        for slot in Slot::all() {
            if let Err(errno) = self.reserve_slot(id, slot, limits, &mut reservation, rules, info) {
                // When TLEs are short, the driver of SHS 12.0 forgets LE pools that it took without
                // a reservation.
                let leaks = slot == Slot::Tle
                    && rules.refusal_leaks_le_pools
                    && limits.types[RSRC_LE].res == 0;
                if leaks {
                    reservation.le_pools = None;
                }
                self.give_back(&mut reservation);
                return Err(errno);
            }
        }
        Ok(reservation)
    }

    fn reserve_slot(
        &mut self,
        id: u32,
        slot: Slot,
        limits: &RsrcLimits,
        reservation: &mut Reservation,
        rules: &Rules,
        info: &mut SvcFailInfo,
    ) -> Result<(), Errno> {
        let limit = limits.types[slot.resource()];
        if limit.max == 0 && limit.res == 0 {
            return Ok(());
        }
        if slot.resource() == RSRC_LE {
            if limit.res == 0 && !rules.le_pool_for_max {
                return Ok(());
            }
            // A pool on all four processing elements is taken at once, with the first of their
            // slots.
            if reservation.le_pools.is_none() {
                reservation.le_pools = match id {
                    DEFAULT_SVC_ID => Some(self.pools.take_default_le()),
                    _ => self.pools.take_le(),
                };
            }
            if reservation.le_pools.is_none() {
                info.no_le_pools = rules.pool_flags.into();
                return Err(Errno::ENOSPC);
            }
        }
        self.accounting.reserve(&mut reservation.entries, slot, limits)?;
        if slot.resource() == RSRC_TLE {
            reservation.tle_pool = match id {
                DEFAULT_SVC_ID => Some(self.pools.take_default_tle()),
                _ => self.pools.take_tle(),
            };
            if reservation.tle_pool.is_none() {
                info.no_tle_pools = rules.pool_flags.into();
                return Err(Errno::ENOSPC);
            }
        }
        Ok(())
    }

    /// Returns everything that a service has.
    pub(crate) fn give_back(&mut self, reservation: &mut Reservation) {
        self.accounting.release(&mut reservation.entries);
        if let Some(pools) = reservation.le_pools {
            self.pools.give_le(pools);
        }
        if let Some(pool) = reservation.tle_pool {
            self.pools.give_tle(pool);
        }
    }

    /// Restores the services of a snapshot, which keep only profiles that exist, and the leaked
    /// pools.
    pub(crate) fn restore(
        &mut self,
        snapshot: &BTreeMap<u32, Group>,
        pools: &Pools,
        vnis: &Vnis,
    ) -> Result<(), Inconsistency> {
        let what = "service";
        let mut groups: Vec<_> = snapshot.iter().collect();
        groups.sort_by_key(|(_, group)| group.seq);
        for (&id, group) in groups {
            if !(DEFAULT_SVC_ID..MOST_SERVICES).contains(&id) {
                return Err(Inconsistency::Number { what, id });
            }
            group.access.check().map_err(|errno| Inconsistency::Access { what, id, errno })?;
            for pair in group.profiles {
                let tx = pair.tx.id().filter(|tx| vnis.tx().get(*tx).is_none());
                let rx = pair.rx.id().filter(|rx| vnis.rx().get(*rx).is_none());
                if let Some(profile) = tx.or(rx) {
                    let service = id;
                    return Err(Inconsistency::NoProfile { service, profile });
                }
            }
            let mut group = group.without_users();
            group.desc.svc_id = id;
            self.claim(id, &mut group)?;
            self.put(id, group);
        }
        if !self.groups.contains_key(&DEFAULT_SVC_ID) {
            return Err(Inconsistency::NoDefaultService);
        }
        let ids = snapshot.keys().copied().collect();
        self.ids = Ids::with_taken(DEFAULT_SVC_ID, LAST_ID, &ids);
        self.pools.mark(pools);
        Ok(())
    }

    /// Takes what a service of a snapshot had, if there is enough of it and it is free.
    fn claim(&mut self, service: u32, group: &mut Group) -> Result<(), Inconsistency> {
        let (limits, reserved) = (&group.desc.limits, &mut group.reserved);
        let refused = Inconsistency::Limits { service };
        for slot in Slot::all() {
            let limit = limits.types[slot.resource()];
            let left_out = (limit.max == 0 && limit.res == 0)
                || (slot.resource() == RSRC_LE && reserved.le_pools.is_none());
            let total = self.totals().types[slot.resource()].max;
            let fits = limit.res <= limit.max && limit.max <= total;
            let fits = fits && {
                let entries = &mut reserved.entries;
                left_out || self.accounting.reserve(entries, slot, limits).is_ok()
            };
            if !fits {
                return Err(refused);
            }
        }
        if reserved.tle_pool.is_some() != (limits.types[RSRC_TLE].max > 0) {
            return Err(refused);
        }
        let pool_taken = |what, pool: u8| {
            let id = pool.into();
            Err(Inconsistency::Number { what, id })
        };
        match (reserved.le_pools, reserved.tle_pool) {
            (Some(pools), _) if !self.pools.claim_le(pools) => pool_taken("LE pool", pools[0]),
            (_, Some(pool)) if !self.pools.claim_tle(pool) => pool_taken("TLE pool", pool),
            _ => Ok(()),
        }
    }

    /// Device-wide accounting by resource.
    pub(crate) fn resources(&self) -> impl Iterator<Item = (&'static str, ResourceState)> {
        self.accounting.states()
    }

    pub(crate) fn pools(&self) -> &Pools {
        &self.pools
    }
}
