//! Pools: list entries for appends and unexpected messages, and for triggered commands.

use std::collections::BTreeMap;

use crate::{EntryCounts, EntryPool, PoolLimits, Settings};

/// A pool, and how many of its entries are in use.
#[derive(Clone, Copy, Debug)]
struct Pool {
    limits: PoolLimits,
    used: u16,
    /// Most that were in use at once since that was last taken.
    most: u16,
}

/// Pools of one store of entries: a part of them is reserved, the rest is shared.
#[derive(Debug)]
pub(crate) struct Store {
    total: u16,
    pools: BTreeMap<u8, Pool>,
}

impl Store {
    pub(crate) fn new(total: u16) -> Self {
        Self { total, pools: BTreeMap::new() }
    }

    fn pool(&mut self, pool: u8) -> &mut Pool {
        let limits = PoolLimits { reserved: 0, max: self.total };
        self.pools.entry(pool).or_insert(Pool { limits, used: 0, most: 0 })
    }

    pub(crate) fn limit(&mut self, pool: u8, limits: PoolLimits) {
        self.pool(pool).limits = limits;
    }

    pub(crate) fn used(&self, pool: u8) -> u16 {
        self.pools.get(&pool).map_or(0, |pool| pool.used)
    }

    /// Takes the most entries of a pool that were in use at once since it was last taken.
    pub(crate) fn take_most(&mut self, number: u8) -> u16 {
        self.pools.get_mut(&number).map_or(0, |pool| std::mem::replace(&mut pool.most, pool.used))
    }

    fn counts(&self) -> EntryCounts {
        let mut counts =
            EntryCounts { total: self.total, shared: self.total, ..EntryCounts::default() };
        for Pool { limits, used, .. } in self.pools.values() {
            counts.allocated += used;
            counts.shared = counts.shared.saturating_sub(limits.reserved);
            counts.shared_allocated += used.saturating_sub(limits.reserved);
        }
        counts
    }

    /// Takes an entry: from the pool's reserve first, then from the entries that no pool has
    /// reserved.
    pub(crate) fn take(&mut self, number: u8) -> bool {
        let pool = *self.pool(number);
        let counts = self.counts();
        let of_reserve = pool.used < pool.limits.reserved;
        let room = counts.shared_allocated < counts.shared;
        let granted = pool.used < pool.limits.max && (of_reserve || room);
        if granted {
            let pool = self.pool(number);
            pool.used += 1;
            pool.most = pool.most.max(pool.used);
        }
        granted
    }

    pub(crate) fn give(&mut self, number: u8, count: u16) {
        let pool = self.pool(number);
        pool.used = pool.used.saturating_sub(count);
    }
}

/// The pools of list entries: 16 on each processing element.
#[derive(Debug)]
pub(crate) struct Pools([Store; 4]);

impl Pools {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self(std::array::from_fn(|_| Store::new(settings.list_entries)))
    }

    fn element(&mut self, pool: EntryPool) -> &mut Store {
        &mut self.0[usize::from(pool.element) % 4]
    }

    pub(crate) fn limit(&mut self, pool: EntryPool, limits: PoolLimits) {
        self.element(pool).limit(pool.pool, limits);
    }

    pub(crate) fn counts(&self) -> impl Iterator<Item = EntryCounts> {
        self.0.iter().map(Store::counts)
    }

    pub(crate) fn used(&self, pool: EntryPool) -> u16 {
        self.0[usize::from(pool.element) % 4].used(pool.pool)
    }

    /// Entries that the pool may have.
    pub(crate) fn size(&mut self, pool: EntryPool) -> u16 {
        self.element(pool).pool(pool.pool).limits.max
    }

    pub(crate) fn take(&mut self, pool: EntryPool) -> bool {
        self.element(pool).take(pool.pool)
    }

    pub(crate) fn give(&mut self, pool: EntryPool, count: u16) {
        self.element(pool).give(pool.pool, count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_in_use_is_since_the_last_time_it_was_asked_for() {
        let mut store = Store::new(8);
        assert!((0..5).all(|_| store.take(2)));
        store.give(2, 4);
        assert_eq!((store.take_most(2), store.take_most(2), store.take_most(1)), (5, 1, 0));
        assert!(store.take(2));
        assert_eq!(store.take_most(2), 2);
    }
}
