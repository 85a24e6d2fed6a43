//! The CP table of the device: LNIs share an entry for the same traffic.

use std::collections::BTreeMap;

use cxi_ioctl::Errno;

use super::ids::{Ids, count};
use super::profile::Traffic;
use super::vnis::Vnis;
use crate::HazardKind;

/// Entries of the CP table; the driver never uses entry 0.
const CP_TABLE: u32 = 256;

/// An entry of the CP table.
#[derive(Clone, Debug)]
pub(crate) struct Cp {
    pub(crate) tx: Option<u32>,
    pub(crate) traffic: Traffic,
    /// Number of LCIDs that stand for it.
    lcids: u32,
}

/// The CP table.
#[derive(Clone, Debug)]
pub(crate) struct Cps {
    ids: Ids,
    table: BTreeMap<u32, Cp>,
    /// Entries that others may share, where there are no profiles.
    shared: BTreeMap<Traffic, u32>,
}

impl Cps {
    pub(crate) fn new() -> Self {
        Self { ids: Ids::new(1, CP_TABLE), table: BTreeMap::new(), shared: BTreeMap::new() }
    }

    pub(crate) fn used(&self) -> u32 {
        count(self.table.len())
    }

    pub(crate) fn get(&self, id: u32) -> Option<&Cp> {
        self.table.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> Option<&mut Cp> {
        self.table.get_mut(&id)
    }

    /// The entries of a profile that others may share.
    fn shared<'a>(
        &'a mut self,
        vnis: &'a mut Vnis,
        tx: Option<u32>,
    ) -> &'a mut BTreeMap<Traffic, u32> {
        match vnis.tx_mut(tx) {
            Some(tx) => &mut tx.extra.cps,
            None => &mut self.shared,
        }
    }

    /// The shared entry for the traffic. `Err` if it was freed, and the driver uses it.
    pub(crate) fn find(
        &mut self,
        vnis: &mut Vnis,
        tx: Option<u32>,
        traffic: Traffic,
    ) -> Result<Option<u32>, HazardKind> {
        let known = self.shared(vnis, tx).get(&traffic).copied();
        let Some(id) = known.filter(|_| !vnis.is_exclusive(tx)) else { return Ok(None) };
        // An entry that was freed and left in the list (see `leave`) may be another's by now.
        match self.table.get(&id) {
            Some(cp) if (cp.tx, cp.traffic) == (tx, traffic) => Ok(Some(id)),
            _ => Err(HazardKind::FreedCpUsed { vni: traffic.vni.into() }),
        }
    }

    /// Adds an LCID to the entry that was found, or to a new one.
    pub(crate) fn enter(
        &mut self,
        vnis: &mut Vnis,
        tx: Option<u32>,
        traffic: Traffic,
        found: Option<u32>,
    ) -> Result<u32, Errno> {
        if let Some(id) = found
            && let Some(cp) = self.table.get_mut(&id)
        {
            cp.lcids += 1;
            return Ok(id);
        }
        let id = self.ids.alloc().ok_or(Errno::ENOSPC)?;
        let lcids = 1;
        self.table.insert(id, Cp { tx, traffic, lcids });
        if !vnis.is_exclusive(tx) {
            self.shared(vnis, tx).insert(traffic, id);
        }
        Ok(id)
    }

    /// Removes an LCID from an entry, and frees the entry with the last one. The driver checks
    /// whether the profile is exclusive now, not whether it was when the entry was made. An entry
    /// that was shared then stays in the list, although it is freed.
    pub(crate) fn leave(&mut self, vnis: &mut Vnis, id: u32) -> Option<HazardKind> {
        let cp = self.table.get_mut(&id)?;
        cp.lcids = cp.lcids.saturating_sub(1);
        if cp.lcids > 0 {
            return None;
        }
        let Cp { tx, traffic, .. } = self.table.remove(&id)?;
        self.ids.free(id);
        let exclusive = vnis.is_exclusive(tx);
        let shared = self.shared(vnis, tx);
        if shared.get(&traffic) != Some(&id) {
            return None;
        }
        if exclusive {
            return Some(HazardKind::FreedCpInTable { vni: traffic.vni.into() });
        }
        shared.remove(&traffic);
        None
    }
}
