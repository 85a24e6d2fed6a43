//! The lists of PtlTEs, for inspection.

use cxi_hw::{DmaOp, MatchId, PtlteState, TargetFlags};

use crate::portal::PortalState;

/// A PtlTE and its lists.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PortalSnapshot {
    /// Its number.
    pub number: u16,
    /// The RGID that it belongs to.
    pub rgid: u16,
    /// State.
    pub state: PtlteState,
    /// Messages dropped.
    pub drop_count: u32,
    /// Priority, overflow and request list.
    pub lists: [Vec<EntrySnapshot>; 3],
    /// Unexpected messages, oldest first.
    pub unexpected: Vec<UnexpectedSnapshot>,
}

/// A list entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EntrySnapshot {
    /// Its handle in events.
    pub buffer_id: u16,
    /// Match bits.
    pub match_bits: u64,
    /// Match bits that are ignored.
    pub ignore_bits: u64,
    /// Initiators that match.
    pub match_id: MatchId,
    /// Operations that it accepts and reports.
    pub flags: TargetFlags,
    /// Its address.
    pub start: u64,
    /// Its length in bytes.
    pub length: u64,
    /// Offset of the next message, if the entry is managed locally.
    pub offset: u64,
}

/// A message that no entry has matched yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnexpectedSnapshot {
    /// The operation.
    pub op: DmaOp,
    /// The sender.
    pub initiator: MatchId,
    /// VNI.
    pub vni: u16,
    /// Match bits.
    pub match_bits: u64,
    /// Length of the message in bytes.
    pub length: u32,
    /// Number of bytes that have been stored.
    pub kept: u32,
    /// Their address.
    pub start: u64,
}

impl PortalState {
    pub(crate) fn snapshot(&self) -> PortalSnapshot {
        let unexpected = self.unexpected.values().map(|header| UnexpectedSnapshot {
            op: header.request.op,
            initiator: header.request.initiator,
            vni: header.request.vni,
            match_bits: header.request.match_bits,
            length: header.request.length,
            kept: header.mlength,
            start: header.start,
        });
        PortalSnapshot {
            number: self.number,
            rgid: self.config.rgid,
            state: self.state,
            drop_count: self.drops,
            lists: self.lists.each_ref().map(|list| {
                let entries = list.iter().map(|(key, entry)| EntrySnapshot {
                    buffer_id: entry.buffer_id,
                    match_bits: key.match_bits,
                    ignore_bits: key.ignore_bits,
                    match_id: MatchId(key.id),
                    flags: entry.flags,
                    start: entry.start,
                    length: entry.length,
                    offset: entry.offset,
                });
                entries.collect()
            }),
            unexpected: unexpected.collect(),
        }
    }
}
