//! The services with their resource groups, and what is reserved for them.

use std::collections::BTreeMap;

use cxi_ioctl::Errno;
use cxi_ioctl::abi::service::{DEFAULT_SVC_ID, Limits, RSRC_LE, RSRC_TLE, RsrcLimits, SvcFailInfo};

use super::accounting::{Accounting, Entries, Reservation, Slot};
use super::group::Group;
use super::ids::Ids;
use super::pools::{ELEMENTS, LePools, Pools};
use super::table::Table;
use crate::rules::{LePoolWhen, ListOrder, Rules};
use crate::state::ResourceState;

/// Highest id of a service.
const LAST_ID: u32 = i32::MAX.unsigned_abs();

/// All services by id, each with its group.
#[derive(Clone, Debug)]
pub(crate) struct Services {
    ids: Ids,
    groups: Table<Box<Group>>,
    next_seq: u64,
    accounting: Accounting,
    pools: Pools,
}

impl Services {
    /// No service, and nothing reserved of these totals.
    pub(crate) fn new(totals: RsrcLimits) -> Self {
        Self {
            ids: Ids::new(DEFAULT_SVC_ID, LAST_ID),
            groups: Table::default(),
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
        self.groups.count()
    }

    /// The id of the next service; ENOSPC when all are taken.
    pub(crate) fn next_id(&self) -> Result<u32, Errno> {
        self.ids.peek().ok_or(Errno::ENOSPC)
    }

    /// Adds a service as the youngest under the [next](Self::next_id) id.
    pub(crate) fn add(&mut self, group: Box<Group>) {
        if let Some(id) = self.ids.alloc() {
            self.put(id, group);
        }
    }

    fn put(&mut self, id: u32, mut group: Box<Group>) {
        group.seq = self.next_seq;
        self.next_seq += 1;
        self.groups.put(id, group);
    }

    pub(crate) fn remove(&mut self, id: u32) -> Option<Box<Group>> {
        let group = self.groups.remove(id)?;
        self.ids.free(id);
        Some(group)
    }

    /// EINVAL for an unknown service.
    pub(crate) fn get(&self, id: u32) -> Result<&Group, Errno> {
        self.groups
            .get(id)
            .map(|group| &**group)
            .ok_or(Errno::EINVAL)
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> Result<&mut Group, Errno> {
        self.groups
            .get_mut(id)
            .map(|group| &mut **group)
            .ok_or(Errno::EINVAL)
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
        self.groups.iter().map(|(id, group)| (id, &**group))
    }

    /// All services in the order that lists have.
    pub(crate) fn listed(&self, order: ListOrder) -> Vec<(u32, &Group)> {
        let mut groups: Vec<_> = self.iter().collect();
        if order == ListOrder::Allocation {
            groups.sort_unstable_by_key(|(_, group)| group.seq);
        }
        groups
    }

    /// Whether [`charge`](Self::charge) would succeed.
    pub(crate) fn may_charge(&self, svc: u32, slot: Slot) -> Result<(), Errno> {
        let group = self.get(svc)?;
        if !group.enabled {
            return Err(Errno::EKEYREVOKED);
        }
        self.accounting.may_charge(&group.reserved.entries, slot)
    }

    /// Charges a unit to a service.
    pub(crate) fn charge(&mut self, svc: u32, slot: Slot) -> Result<(), Errno> {
        let group = self.groups.get_mut(svc).ok_or(Errno::EINVAL)?;
        if !group.enabled {
            return Err(Errno::EKEYREVOKED);
        }
        self.accounting.charge(&mut group.reserved.entries, slot)
    }

    /// Gives a unit back.
    pub(crate) fn refund(&mut self, svc: u32, slot: Slot) {
        if let Some(group) = self.groups.get_mut(svc) {
            self.accounting.refund(&mut group.reserved.entries, slot);
        }
    }

    /// Reserves what a new service is to have. `info` tells what was short.
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
        for slot in Slot::ALL {
            if let Err(errno) = self.reserve_slot(id, slot, limits, &mut reservation, rules, info) {
                // The driver of SHS 12.0 forgets LE pools that it took without a reservation when
                // it is TLEs that are short.
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
            if !takes_le_pool(limit, rules) {
                return Ok(());
            }
            // One pool on each processing element at once, with the first of their four slots.
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
        self.accounting
            .reserve(&mut reservation.entries, slot, limits)?;
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

    /// Gives back what a service has.
    pub(crate) fn give_back(&mut self, reservation: &mut Reservation) {
        self.accounting.release(&mut reservation.entries);
        if let Some(pools) = reservation.le_pools {
            self.pools.give_le(pools);
        }
        if let Some(pool) = reservation.tle_pool {
            self.pools.give_tle(pool);
        }
    }

    /// Takes what a service of a snapshot had. Says which of its pools is taken by another one or
    /// does not exist; limits that there is no room for are `None`.
    pub(crate) fn claim(
        &mut self,
        limits: &RsrcLimits,
        le_pools: Option<LePools>,
        tle_pool: Option<u8>,
    ) -> Result<Reservation, Option<(&'static str, u8)>> {
        let mut entries = Entries::default();
        for slot in Slot::ALL {
            let limit = limits.types[slot.resource()];
            let left_out = (limit.max == 0 && limit.res == 0)
                || (slot.resource() == RSRC_LE && le_pools.is_none());
            let total = self.totals().types[slot.resource()].max;
            if limit.max < limit.res || limit.max > total {
                return Err(None);
            }
            if !left_out {
                let reserved = self.accounting.reserve(&mut entries, slot, limits);
                reserved.map_err(|_| None)?;
            }
        }
        if tle_pool.is_some() != (limits.types[RSRC_TLE].max > 0) {
            return Err(None);
        }
        if let Some(pools) = le_pools
            && !self.pools.claim_le(pools)
        {
            return Err(Some(("LE pool", pools[0])));
        }
        if let Some(pool) = tle_pool
            && !self.pools.claim_tle(pool)
        {
            return Err(Some(("TLE pool", pool)));
        }
        Ok(Reservation {
            entries,
            le_pools,
            tle_pool,
        })
    }

    /// Adds the services of a snapshot, oldest first, with pools that are leaked.
    pub(crate) fn restore(
        &mut self,
        groups: BTreeMap<u32, Box<Group>>,
        leaked: ([u32; ELEMENTS], u32),
    ) {
        let ids = groups.keys().copied().collect();
        self.ids = Ids::with_taken(DEFAULT_SVC_ID, LAST_ID, &ids);
        self.pools.mark(&leaked.0, leaked.1);
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by_key(|(_, group)| group.seq);
        for (id, group) in groups {
            self.put(id, group);
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

/// Whether a limit that allows LEs takes a pool.
fn takes_le_pool(les: Limits, rules: &Rules) -> bool {
    match rules.le_pool_when {
        LePoolWhen::Reserved => les.res > 0,
        LePoolWhen::Max => true,
    }
}
