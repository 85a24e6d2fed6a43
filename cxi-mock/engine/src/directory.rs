//! From the VNI, PID and portal index of a packet to its PtlTE.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use cxi_hw::ReturnCode;

use crate::packet::Request;

/// A destination within a receive profile: a portal index of a PID, or a multicast address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    Index(u16, u16),
    Multicast(u32),
}

impl Place {
    fn of(request: &Request) -> Self {
        match request.multicast {
            Some(multicast) => Self::Multicast(multicast.offset()),
            None => Self::Index(request.pid, request.index),
        }
    }
}

/// VNIs that are received, and what is mapped on them.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    /// By the number of the receive profile. There are so few that each lookup walks through all.
    profiles: Vec<(u32, RangeInclusive<u16>)>,
    portals: BTreeMap<(u32, Place), u16>,
}

impl Directory {
    pub(crate) fn add(&mut self, profile: u32, vnis: RangeInclusive<u16>) {
        self.remove(profile);
        self.profiles.push((profile, vnis));
    }

    pub(crate) fn remove(&mut self, profile: u32) {
        self.profiles.retain(|(other, _)| *other != profile);
    }

    pub(crate) fn map(&mut self, profile: u32, place: Place, portal: u16) {
        // Rule 1.4: A PtlTE may be mapped to several portal indices.
        self.portals.insert((profile, place), portal);
    }

    pub(crate) fn unmap(&mut self, profile: u32, place: Place) {
        self.portals.remove(&(profile, place));
    }

    pub(crate) fn find(&self, request: &Request) -> Result<u16, ReturnCode> {
        let place = Place::of(request);
        // Rule 5.4: VNI_NOT_FOUND means that no domain receives the VNI, PTLTE_NOT_FOUND that
        // nothing is mapped there, and UNDELIVERABLE that there is no such NIC.
        let mut error = ReturnCode::VNI_NOT_FOUND;
        for (profile, vnis) in &self.profiles {
            if !vnis.contains(&request.vni) {
                continue;
            }
            error = ReturnCode::PTLTE_NOT_FOUND;
            if let Some(portal) = self.portals.get(&(*profile, place)) {
                return Ok(*portal);
            }
        }
        Err(error)
    }
}
