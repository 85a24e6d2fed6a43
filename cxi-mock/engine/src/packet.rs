//! Packets between NICs.

use std::time::Instant;

use cxi_hw::{AtomicOp, AtomicType, CompareOp, DmaFlags, DmaOp, List, MatchId, ReturnCode};

use crate::translation::Scatter;

/// Bytes that travel inside a packet.
pub(crate) const INLINE: usize = cxi_hw::MAX_IDC_PAYLOAD;

/// A packet. A slot of its initiator holds one operation at a time, and each operation has a number
/// of its own, so that a repeated or late packet is recognized.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// Number of the initiator among the NICs that have had its address.
    pub(crate) incarnation: u32,
    pub(crate) slot: u32,
    pub(crate) sequence: u32,
    pub(crate) body: Body,
}

impl Packet {
    /// Returns the operation, and its NIC, that it is about.
    pub(crate) fn place(&self) -> ReplyTo {
        ReplyTo {
            nid: self.from,
            incarnation: self.incarnation,
            slot: self.slot,
            sequence: self.sequence,
            awaited: true,
        }
    }
}

/// Destination of the answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReplyTo {
    pub(crate) nid: u32,
    pub(crate) incarnation: u32,
    pub(crate) slot: u32,
    pub(crate) sequence: u32,
    /// `true` if the initiator waits for it.
    pub(crate) awaited: bool,
}

#[derive(Clone, Debug)]
// A request is what most packets are.
#[allow(clippy::large_enum_variant)]
pub(crate) enum Body {
    Request(Request, Data),
    Reply(Reply),
}

/// The data of a put, or the destination of a get.
#[derive(Clone, Debug, Default)]
pub(crate) enum Data {
    #[default]
    None,
    Inline(Vec<u8>),
    Memory(Scatter),
}

/// An operation on memory of another process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    /// When the command was executed, for observers.
    pub(crate) started: Option<Instant>,
    pub(crate) op: DmaOp,
    pub(crate) vni: u16,
    pub(crate) pid: u16,
    pub(crate) index: u16,
    /// Flags of the command, of which those about the packet count.
    pub(crate) flags: DmaFlags,
    /// `true` if it is an immediate message, whose header is shorter.
    pub(crate) small: bool,
    pub(crate) initiator: MatchId,
    pub(crate) match_bits: u64,
    pub(crate) header_data: u64,
    pub(crate) remote_offset: u64,
    /// Number of bytes that are requested.
    pub(crate) length: u32,
    /// Bytes that a rendezvous put carries; for other requests, all.
    pub(crate) eager: u32,
    pub(crate) rendezvous_id: u8,
    pub(crate) atomic: Option<Atomic>,
    /// The multicast tree that it goes to, whose members do not answer.
    pub(crate) multicast: Option<Multicast>,
}

/// Destination of a multicast.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Multicast {
    pub(crate) id: u32,
    pub(crate) reduction: u8,
    /// Portal index, next to the id.
    pub(crate) index: u8,
}

impl Multicast {
    /// The address as PTE_MAP takes it.
    pub(crate) fn offset(self) -> u32 {
        u32::from(self.index) << cxi_hw::MULTICAST_ID_BITS | self.id
    }

    /// Takes the place of the slot of an operation that is answered, so that late packets of the
    /// same reduction are recognized.
    pub(crate) fn slot(self) -> u32 {
        u32::MAX - u32::from(self.reduction)
    }
}

impl Request {
    pub(crate) fn is_rendezvous(&self) -> bool {
        self.op == DmaOp::RENDEZVOUS_PUT
    }

    /// Returns whether the remote offset is an offset at the source, for the get of a rendezvous.
    pub(crate) fn is_offset_of_source(&self) -> bool {
        self.is_rendezvous() && self.flags.contains(DmaFlags::USE_OFFSET_FOR_GET)
    }

    /// Bytes that the request carries or fetches.
    pub(crate) fn carried(&self) -> u32 {
        // Rule 10.1: A rendezvous put carries at most its eager length.
        if self.is_rendezvous() { self.eager } else { self.length }
    }

    /// Returns whether it is unordered and has no match bits.
    pub(crate) fn is_restricted(&self) -> bool {
        self.flags.contains(DmaFlags::RESTRICTED)
    }
}

/// Operation of an atomic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Atomic {
    pub(crate) op: AtomicOp,
    pub(crate) ty: AtomicType,
    pub(crate) compare: CompareOp,
    pub(crate) operand: [u8; 16],
    /// Compare value or mask.
    pub(crate) second: [u8; 16],
}

/// Result of an operation at the target.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reply {
    pub(crate) code: ReturnCode,
    pub(crate) mlength: u32,
    pub(crate) list: List,
    pub(crate) rendezvous: bool,
    /// `true` if the target found the error.
    pub(crate) target_error: bool,
    /// Value that a fetching atomic found.
    pub(crate) fetched: [u8; 16],
}

impl Reply {
    pub(crate) fn error(code: ReturnCode) -> Self {
        Self {
            code,
            mlength: 0,
            list: List::PRIORITY,
            rendezvous: false,
            target_error: false,
            fetched: [0; 16],
        }
    }

    /// An error that the target found.
    pub(crate) fn refusal(code: ReturnCode) -> Self {
        Self { target_error: true, ..Self::error(code) }
    }
}
