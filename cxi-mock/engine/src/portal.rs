//! Portal table entries (PtlTEs): their state and their lists.

use cxi_hw::{
    DmaOp, EventSize, EventType, List, MatchId, PtlteState, ReturnCode, StateChange, StateReason,
    TargetCommand, TargetFlags, TargetLong,
};

use crate::index::{Label, Labelled};
use crate::packet::Request;
use crate::sequence::Sequence;
use crate::table::Table;
use crate::{Engine, Portal, PortalOptions, PortalStatus};

/// What is compared with each entry of a list when a message comes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    pub(crate) match_bits: u64,
    pub(crate) ignore_bits: u64,
    pub(crate) id: u32,
    id_mask: u32,
    flags: TargetFlags,
}

impl Key {
    /// What an entry or a search accepts. All ones are wildcards, of the PID and of the rest.
    pub(crate) fn new(command: &TargetCommand, options: PortalOptions, pid_bits: u32) -> Self {
        let id_bits = u32::MAX >> pid_bits;
        let nid_bits = (1 << cxi_hw::NID_BITS) - 1;
        let id = command.match_id;
        let mut id_mask = u32::MAX;
        if id.0 | id_bits == u32::MAX {
            id_mask &= id_bits;
        }
        let any_nid = !options.contains(PortalOptions::USE_LOGICAL) && id.0 & nid_bits == nid_bits;
        if id.id(pid_bits) == id_bits || any_nid {
            id_mask &= !id_bits;
        }
        let (match_bits, ignore_bits) = (command.match_bits, command.ignore_bits);
        Self {
            match_bits,
            ignore_bits,
            id: id.0,
            id_mask,
            flags: command.flags,
        }
    }

    /// Whether a message fits, by its match bits and who sends it.
    pub(crate) fn matches(&self, match_bits: u64, initiator: MatchId) -> bool {
        (self.match_bits ^ match_bits) & !self.ignore_bits == 0
            && (self.id ^ initiator.0) & self.id_mask == 0
    }

    /// The first unexpected message from a place on that fits; any does without `matching`.
    pub(crate) fn find_unexpected(
        &self,
        list: &Sequence<HeaderKey, Header>,
        from: usize,
        matching: bool,
    ) -> Option<usize> {
        let fits = |(bits, initiator): &HeaderKey| !matching || self.matches(*bits, *initiator);
        if matching && self.ignore_bits == 0 {
            list.find_labelled(from, (self.match_bits, self.id), fits)
        } else {
            list.find(from, fits)
        }
    }

    /// Whether the entry accepts that operation.
    pub(crate) fn allows(&self, op: DmaOp) -> bool {
        self.flags.contains(match op {
            DmaOp::GET => TargetFlags::OP_GET,
            DmaOp::FETCHING_ATOMIC => TargetFlags::OP_GET.union(TargetFlags::OP_PUT),
            _ => TargetFlags::OP_PUT,
        })
    }
}

impl Labelled for Key {
    fn mask(&self) -> Label {
        (!self.ignore_bits, self.id_mask)
    }

    fn label(&self) -> Label {
        (self.match_bits, self.id)
    }
}

/// A list entry (LE).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) start: u64,
    pub(crate) length: u64,
    pub(crate) min_free: u32,
    pub(crate) buffer_id: u16,
    pub(crate) ct: u16,
    pub(crate) lac: u8,
    pub(crate) flags: TargetFlags,
    /// Where the next message goes, if the entry is managed locally.
    pub(crate) offset: u64,
}

impl Entry {
    pub(crate) fn new(command: &TargetCommand) -> Self {
        Self {
            start: command.start,
            length: command.length,
            min_free: command.min_free,
            buffer_id: command.buffer_id,
            ct: command.ct,
            lac: command.lac,
            flags: command.flags,
            offset: 0,
        }
    }

    pub(crate) fn managed(&self) -> bool {
        self.flags.contains(TargetFlags::MANAGE_LOCAL)
    }

    /// Bytes left behind an offset: its own if it is managed locally.
    pub(crate) fn room(&self, remote_offset: u64) -> u64 {
        let offset = if self.managed() {
            self.offset
        } else {
            remote_offset
        };
        self.length.saturating_sub(offset)
    }

    /// Whether bytes fit, as far as that decides about a match.
    pub(crate) fn fits(&self, remote_offset: u64, len: u64) -> bool {
        !self.flags.contains(TargetFlags::NO_TRUNCATE) || len <= self.room(remote_offset)
    }

    /// Takes bytes of an entry that is managed locally. Says whether it is used up.
    pub(crate) fn consume(&mut self, len: u64) -> bool {
        if self.managed() {
            self.offset += len;
            if self.length.saturating_sub(self.offset) < self.min_free.into() {
                return true;
            }
        }
        self.used_once()
    }

    pub(crate) fn used_once(&self) -> bool {
        self.flags.contains(TargetFlags::USE_ONCE)
    }
}

