//! Portal table entries and their mappings.

use std::collections::BTreeSet;

use cxi_ioctl::Errno;

use super::objects::{Object, Objects};

/// Counters for entries whose lists are neither matched nor checked for space.
const LIST_COUNTERS: u32 = 256;

/// A portal table entry; mappings are its users.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pte {
    pub(crate) eq: u32,
    /// Its multicast address.
    pub(crate) multicast: Option<u32>,
    /// `true` if it has a counter for lists without matching.
    pub(crate) counted: bool,
    /// `true` if it receives Ethernet frames.
    pub(crate) ethernet: bool,
    /// Its processing element.
    pub(crate) element: u8,
}

/// A mapping of a portal table entry into a domain, or to a multicast address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PteMap {
    pub(crate) pte: u32,
    pub(crate) domain: u32,
    pub(crate) offset: u32,
    pub(crate) multicast: bool,
}

/// All portal table entries.
#[derive(Debug)]
pub(crate) struct Portals {
    pub(crate) ptes: Objects<Pte>,
    pub(crate) maps: Objects<PteMap>,
    /// Multicast addresses that are taken.
    multicast: BTreeSet<u32>,
    /// Entries with a counter for lists without matching.
    counted: u32,
}

impl Portals {
    /// Entry 0 counts as one of the total, but is never used.
    pub(crate) fn new(total: u16) -> Self {
        Self {
            ptes: Objects::new(1, total.into()),
            maps: Objects::new(0, u32::MAX),
            multicast: BTreeSet::new(),
            counted: 0,
        }
    }

    /// Takes a counter for lists without matching, if one is left. An entry works without one, too.
    pub(crate) fn take_counter(&mut self) -> bool {
        let taken = self.counted < LIST_COUNTERS;
        self.counted += u32::from(taken);
        taken
    }

    /// Counters for lists without matching that are in use.
    pub(crate) fn counters_used(&self) -> u32 {
        self.counted
    }

    /// Removes an entry, as [`Objects::take`] does.
    pub(crate) fn take(&mut self, file: u32, id: u32) -> Result<Object<Pte>, Errno> {
        let pte = self.ptes.take(file, id)?;
        self.counted -= u32::from(pte.counted);
        Ok(pte)
    }

    /// Adds a mapping; ENOSPC for a multicast address that is taken.
    pub(crate) fn map(&mut self, file: u32, map: PteMap) -> Result<u32, Errno> {
        if map.multicast && !self.multicast.insert(map.offset) {
            return Err(Errno::ENOSPC);
        }
        let id = self.maps.add((file, 0), map)?;
        self.ptes.hold(map.pte);
        if let Some(pte) = self.ptes.get_mut(map.pte)
            && map.multicast
        {
            pte.multicast = Some(map.offset);
        }
        Ok(id)
    }

    pub(crate) fn unmap(&mut self, file: u32, id: u32) -> Result<PteMap, Errno> {
        let map = self.maps.remove(file, id)?.into_inner();
        self.ptes.release(map.pte);
        // The driver frees the entry's multicast address, whichever mapping this was.
        let pte = self.ptes.get_mut(map.pte);
        if let Some(address) = pte.and_then(|pte| pte.multicast.take()) {
            self.multicast.remove(&address);
        }
        Ok(map)
    }
}
