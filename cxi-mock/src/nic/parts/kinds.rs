//! What the device keeps of each kind of object.

use cxi_ioctl::abi::memory::{Md, Mminfo};

use super::vnis::PidsOf;

/// A handle of a communication profile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpHandle {
    pub(crate) tx: Option<u32>,
    /// RGID and LCID; `None`: nothing was registered.
    pub(crate) place: Option<(u32, usize)>,
}

/// A domain; PtlTEs that are mapped into it are its users.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Domain {
    pub(crate) vni: u16,
    pub(crate) pid: u32,
    pub(crate) pids: PidsOf,
}

/// A command queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cq {
    pub(crate) eq: u32,
    pub(crate) cmds: Mminfo,
    pub(crate) wp_addr: Mminfo,
}

/// An event queue; command queues and portal table entries are its users.
#[derive(Clone, Debug)]
pub(crate) struct Eq {
    pub(crate) buffer: Buffer,
    pub(crate) waits: [u32; 2],
    /// Whether the driver has a callback for events and for status, which it keeps when the number
    /// is used again.
    pub(crate) callbacks: [bool; 2],
    pub(crate) csr: Mminfo,
    pub(crate) slots: u64,
    pub(crate) reserved: u64,
    /// Buffer and slots of a resize that is not complete.
    pub(crate) resize: Option<(Buffer, u64)>,
    /// Memory descriptors that a resize named although it did not need one: the driver releases
    /// them with the queue.
    pub(crate) held_mds: Vec<u32>,
}

/// Where events go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Buffer {
    /// A memory descriptor.
    Md(u32),
    /// An address that is not translated; `queue_md` is ignored.
    Passthrough,
}

/// A portal table entry; mappings are its users.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pte {
    pub(crate) eq: u32,
    /// Its multicast address.
    pub(crate) multicast: Option<u32>,
    /// It has a counter for lists without matching.
    pub(crate) counted: bool,
    /// It receives Ethernet frames.
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

/// A counter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ct {
    pub(crate) doorbell: Mminfo,
}

/// A memory descriptor; event queues in it are its users.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Descriptor {
    pub(crate) md: Md,
    pub(crate) pinned: bool,
    /// It has the sizes of pages of 1 GiB.
    pub(crate) huge: bool,
}
