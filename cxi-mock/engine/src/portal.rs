//! Portal table entries (PtlTEs): their state and their lists.

use std::collections::VecDeque;

use cxi_hw::{
    DmaOp, EventSize, EventType, List, MatchId, PtlteState, ReturnCode, StateChange, StateReason,
    TargetCommand, TargetFlags, TargetLong,
};

use crate::directory::Directory;
use crate::entry::Entry;
use crate::link::Operation;
use crate::packet::Request;
use crate::pools::Pools;
use crate::rendezvous::Rest;
use crate::sequence::{Label, Labelled, Sequence};
use crate::signals::Signals;
use crate::table::Table;
use crate::{NoTransition, Portal, PortalOptions, PortalStatus, Settings};

/// Header of a message, compared with each entry of a list when it arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    pub(crate) match_bits: u64,
    pub(crate) ignore_bits: u64,
    pub(crate) id: u32,
    id_mask: u32,
    flags: TargetFlags,
}

impl Key {
    /// Returns the messages that an entry or a search accepts. In the PID, and in the rest of the
    /// match ID, all ones is a wildcard.
    pub(crate) fn new(command: &TargetCommand, options: PortalOptions, pid_bits: u32) -> Self {
        let id_bits = u32::MAX >> pid_bits;
        let nid_bits = (1 << cxi_hw::NID_BITS) - 1;
        let id = command.match_id;
        // Rule 5.2: All ones in an entry's match ID are wildcards: as PID, as rank, and as NIC
        // address unless the PtlTE uses ranks.
        let mut id_mask = u32::MAX;
        if id.0 | id_bits == u32::MAX {
            id_mask &= id_bits;
        }
        let any_nid = !options.contains(PortalOptions::USE_LOGICAL) && id.0 & nid_bits == nid_bits;
        if id.id(pid_bits) == id_bits || any_nid {
            id_mask &= !id_bits;
        }
        let (match_bits, ignore_bits) = (command.match_bits, command.ignore_bits);
        Self { match_bits, ignore_bits, id: id.0, id_mask, flags: command.flags }
    }

    /// Returns whether a message fits, by its match bits and who sends it.
    pub(crate) fn matches(&self, match_bits: u64, initiator: MatchId) -> bool {
        // Rule 8.2: An entry matches if all bits that it does not ignore are equal and its match ID
        // accepts the initiator; a non-matching PtlTE compares neither.
        (self.match_bits ^ match_bits) & !self.ignore_bits == 0
            && (self.id ^ initiator.0) & self.id_mask == 0
    }

    /// The first unexpected message at or after a place that fits. Without `matching`, any message
    /// fits.
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

    /// Returns whether the entry accepts that operation.
    pub(crate) fn allows(&self, op: DmaOp) -> bool {
        // Rule 7.12: Gets need OP_GET, puts and atomics OP_PUT, fetching atomics both; an entry
        // without the permission does not match.
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

/// Counts of an entry.
impl Entry {
    pub(crate) fn count_success(&self, bytes: u32, signals: &mut Signals) {
        // Rule 9.4: A list entry's counter counts successes, by one or by bytes, and failures.
        let by_bytes = self.flags.contains(TargetFlags::EVENT_CT_BYTES);
        let amount = if by_bytes { bytes.into() } else { 1 };
        signals.count(self.ct, amount, 0);
    }

    pub(crate) fn count_failure(&self, signals: &mut Signals) {
        if self.flags.contains(TargetFlags::EVENT_CT_COMM) {
            signals.count(self.ct, 0, 1);
        }
    }
}

/// A message that no entry has matched yet.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    pub(crate) request: Request,
    /// Arrival number within the PtlTE.
    pub(crate) arrival: u64,
    /// NIC that sent it.
    pub(crate) from: u32,
    /// Address of its bytes.
    pub(crate) start: u64,
    pub(crate) mlength: u32,
}

impl Header {
    /// Returns the position that PTE_STATUS reports for it.
    fn place(&self) -> u64 {
        // Rule 10.8: The status has the source offset of a rendezvous put, so that software can
        // fetch a message whose header it has deleted.
        if self.request.is_rendezvous() { self.request.remote_offset } else { self.start }
    }
}

/// Header that is compared when an entry is appended: match bits and initiator.
pub(crate) type HeaderKey = (u64, MatchId);

impl Labelled for HeaderKey {
    /// Only the match bits count: an entry that accepts any initiator must find the message, too.
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
    pub(crate) number: u16,
    pub(crate) config: Portal,
    /// Number among the PtlTEs that have had this index.
    pub(crate) generation: u64,
    pub(crate) state: PtlteState,
    /// Messages dropped since the last change of the state.
    pub(crate) drops: u32,
    /// Priority, overflow, request.
    pub(crate) lists: [Sequence<Key, Entry>; 3],
    pub(crate) unexpected: Sequence<HeaderKey, Header>,
    /// By list, whether appends fail until one of them restarts the list.
    pub(crate) closed: [bool; 3],
    /// Messages that have matched so far.
    pub(crate) arrivals: u64,
    /// Those whose data has not moved, with the list and buffer ID of their entries.
    pub(crate) moving: Vec<(u64, List, u16)>,
    /// Bytes that are still to be fetched of those that an entry has claimed meanwhile.
    pub(crate) claimed: Vec<(u64, Rest)>,
    /// UNLINK events that wait for messages, up to an arrival, of the entry that they name.
    pub(crate) unlinks: Vec<(u64, TargetLong)>,
}

/// The get of the rest of a rendezvous put, still to be sent.
#[derive(Debug)]
pub(crate) struct RendezvousGet {
    pub(crate) to: u32,
    pub(crate) operation: Operation,
    pub(crate) request: Request,
    /// Logical address context of the buffer.
    pub(crate) lac: u8,
    pub(crate) iova: u64,
}

/// The parts of a NIC that its PtlTEs use.
pub(crate) struct Nic<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) signals: &'a mut Signals,
    pub(crate) pools: &'a mut Pools,
    pub(crate) gets: &'a mut VecDeque<RendezvousGet>,
}

