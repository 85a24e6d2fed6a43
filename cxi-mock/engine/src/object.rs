//! Descriptions of objects, from which the control plane makes them.

use std::sync::Arc;

use bitflags::bitflags;

use crate::{ClientMemory, CommandPages, CounterPages, EventPages};

/// Settings with which a NIC is built.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Its address on the fabric.
    pub nid: u32,
    /// Bits of a PID.
    pub pid_bits: u32,
    /// Portal index at which a NIC fetches the rest of a rendezvous put.
    pub rendezvous_index: u32,
    /// `true` if the NIC fetches the rest of a rendezvous put by itself.
    pub rendezvous_gets: bool,
    /// `true` if the message that makes the NIC disable a PtlTE counts as a drop, as from Cassini 2
    /// on.
    pub counts_first_drop: bool,
    /// List entries of each processing element.
    pub list_entries: u16,
    /// Entries for triggered commands.
    pub triggered_entries: u16,
}

impl Default for Settings {
    /// A Cassini 1 with address 0.
    fn default() -> Self {
        Self {
            nid: 0,
            pid_bits: 9,
            rendezvous_index: 255,
            rendezvous_gets: true,
            counts_first_drop: false,
            list_entries: 16_384,
            triggered_entries: 2_048,
        }
    }
}

/// Communication profile of a transmit queue: an LCID of an RGID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommunicationProfile {
    /// The VNI of its packets.
    pub vni: u16,
    /// The traffic class of its packets.
    pub traffic_class: u8,
    /// `true` if the class is of the high rate put type, whose acknowledgements are counted apart.
    pub high_rate: bool,
}

/// When a command queue writes its read pointer back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UpdatePolicy {
    /// After each command.
    #[default]
    Always,
    /// From time to time, and when the queue is empty.
    WhenEmpty,
}

/// Properties of a transmit queue that a target queue does not have.
#[derive(Clone, Copy, Debug)]
pub struct Transmit {
    /// Selects its first communication profile.
    pub lcid: u8,
    /// Triggered commands are allowed, and run with LCID 0.
    pub triggered: bool,
    /// Pool of list entries for triggered commands that wait.
    pub tle_pool: u8,
}

/// A transmit queue, number 0 to 1023, or a target queue, number 1024 to 1535.
#[derive(Debug)]
pub struct CommandQueue {
    /// `None` for a target queue.
    pub transmit: Option<Transmit>,
    /// The RGID that it belongs to.
    pub rgid: u16,
    /// The event queue for COMMAND_FAILURE; 0 for none.
    pub eq: u16,
    /// The size of the ring, in units of 64 bytes.
    pub count: u32,
    /// When the read pointer is written back.
    pub policy: UpdatePolicy,
    /// The ring and the doorbell.
    pub pages: Box<dyn CommandPages>,
}

/// Memory for events.
#[derive(Clone, Debug)]
pub struct EventBuffer {
    /// The memory that contains it.
    pub memory: Arc<dyn ClientMemory>,
    /// Its address, on a page boundary.
    pub va: u64,
    /// Its size in bytes, a multiple of the page size.
    pub len: u64,
}

bitflags! {
    /// Flags of EQ_ALLOC that matter to the data path.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct EventFlags: u64 {
        /// Events at the initiator are long.
        const INITIATOR_LONG = 1 << 2;
        /// Events at the target are long.
        const TARGET_LONG = 1 << 3;
        /// Lost events do not change the status block.
        const DROP_STATUS_DISABLE = 1 << 4;
        /// Events have the time.
        const TIMESTAMP_EVENTS = 1 << 5;
    }
}

/// Fill levels at which the status block is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Thresholds {
    /// The first and highest level, in percent of the slots in use.
    pub base: u32,
    /// The distance between two levels, in percent.
    pub delta: u32,
    /// The number of levels, at most four.
    pub count: u32,
}

