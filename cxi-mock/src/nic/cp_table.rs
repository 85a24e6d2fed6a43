//! The CP table of the device: LNIs share an entry for the same traffic.

use std::collections::BTreeMap;

use cxi_ioctl::Errno;

use super::Device;
use super::ids::Ids;
use super::table::Table;

/// Entries of the CP table; entry 0 is not handed out.
const CP_TABLE: u32 = 256;

/// What a CP call asks for, once it is known to be plausible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Traffic {
    pub(super) vni: u16,
    pub(super) tc: u32,
    pub(super) tc_type: u32,
}

/// An entry of the CP table.
#[derive(Clone, Debug)]
pub(super) struct Cp {
    pub(super) tx: Option<u32>,
    pub(super) traffic: Traffic,
    /// LCIDs that stand for it.
    pub(super) lcids: u32,
    /// Not for others to share.
    pub(super) exclusive: bool,
}

/// The CP table.
#[derive(Clone, Debug)]
pub(crate) struct Cps {
    ids: Ids,
    pub(super) table: Table<Cp>,
    shared: BTreeMap<(Option<u32>, Traffic), u32>,
}

impl Cps {
    pub(crate) fn new() -> Self {
        Self {
            ids: Ids::new(1, CP_TABLE),
            table: Table::default(),
            shared: BTreeMap::new(),
        }
    }

    pub(crate) fn used(&self) -> u32 {
        self.table.count()
    }
}

impl Device {
    /// An entry of the CP table for the traffic: one that may be shared, or a new one.
    pub(super) fn enter_cp(&mut self, tx: Option<u32>, traffic: Traffic) -> Result<u32, Errno> {
        let exclusive = tx
            .and_then(|id| self.tx.get(id))
            .is_some_and(|tx| tx.extra.exclusive_cp);
        let key = (tx, traffic);
        if !exclusive
            && let Some(id) = self.cps.shared.get(&key).copied()
            && let Some(cp) = self.cps.table.get_mut(id)
        {
            cp.lcids += 1;
            return Ok(id);
        }
        let id = self.cps.ids.alloc().ok_or(Errno::ENOSPC)?;
        self.cps.table.put(
            id,
            Cp {
                tx,
                traffic,
                lcids: 1,
                exclusive,
            },
        );
        if !exclusive {
            self.cps.shared.insert(key, id);
            if let Some(tx) = tx.and_then(|id| self.tx.get_mut(id)) {
                tx.extra.cps += 1;
            }
        }
        Ok(id)
    }

    pub(super) fn leave_cp(&mut self, id: u32) {
        let Some(cp) = self.cps.table.get_mut(id) else {
            return;
        };
        cp.lcids = cp.lcids.saturating_sub(1);
        if cp.lcids > 0 {
            return;
        }
        if let Some(cp) = self.cps.table.remove(id) {
            if !cp.exclusive {
                self.cps.shared.remove(&(cp.tx, cp.traffic));
                if let Some(tx) = cp.tx.and_then(|id| self.tx.get_mut(id)) {
                    tx.extra.cps = tx.extra.cps.saturating_sub(1);
                }
            }
            self.cps.ids.free(id);
        }
    }
}