impl PortalState {
    fn new(number: u16, config: Portal, generation: u64) -> Self {
        Self {
            number,
            config,
            generation,
            // Rule 1.3: A PtlTE starts disabled, with empty lists.
            state: PtlteState::DISABLED,
            drops: 0,
            lists: Default::default(),
            unexpected: Sequence::default(),
            closed: [false; 3],
            arrivals: 0,
            moving: Vec::new(),
            claimed: Vec::new(),
            unlinks: Vec::new(),
        }
    }

    /// List entries that it has taken from its pool.
    fn entries(&self) -> u16 {
        let lists: usize = self.lists.iter().map(Sequence::len).sum();
        // A processing element has no more than 65,535.
        u16::try_from(lists + self.unexpected.len()).unwrap_or(u16::MAX)
    }

    pub(crate) fn has(&self, option: PortalOptions) -> bool {
        self.config.options.contains(option)
    }

    pub(crate) fn list(&mut self, list: List) -> &mut Sequence<Key, Entry> {
        &mut self.lists[usize::from(list.0)]
    }

    /// A 64-byte event about the PtlTE.
    pub(crate) fn event(&self, event_type: EventType, list: List) -> TargetLong {
        TargetLong {
            ptlte_index: self.number,
            event_size: EventSize::BYTES_64,
            event_type,
            ptl_list: list,
            return_code: ReturnCode::OK,
            // Rule 7.13: An event that concerns no entry has buffer ID 0.
            ..TargetLong::default()
        }
    }

    pub(crate) fn post(&self, event: &TargetLong, signals: &mut Signals) {
        signals.post(self.config.eq, &event.encode());
    }

    /// Changes the state because of a message, and reports it.
    pub(crate) fn change_state(
        &mut self,
        state: PtlteState,
        reason: StateReason,
        nic: &mut Nic<'_>,
    ) {
        nic.signals.telemetry.state_changes.add(reason.0);
        self.state = state;
        // Rule 6.4: From Cassini 2 on, the message that makes the NIC disable a PtlTE counts as a
        // drop.
        let counts = state == PtlteState::DISABLED && nic.settings.counts_first_drop;
        self.drops = counts.into();
        // Rule 6.2: A state change by the NIC is reported with its reason.
        let change = StateChange { state, reason, by_nic: true };
        self.post_state_change(change, 0, ReturnCode::OK, nic.signals);
    }

    pub(crate) fn post_state_change(
        &self,
        change: StateChange,
        start: u64,
        return_code: ReturnCode,
        signals: &mut Signals,
    ) {
        let event = TargetLong {
            initiator: MatchId(change.encode()),
            start,
            return_code,
            ..self.event(EventType::STATE_CHANGE, List::PRIORITY)
        };
        self.post(&event, signals);
    }

