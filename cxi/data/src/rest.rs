//! Rest of a rendezvous message, as its receiver sees it.

use cxi_hw::{InitiatorShort, RendezvousUserPtr, TargetLong};

use crate::{Address, Failure};

/// The rest of a message: a rendezvous put has found a list entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rest {
    /// The sender.
    pub source: Address,
    /// The id of the put.
    pub id: u8,
    /// Number of the PtlTE.
    pub pte: u16,
    /// The buffer id of the list entry.
    pub buffer_id: u16,
    /// Match bits of the put.
    pub match_bits: u64,
    /// Length of the whole message in bytes.
    pub requested: u32,
    /// Number of bytes that have arrived already. If the message was unexpected, they are in the
    /// buffer of the overflow list.
    pub received: u32,
    /// Position of the rest, for [`Buffer::position`](crate::Buffer::position).
    pub start: u64,
    /// `true` if the NIC fetches it by itself. If not, the program does, with [`get`](Self::get).
    pub is_coming: bool,
}

impl Rest {
    pub(crate) fn decode(event: &TargetLong, pid_bits: u32) -> Self {
        Self {
            source: Address::of_source(event.initiator.0, pid_bits),
            id: event.rendezvous_id,
            pte: event.ptlte_index,
            buffer_id: event.buffer_id,
            match_bits: event.match_bits,
            requested: event.rlength,
            received: event.mlength,
            start: event.start,
            is_coming: event.get_issued,
        }
    }
}

/// The get of the rest of a message has ended: the message is complete, or never will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Received {
    /// The sender.
    pub source: Address,
    /// The id of the put.
    pub id: u8,
    /// Number of the PtlTE.
    pub pte: u16,
    /// The buffer id of the list entry.
    pub buffer_id: u16,
    /// Length of the rest in bytes.
    pub length: u32,
    /// Result of the operation.
    pub result: Result<(), Failure>,
}

impl Received {
    /// Decodes the REPLY of the NIC's get.
    pub(crate) fn decode(event: &InitiatorShort, result: Result<(), Failure>) -> Self {
        let of = RendezvousUserPtr::decode(&event.user_ptr.to_le_bytes());
        Self {
            source: Address { nid: of.src_nid, pid: of.src_pid },
            id: of.rendezvous_id,
            pte: of.ptlte_index,
            buffer_id: of.buffer_id,
            length: event.mlength,
            result,
        }
    }
}