/// A message that no entry has matched yet.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    pub(crate) request: Request,
    /// NIC that sent it.
    pub(crate) from: u32,
    /// Where its bytes are.
    pub(crate) start: u64,
    pub(crate) mlength: u32,
}

impl Header {
    /// What PTE_STATUS says about it.
    fn place(&self) -> u64 {
        if self.request.op == DmaOp::RENDEZVOUS_PUT {
            self.request.remote_offset
        } else {
            self.start
        }
    }
}

/// What is compared when an entry is appended: match bits and initiator.
pub(crate) type HeaderKey = (u64, MatchId);

impl Labelled for HeaderKey {
    /// Whoever looks for messages of one initiator may look for those of any.
    fn mask(&self) -> Label {
        (u64::MAX, 0)
    }

    fn label(&self) -> Label {
        (self.0, 0)
    }
}

/// A PtlTE.
#[derive(Debug)]
pub(crate) struct PortalState {
    pub(crate) config: Portal,
    pub(crate) generation: u64,
    pub(crate) state: PtlteState,
    /// Messages dropped since the state was set.
    pub(crate) drops: u32,
    /// Priority, overflow, request.
    pub(crate) lists: [Sequence<Key, Entry>; 3],
    pub(crate) unexpected: Sequence<HeaderKey, Header>,
    /// Appends fail until one restarts them, by list.
    pub(crate) closed: [bool; 3],
}

impl PortalState {
    /// List entries that it has from its pool.
    pub(crate) fn entries(&self) -> u16 {
        let lists: usize = self.lists.iter().map(Sequence::len).sum();
        u16::try_from(lists + self.unexpected.len()).unwrap_or(u16::MAX)
    }

    pub(crate) fn has(&self, option: PortalOptions) -> bool {
        self.config.options.contains(option)
    }

    pub(crate) fn status(&self) -> PortalStatus {
        PortalStatus {
            state: self.state.0,
            drop_count: self.drops,
            les_allocated: 0,
            unexpected: self.unexpected.values().map(Header::place).collect(),
        }
    }
}

/// All PtlTEs.
#[derive(Debug, Default)]
pub(crate) struct Portals {
    pub(crate) table: Table<PortalState>,
    generations: u64,
}

impl Portals {
    pub(crate) fn add(&mut self, number: u16, config: Portal) {
        self.generations += 1;
        let portal = PortalState {
            config,
            generation: self.generations,
            state: PtlteState::DISABLED,
            drops: 0,
            lists: Default::default(),
            unexpected: Sequence::default(),
            closed: [false; 3],
        };
        self.table.put(number, portal);
    }
}

/// A 64-byte event about a PtlTE.
pub(crate) fn event(event_type: EventType, number: u16, list: List) -> TargetLong {
    TargetLong {
        ptlte_index: number,
        event_size: EventSize::BYTES_64,
        event_type,
        ptl_list: list,
        return_code: ReturnCode::OK,
        ..TargetLong::default()
    }
}

impl Engine {
    /// Changes the state because of a message, and reports it.
    pub(crate) fn change_state(&mut self, number: u16, state: PtlteState, reason: StateReason) {
        let Some(portal) = self.portals.table.get_mut(number) else {
            return;
        };
        self.telemetry.state_changes.add(reason.0);
        portal.state = state;
        portal.drops = u32::from(state == PtlteState::DISABLED && self.settings.counts_first_drop);
        let change = StateChange {
            state,
            reason,
            by_nic: true,
        };
        self.post_state_change(number, change, 0, ReturnCode::OK);
    }

    pub(crate) fn post_state_change(
        &mut self,
        number: u16,
        change: StateChange,
        start: u64,
        return_code: ReturnCode,
    ) {
        let Some(portal) = self.portals.table.get(number) else {
            return;
        };
        let event = TargetLong {
            initiator: MatchId(change.encode()),
            start,
            return_code,
            ..event(EventType::STATE_CHANGE, number, List::PRIORITY)
        };
        self.signals.post(portal.config.eq, &event.encode());
    }

    /// UNLINK of an entry that was used up, unless the entry disables that event.
    pub(crate) fn post_auto_unlink(&mut self, number: u16, list: List, entry: &Entry) {
        if !entry.flags.contains(TargetFlags::EVENT_UNLINK_DISABLE) {
            self.post_unlink(number, list, entry, true);
        }
    }

    pub(crate) fn post_unlink(&mut self, number: u16, list: List, entry: &Entry, auto: bool) {
        let Some(portal) = self.portals.table.get(number) else {
            return;
        };
        let event = TargetLong {
            auto_unlinked: auto,
            buffer_id: entry.buffer_id,
            remote_offset: entry.offset,
            start: entry.start.wrapping_add(entry.offset),
            ..event(EventType::UNLINK, number, list)
        };
        self.signals.post(portal.config.eq, &event.encode());
    }
}
