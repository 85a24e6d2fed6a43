//! The CP table of the device: LNIs share an entry for the same traffic.

use std::collections::BTreeMap;

use cxi_ioctl::Errno;

use super::Device;
use super::ids::Ids;
use super::table::Table;
use crate::HazardKind;

/// Entries of the CP table; entry 0 is not handed out.
const CP_TABLE: u32 = 256;

/// What a CP call asks for, once it is known to be plausible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Traffic {
    pub(crate) vni: u16,
    pub(crate) tc: u32,
    pub(crate) tc_type: u32,
}

/// An entry of the CP table.
#[derive(Clone, Debug)]
pub(super) struct Cp {
    pub(super) tx: Option<u32>,
    pub(super) traffic: Traffic,
    /// LCIDs that stand for it.
    pub(super) lcids: u32,
}

/// The CP table.
#[derive(Clone, Debug)]
pub(crate) struct Cps {
    ids: Ids,
    pub(super) table: Table<Cp>,
    /// Entries that others may share, where there are no profiles.
    shared: BTreeMap<Traffic, u32>,
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
    /// Whether a profile gives every LNI an entry of its own.
    pub(super) fn is_exclusive(&self, tx: Option<u32>) -> bool {
        let tx = tx.and_then(|id| self.tx.get(id));
        tx.is_some_and(|tx| tx.extra.exclusive_cp)
    }

    /// The entries of a profile that others may share.
    fn shared_cps(&mut self, tx: Option<u32>) -> &mut BTreeMap<Traffic, u32> {
        match tx.and_then(|id| self.tx.get_mut(id)) {
            Some(tx) => &mut tx.extra.cps,
            None => &mut self.cps.shared,
        }
    }

    /// An entry of the CP table for the traffic: one that may be shared, or a new one.
    pub(super) fn enter_cp(&mut self, tx: Option<u32>, traffic: Traffic) -> Result<u32, Errno> {
        let exclusive = self.is_exclusive(tx);
        if !exclusive && let Some(id) = self.shared_cps(tx).get(&traffic).copied() {
            let cp = self.cps.table.get_mut(id);
            if let Some(cp) = cp.filter(|cp| (cp.tx, cp.traffic) == (tx, traffic)) {
                cp.lcids += 1;
                return Ok(id);
            }
            self.hazard(HazardKind::FreedCpUsed {
                vni: traffic.vni.into(),
            });
        }
        let id = self.cps.ids.alloc().ok_or(Errno::ENOSPC)?;
        let cp = Cp {
            tx,
            traffic,
            lcids: 1,
        };
        self.cps.table.put(id, cp);
        if !exclusive {
            self.shared_cps(tx).insert(traffic, id);
        }
        Ok(id)
    }

    /// Lets go of an entry. The driver looks at what the profile is now, not at what it was when
    /// the entry was made.
    pub(super) fn leave_cp(&mut self, id: u32) {
        let Some(cp) = self.cps.table.get_mut(id) else {
            return;
        };
        cp.lcids = cp.lcids.saturating_sub(1);
        if cp.lcids > 0 {
            return;
        }
        let Some(Cp { tx, traffic, .. }) = self.cps.table.remove(id) else {
            return;
        };
        self.cps.ids.free(id);
        let exclusive = self.is_exclusive(tx);
        let shared = self.shared_cps(tx);
        if shared.get(&traffic) == Some(&id) {
            if exclusive {
                self.hazard(HazardKind::FreedCpInTable {
                    vni: traffic.vni.into(),
                });
            } else {
                shared.remove(&traffic);
            }
        }
    }
}
