//! Portal table entries, and the pools of their list entries.

use cxi_engine::{EntryPool, PoolLimits, PortalStatus};
use cxi_ioctl::abi::service::Limits;

use super::{DataPath, small};

/// Processing elements of a NIC, each with its own list entries.
pub(crate) const ELEMENTS: u8 = 4;

fn limits(limit: Limits) -> PoolLimits {
    PoolLimits { reserved: limit.res, max: limit.max }
}

impl DataPath {
    /// PTE_STATUS.
    pub(crate) fn portal_status(&self, id: u32) -> PortalStatus {
        let mut state = self.state();
        state.engine.poll();
        state.engine.run_until_idle();
        state.engine.portal_status(small(id)).unwrap_or_default()
    }

    /// Sets how many list entries a service has on each processing element.
    pub(crate) fn set_entry_pools(&self, pools: [u8; ELEMENTS as usize], limit: Limits) {
        let mut state = self.state();
        for (element, pool) in (0..).zip(pools) {
            let pool = EntryPool { element, pool };
            state.engine.set_entry_pool(pool, limits(limit));
        }
    }

    /// Sets how many entries for triggered commands a service has.
    pub(crate) fn set_triggered_pool(&self, pool: u8, limit: Limits) {
        let mut state = self.state();
        state.engine.set_triggered_pool(pool, limits(limit));
    }

    /// List entries in use in a pool of a processing element.
    pub(crate) fn entries_in_use(&self, element: u8, pool: u8) -> u16 {
        let pool = EntryPool { element, pool };
        self.state().engine.entries_in_use(pool)
    }

    /// Entries for triggered commands in use.
    pub(crate) fn triggered_in_use(&self, pool: u8) -> u16 {
        self.state().engine.triggered_in_use(pool)
    }
}
