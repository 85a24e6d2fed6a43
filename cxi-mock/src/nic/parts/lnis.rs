//! Logical network interfaces, and what they keep of their freed objects.

use std::collections::VecDeque;

use super::ids::count;
use super::mapping::Kind;
use super::objects::Objects;
use super::vnis::PidsOf;
use crate::data_path::ELEMENTS;

/// An LNI.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lni {
    pub(crate) svc: u32,
    pub(crate) rgid: u32,
    /// The RGID that the driver believes the LNI to have, if that is wrong.
    pub(crate) wrong_rgid: Option<u32>,
    /// Freed command queues, which keep number and credit until they are quiet.
    pub(crate) freed_cqs: Vec<FreedCq>,
    /// Event queue numbers to reuse, oldest first.
    pub(crate) free_eqs: VecDeque<FreeEq>,
    /// Portal table entries to reuse, oldest first.
    pub(crate) free_ptes: VecDeque<u32>,
    /// The processing element of its next portal table entry.
    pub(crate) next_element: u8,
    /// Numbers of freed counters, which the driver does not reuse.
    pub(crate) dead_cts: Vec<u32>,
    /// Address contexts, which mappings of the same kind share.
    pub(crate) acs: Vec<AddressContext>,
    /// Logical address contexts without a mapping: an LNI of a virtual function has one from the
    /// start, others get them by PHYS_LAC_ALLOC.
    pub(crate) lacs: Vec<u8>,
    /// Number of times that PHYS_LAC_ALLOC holds the LNI.
    pub(crate) lac_holds: u32,
    /// PIDs that it has reserved.
    pub(crate) reservations: Vec<PidsOf>,
}

impl Lni {
    /// The processing element for one more portal table entry.
    pub(crate) fn take_element(&mut self) -> u8 {
        let element = self.next_element;
        self.next_element = (element + 1) % ELEMENTS;
        element
    }
}

/// The processing element of the first portal table entry of an LNI.
pub(crate) fn first_element(rgid: u32) -> u8 {
    rgid.to_le_bytes()[0] % ELEMENTS
}

/// The number of a command queue that is freed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FreedCq {
    pub(crate) id: u32,
    pub(crate) transmit: bool,
}

/// An event queue number that an LNI holds for its next queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FreeEq {
    pub(crate) id: u32,
    /// Callbacks of the driver for events and for status, which it keeps when the number is used
    /// again.
    pub(crate) callbacks: [bool; 2],
}

/// An address context of an LNI.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddressContext {
    pub(crate) kind: Kind,
    pub(crate) id: u32,
    /// Its number within the RGID.
    pub(crate) lac: u8,
}

/// All LNIs.
#[derive(Debug)]
pub(crate) struct Lnis {
    pub(crate) live: Objects<Lni>,
    /// Freed LNIs that wait until their queues are quiet.
    pub(crate) ending: Vec<(u32, Lni)>,
    /// `true` if the cleanup is due.
    pub(crate) scheduled: bool,
}

impl Lnis {
    pub(crate) fn new() -> Self {
        Self { live: Objects::new(1, u32::MAX), ending: Vec::new(), scheduled: false }
    }

    /// Returns the number of LNIs, and of those that wait for their cleanup.
    pub(crate) fn count(&self) -> (u32, u32) {
        let ending = count(self.ending.len());
        (self.live.count() + ending, ending)
    }
}
