//! A request that has found its list entry.

use cxi_hw::{DmaOp, EventType, List, ReturnCode, TargetFlags};

use crate::EntryPool;
use crate::entry::Entry;
use crate::packet::{Reply, ReplyTo, Request};

/// A request with the entry that it matched, and how much of the entry it uses.
#[derive(Debug)]
pub(crate) struct Landing {
    /// Arrival number within the PtlTE.
    pub(crate) arrival: u64,
    pub(crate) back: ReplyTo,
    pub(crate) request: Request,
    pub(crate) number: u16,
    pub(crate) generation: u64,
    pub(crate) rgid: u16,
    pub(crate) pool: EntryPool,
    pub(crate) list: List,
    /// The entry, with its offset already past the message.
    pub(crate) entry: Entry,
    /// Address at which the entry is used.
    pub(crate) iova: u64,
    /// Bytes that move.
    pub(crate) mlength: u32,
    /// Bytes of packet headers before them.
    pub(crate) header: u32,
    /// Bytes that there was room for.
    pub(crate) room: u64,
    pub(crate) auto_unlinked: bool,
}

impl Landing {
    pub(crate) fn event_type(&self) -> EventType {
        match self.request.op {
            DmaOp::GET => EventType::GET,
            DmaOp::ATOMIC => EventType::ATOMIC,
            DmaOp::FETCHING_ATOMIC => EventType::FETCH_ATOMIC,
            _ => EventType::PUT,
        }
    }

    /// Returns whether a list entry was taken for the header of the message.
    pub(crate) fn keeps_header(&self) -> bool {
        keeps_header(self.list, &self.entry)
    }

    /// Returns whether the rest of a rendezvous put is to be fetched now, because its buffer is
    /// known.
    pub(crate) fn has_rest(&self) -> bool {
        self.request.is_rendezvous() && self.list == List::PRIORITY
    }

    /// The answer if the data has moved.
    pub(crate) fn reply(&self, fetched: [u8; 16]) -> Reply {
        Reply {
            code: ReturnCode::OK,
            mlength: self.mlength,
            list: self.list,
            rendezvous: self.request.is_rendezvous(),
            target_error: false,
            fetched,
        }
    }
}

/// Returns whether an unexpected message leaves its header.
pub(crate) fn keeps_header(list: List, entry: &Entry) -> bool {
    let disabled = entry.flags.contains(TargetFlags::UNEXPECTED_HDR_DISABLE);
    list == List::OVERFLOW && !disabled
}
