//! Rings and pages: where a program writes commands, reads events and rings doorbells.

/// The ring of a command queue: slots of 32 bytes, pointers in units of 64.
pub mod command_ring {
    /// Slots of the unit of pointers.
    pub const UNIT_SLOTS: u32 = 2;
    /// The first unit with commands; those before are the status word and its reserve. The ring
    /// wraps to here.
    pub const FIRST_UNIT: u32 = 4;
    /// The first slot with commands.
    pub const FIRST_SLOT: u32 = FIRST_UNIT * UNIT_SLOTS;

    /// Slots to fill with no-ops so that a command of `slots` slots is on its boundary. The longest
    /// command of a ring never reaches beyond its end then.
    ///
    /// ```
    /// assert_eq!(cxi_hw::command_ring::padding(9, 2), 1);
    /// ```
    #[must_use]
    pub const fn padding(slot: u32, slots: u32) -> u32 {
        slot.next_multiple_of(slots) - slot
    }
}

/// The launch page of a command queue.
pub mod launch_page {
    use super::command_ring::UNIT_SLOTS;

    /// Offset of the write pointer, a word of eight bytes.
    pub const WRITE_POINTER: usize = 0;
    /// Low-latency window for commands of 64 bytes.
    pub const WINDOW_64: usize = 1024;
    /// Low-latency window for commands of 128 bytes that start at an even unit.
    pub const WINDOW_128_ALIGNED: usize = 2048;
    /// Low-latency window for commands of 128 bytes behind a unit of no-ops.
    pub const WINDOW_128_UNALIGNED: usize = 3072;
    /// Bytes of a window.
    pub const WINDOW_BYTES: usize = 1024;

    /// Returns the offset in a window at which the command goes that starts at a slot of the ring.
    #[must_use]
    pub const fn window_offset(slot: u32) -> u32 {
        slot / UNIT_SLOTS % 16 * 64
    }
}

/// The buffer of an event queue: a status block, then events.
pub mod event_ring {
    /// Bytes of a block; an event lies inside one.
    pub const BLOCK_BYTES: u64 = 64;
    /// The first block with events; the one before is the status. The ring wraps to here.
    pub const FIRST_BLOCK: u32 = 1;
    /// Blocks that never hold events: the status, and one that stays empty.
    pub const RESERVED_BLOCKS: u32 = 2;
}

/// A doorbell in the page of a counter: a store of eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CounterDoorbell {
    /// Adds to the successes.
    AddSuccess = 0,
    /// Adds to the failures.
    AddFailure = 64,
    /// Sets the successes to 0.
    ResetSuccess = 128,
    /// Sets the failures to 0.
    ResetFailure = 192,
}

impl CounterDoorbell {
    /// All doorbells, resets first. A page is polled in this order.
    pub const ALL: [Self; 4] =
        [Self::ResetSuccess, Self::ResetFailure, Self::AddSuccess, Self::AddFailure];

    /// Offset in the page.
    #[must_use]
    pub const fn offset(self) -> usize {
        self as usize
    }

    /// The doorbell at an offset.
    #[must_use]
    pub fn at(offset: usize) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.offset() == offset)
    }
}