    pub(crate) fn unlink_event(&self, list: List, entry: &Entry, auto: bool) -> TargetLong {
        TargetLong {
            auto_unlinked: auto,
            buffer_id: entry.buffer_id,
            remote_offset: entry.offset,
            start: entry.start.wrapping_add(entry.offset),
            ..self.event(EventType::UNLINK, list)
        }
    }

    /// Posts the answers to UNLINK whose entries no message moves to any more, oldest first.
    pub(crate) fn post_unlinks(&mut self, signals: &mut Signals) {
        let mut unlinks = std::mem::take(&mut self.unlinks);
        unlinks.retain(|(last, event)| {
            let of_entry = |(arrival, list, buffer): &(u64, List, u16)| {
                arrival <= last && (*list, *buffer) == (event.ptl_list, event.buffer_id)
            };
            let waits = self.moving.iter().any(of_entry);
            if !waits {
                self.post(event, signals);
            }
            waits
        });
        self.unlinks = unlinks;
    }
}

/// All PtlTEs, the directory that leads to them, and the pools of their list entries.
#[derive(Debug)]
pub(crate) struct Portals {
    pub(crate) directory: Directory,
    pub(crate) pools: Pools,
    table: Table<PortalState>,
    generations: u64,
    /// Gets that rendezvous puts have caused, oldest first.
    gets: VecDeque<RendezvousGet>,
}

impl Portals {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            directory: Directory::default(),
            pools: Pools::new(settings),
            table: Table::default(),
            generations: 0,
            gets: VecDeque::new(),
        }
    }

    pub(crate) fn add(&mut self, number: u16, config: Portal) {
        self.remove(number);
        self.generations += 1;
        let portal = PortalState::new(number, config, self.generations);
        self.table.put(number, portal);
    }

    pub(crate) fn remove(&mut self, number: u16) {
        // Rule 1.5: A PtlTE that is freed drops list entries and unexpected messages without events.
        if let Some(portal) = self.table.remove(number) {
            self.pools.give(portal.config.pool, portal.entries());
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &PortalState> {
        self.table.iter().map(|(_, portal)| portal)
    }

    pub(crate) fn is_current(&self, number: u16, generation: u64) -> bool {
        let portal = self.table.get(number);
        portal.is_some_and(|portal| portal.generation == generation)
    }

    /// A PtlTE, with what it uses.
    pub(crate) fn open<'a>(
        &'a mut self,
        number: u16,
        settings: &'a Settings,
        signals: &'a mut Signals,
    ) -> Option<(&'a mut PortalState, Nic<'a>)> {
        let nic = Nic { settings, signals, pools: &mut self.pools, gets: &mut self.gets };
        Some((self.table.get_mut(number)?, nic))
    }

    /// The PtlTE of a generation with what it uses, unless it has been freed.
    pub(crate) fn open_current<'a>(
        &'a mut self,
        (number, generation): (u16, u64),
        settings: &'a Settings,
        signals: &'a mut Signals,
    ) -> Option<(&'a mut PortalState, Nic<'a>)> {
        self.open(number, settings, signals).filter(|(portal, _)| portal.generation == generation)
    }

    /// Takes the next get that a rendezvous put has caused.
    pub(crate) fn next_get(&mut self) -> Option<RendezvousGet> {
        self.gets.pop_front()
    }

    pub(crate) fn status(&self, number: u16) -> Option<PortalStatus> {
        let portal = self.table.get(number)?;
        Some(PortalStatus {
            state: portal.state.0,
            drop_count: portal.drops,
            les_allocated: self.pools.used(portal.config.pool),
            // Rule 6.7: The status has one number per unexpected message, oldest first.
            unexpected: portal.unexpected.values().map(Header::place).collect(),
        })
    }

    /// PTE_TRANSITION_SM.
    pub(crate) fn transition_to_software(
        &mut self,
        number: u16,
        drop_count: u32,
    ) -> Result<(), NoTransition> {
        let portal = self.table.get_mut(number).ok_or(NoTransition::NotDisabled)?;
        // Rule 6.5: The kernel's transition to software requires a disabled PtlTE and its exact
        // drop count, generates no event, and does nothing if software already manages the lists.
        match portal.state {
            PtlteState::SOFTWARE_MANAGED => Ok(()),
            PtlteState::DISABLED if portal.drops != drop_count => Err(NoTransition::Drops),
            PtlteState::DISABLED => {
                portal.state = PtlteState::SOFTWARE_MANAGED;
                portal.drops = 0;
                Ok(())
            }
            _ => Err(NoTransition::NotDisabled),
        }
    }
}
