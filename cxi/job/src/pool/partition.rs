//! One share of a pool: what is free in it, and where to look next.

use crate::{IdSet, TenantName};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Partition {
    pub(super) tenant: Option<TenantName>,
    pub(super) vnis: IdSet,
    pub(super) free: IdSet,
    pub(super) next: u16,
    pub(super) reserved: usize,
    pub(super) draining: usize,
}

impl Partition {
    pub(super) const fn new(tenant: Option<TenantName>, vnis: IdSet, free: IdSet) -> Self {
        Self {
            tenant,
            vnis,
            free,
            next: 0,
            reserved: 0,
            draining: 0,
        }
    }

    /// The next free VNIs, round robin; `None` if there are fewer.
    pub(super) fn pick(&self, count: u16) -> Option<Vec<u16>> {
        let count = usize::from(count);
        if self.free.len() < count {
            return None;
        }
        let mut from = self.next;
        let mut picked = Vec::with_capacity(count);
        while picked.len() < count {
            let id = self.free.next_from(from).or_else(|| self.free.first())?;
            picked.push(id);
            from = id.wrapping_add(1);
        }
        Some(picked)
    }

    /// The first VNI of the next free aligned block, round robin.
    pub(super) fn pick_block(&self, size: u16) -> Option<u16> {
        self.free
            .next_block_from(self.next, size)
            .or_else(|| self.free.next_block_from(0, size))
    }

    pub(super) fn passed(&mut self, id: u16) {
        self.next = id.wrapping_add(1);
    }
}
