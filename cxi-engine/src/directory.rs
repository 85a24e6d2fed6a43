//! The way in: from VNI, PID and portal index to a PtlTE.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use cxi_hw::ReturnCode;

/// VNIs that are received, and what is mapped behind them.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    /// By the number of the receive profile; few enough to look at all.
    profiles: Vec<(u32, RangeInclusive<u16>)>,
    portals: BTreeMap<(u32, u16, u16), u16>,
}

impl Directory {
    pub(crate) fn add(&mut self, profile: u32, vnis: RangeInclusive<u16>) {
        self.remove(profile);
        self.profiles.push((profile, vnis));
    }

    pub(crate) fn remove(&mut self, profile: u32) {
        self.profiles.retain(|(other, _)| *other != profile);
    }

    pub(crate) fn map(&mut self, profile: u32, pid: u16, index: u16, portal: u16) {
        self.portals.insert((profile, pid, index), portal);
    }

    pub(crate) fn unmap(&mut self, profile: u32, pid: u16, index: u16) {
        self.portals.remove(&(profile, pid, index));
    }

    pub(crate) fn find(&self, vni: u16, pid: u16, index: u16) -> Result<u16, ReturnCode> {
        let mut error = ReturnCode::VNI_NOT_FOUND;
        for (profile, vnis) in &self.profiles {
            if !vnis.contains(&vni) {
                continue;
            }
            error = ReturnCode::PTLTE_NOT_FOUND;
            if let Some(portal) = self.portals.get(&(*profile, pid, index)) {
                return Ok(*portal);
            }
        }
        Err(error)
    }
}