/// An event queue, number 1 to 2047.
#[derive(Debug)]
pub struct EventQueue {
    /// The RGID that it belongs to.
    pub rgid: u16,
    /// Buffer of the events.
    pub buffer: EventBuffer,
    /// Flags; unknown bits of EQ_ALLOC may be dropped.
    pub flags: EventFlags,
    /// Fill levels.
    pub thresholds: Thresholds,
    /// Slots kept for flow control.
    pub reserved: u32,
    /// Number for [`Effect::Wake`](crate::Effect::Wake) when an event is written.
    pub event_wait: Option<u64>,
    /// The same for the status block.
    pub status_wait: Option<u64>,
    /// The page with the register word.
    pub page: Box<dyn EventPages>,
}

/// Place to which a counter writes back.
#[derive(Clone, Debug)]
pub struct WriteBack {
    /// The memory that contains it.
    pub memory: Arc<dyn ClientMemory>,
    /// Its address, a multiple of eight.
    pub va: u64,
}

/// A counter, number 1 to 2047.
#[derive(Debug)]
pub struct Counter {
    /// The RGID that it belongs to.
    pub rgid: u16,
    /// Place to which it writes back.
    pub write_back: Option<WriteBack>,
    /// Its page, if it is polled.
    pub page: Option<Box<dyn CounterPages>>,
}

bitflags! {
    /// Options of PTE_ALLOC that matter to the data path, as the kernel interface has them.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct PortalOptions: u64 {
        /// MATCH events.
        const EN_EVENT_MATCH = 1 << 0;
        /// The remote offset counts as 0.
        const CLR_REMOTE_OFFSET = 1 << 1;
        /// Flow control: the PtlTE is disabled where a message would otherwise be refused.
        const EN_FLOWCTRL = 1 << 2;
        /// Long events.
        const USE_LONG_EVENT = 1 << 3;
        /// Restricted puts to locally managed entries are reported.
        const EN_RESTRICTED_UNICAST_LM = 1 << 5;
        /// Initiators are ranks, not NIC addresses.
        const USE_LOGICAL = 1 << 6;
        /// Matching.
        const IS_MATCHING = 1 << 7;
        /// The NIC may hand the lists over to software.
        const EN_SW_HW_ST_CHNG = 1 << 10;
    }
}

/// A pool of list entries: one of the 16 of a processing element, of which there are four.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryPool {
    /// Processing element, 0 to 3.
    pub element: u8,
    /// Pool, 0 to 15.
    pub pool: u8,
}

/// Numbers of entries that a pool may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLimits {
    /// Number that is reserved for it.
    pub reserved: u16,
    /// The most that it may have.
    pub max: u16,
}

/// A portal table entry, number 1 to 2047.
#[derive(Clone, Copy, Debug)]
pub struct Portal {
    /// The RGID that it belongs to.
    pub rgid: u16,
    /// Its event queue, 0 for none.
    pub eq: u16,
    /// Options; unknown bits of PTE_ALLOC may be dropped.
    pub options: PortalOptions,
    /// Pool of its list entries.
    pub pool: EntryPool,
}

/// A memory region (MD) in the address context of an RGID and LAC.
#[derive(Clone, Debug)]
pub struct Region {
    /// The RGID whose context it is.
    pub rgid: u16,
    /// Number among the RGID's contexts, 0 to 7.
    pub lac: u8,
    /// First I/O virtual address.
    pub iova: u64,
    /// Its length in bytes.
    pub len: u64,
    /// The address in the memory that `iova` stands for.
    pub va: u64,
    /// The NIC may read.
    pub readable: bool,
    /// The NIC may write.
    pub writable: bool,
    /// The memory that it covers.
    pub memory: Arc<dyn ClientMemory>,
}

/// Report of PTE_STATUS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortalStatus {
    /// The state, as [`cxi_hw::PtlteState`].
    pub state: u8,
    /// Messages dropped.
    pub drop_count: u32,
    /// List entries in use in the pool.
    pub les_allocated: u16,
    /// For each unexpected message, oldest first: where a rendezvous get starts, or else where the
    /// message is in the overflow buffer.
    pub unexpected: Vec<u64>,
}

/// Reason for which software cannot manage the lists of a PtlTE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoTransition {
    /// The PtlTE does not exist, or is not disabled.
    NotDisabled,
    /// More messages were dropped than the given count.
    Drops,
}
