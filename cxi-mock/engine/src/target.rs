//! Commands of target queues: states, appends, unlinks and searches.

use cxi_hw::{
    Class, CommandByte, DmaOp, EventType, List, PtlteState, ReturnCode, SetState, StateChange,
    StateReason, TargetCommand, TargetFlags, TargetLong, TargetOp,
};

use crate::arrival::offset;
use crate::entry::Entry;
use crate::portal::{Header, Key, Nic, PortalState, Portals};
use crate::report::describe;
use crate::signals::Signals;
use crate::{PortalOptions, Settings};

/// A drop count that matches any.
const ANY_DROPS: u32 = 0xff_ffff;

impl Portals {
    /// Executes a command of a target queue of an RGID.
    pub(crate) fn execute(
        &mut self,
        rgid: u16,
        byte: CommandByte,
        bytes: &[u8; TargetCommand::BYTES],
        settings: &Settings,
        signals: &mut Signals,
    ) -> Result<(), ReturnCode> {
        // Rule 2.12: Commands of target queues are all of one class and 64 bytes long.
        if byte.class() != Class::CQ {
            return Err(ReturnCode::ILLEGAL_OP);
        }
        let op = TargetOp(byte.opcode());
        // The operation without effect has no name among the target operations.
        if op == TargetOp(0) {
            return Ok(());
        }
        if byte.slots() != 2 {
            return Err(ReturnCode::CMD_INVALID_ARG);
        }
        let command = TargetCommand::decode(bytes);
        let counter = signals.may_count(rgid, command.ct);
        // All these commands name the PtlTE in the same place.
        let (portal, mut nic) = self
            .open(command.ptlte_index, settings, signals)
            .filter(|(portal, _)| portal.config.rgid == rgid)
            .ok_or(ReturnCode::CMD_INVALID_ARG)?;
        let nic = &mut nic;
        // Rule 6.6: A disabled PtlTE keeps its lists, and target commands work in every state.
        match op {
            TargetOp::SETSTATE => return portal.set_state(&SetState::decode(bytes), nic),
            TargetOp::APPEND if counter && command.ptl_list.0 < 3 => portal.append(&command, nic),
            TargetOp::UNLINK if command.ptl_list.0 < 3 => portal.unlink(&command, nic),
            TargetOp::APPEND | TargetOp::UNLINK => return Err(ReturnCode::CMD_INVALID_ARG),
            // Rule 11.3: A search runs after all earlier commands of its queue, so programs use one
            // that finds nothing as a flush.
            TargetOp::SEARCH => portal.search(&command, false, nic),
            TargetOp::SEARCH_AND_DELETE => portal.search(&command, true, nic),
            _ => return Err(ReturnCode::ILLEGAL_OP),
        }
        Ok(())
    }
}

impl PortalState {
    fn set_state(&mut self, command: &SetState, nic: &mut Nic<'_>) -> Result<(), ReturnCode> {
        let state = command.ptlte_state;
        if state > PtlteState::ETHERNET {
            return Err(ReturnCode::CMD_INVALID_ARG);
        }
        // Rule 6.3: Enabling a disabled PtlTE requires its exact drop count, or the value that
        // stands for any.
        let enables = matches!(state, PtlteState::ENABLED | PtlteState::SOFTWARE_MANAGED);
        let refused = enables
            && self.state == PtlteState::DISABLED
            && command.drop_count != ANY_DROPS
            && command.drop_count != self.drops;
        if !refused {
            // Drops are counted from the change on.
            if self.state != state {
                self.drops = 0;
            }
            // Rule 11.5: Software disables a PtlTE itself before it takes over the lists.
            self.state = state;
        }
        let change =
            StateChange { state: self.state, reason: StateReason::default(), by_nic: false };
        let code = if refused { ReturnCode::NO_MATCH } else { ReturnCode::OK };
        nic.signals.telemetry.element(self.config.pool).states.add(!refused);
        // Rule 6.1: Each SETSTATE is answered by a STATE_CHANGE with the resulting state.
        self.post_state_change(change, command.current_addr, code, nic.signals);
        Ok(())
    }

    fn append(&mut self, command: &TargetCommand, nic: &mut Nic<'_>) {
        let linked = self.link(command, nic);
        let code = linked.err().unwrap_or(ReturnCode::OK);
        nic.signals.telemetry.append(self.config.pool, code);
        // Rule 7.1: Each append is answered by LINK; an entry can suppress that for success, but
        // not for failure.
        let suppress = command.flags.contains(TargetFlags::EVENT_LINK_DISABLE);
        if linked.is_err() || linked == Ok(true) && !suppress {
            let event = TargetLong {
                buffer_id: command.buffer_id,
                start: command.start,
                lpe_stat_1: nic.pools.used(self.config.pool),
                lpe_stat_2: nic.pools.size(self.config.pool),
                return_code: code,
                ..self.event(EventType::LINK, command.ptl_list)
            };
            self.post(&event, nic.signals);
        }
    }

    /// Adds an entry to its list, unless unexpected messages use it up. Returns whether it is linked.
    fn link(&mut self, command: &TargetCommand, nic: &mut Nic<'_>) -> Result<bool, ReturnCode> {
        let list = usize::from(command.ptl_list.0);
        let priority = command.ptl_list == List::PRIORITY;
        if priority && self.state == PtlteState::SOFTWARE_MANAGED {
            return Err(ReturnCode::PTLTE_SW_MANAGED);
        }
        // Rule 11.4: The first append of a recovery restarts the list that a failed append has
        // closed.
        if command.restart_seq {
            self.closed[list] = false;
        }
        // Rule 7.3: List entries and unexpected messages are taken from the same pool.
        if self.closed[list] || !nic.pools.take(self.config.pool) {
            // Rule 7.2: An append without room closes the list, so that later entries cannot
            // overtake it, until an append restarts the list.
            self.closed[list] = true;
            let hands_over = priority
                && self.state == PtlteState::ENABLED
                && self.has(PortalOptions::EN_SW_HW_ST_CHNG);
            if !hands_over {
                return Err(ReturnCode::NO_SPACE);
            }
            // Rule 11.6: If the PtlTE allows it, the NIC hands the lists over to software when an
            // append or a header finds no room.
            let reason = StateReason::SM_APPEND_FAIL;
            self.change_state(PtlteState::SOFTWARE_MANAGED, reason, nic);
            return Err(ReturnCode::PTLTE_SW_MANAGED);
        }
        let key = Key::new(command, self.config.options, nic.settings.pid_bits);
        let mut entry = Entry::new(command);
        // Rule 7.4: An append to the priority list first takes matching unexpected messages; an
        // entry that they use up is never linked and gets no LINK event.
        if priority && self.claim_unexpected(&key, &mut entry, nic) {
            nic.pools.give(self.config.pool, 1);
            return Ok(false);
        }
        self.lists[list].tidy();
        self.lists[list].push(key, entry);
        Ok(true)
    }

    /// Gives an entry the unexpected messages that it matches, oldest first. Returns whether they
    /// use it up.
    fn claim_unexpected(&mut self, key: &Key, entry: &mut Entry, nic: &mut Nic<'_>) -> bool {
        let options = self.config.options;
        let matching = options.contains(PortalOptions::IS_MATCHING);
        let mut from = 0;
        while let Some(place) = key.find_unexpected(&self.unexpected, from, matching) {
            from = place + 1;
            let fits = self.unexpected.get(place).is_some_and(|header| {
                let request = &header.request;
                key.allows(request.op)
                    && entry.fits(offset(options, request), request.length.into())
            });
            if fits && let Some(header) = self.unexpected.remove(place) {
                nic.pools.give(self.config.pool, 1);
                if self.claim(&header, entry, nic) {
                    return true;
                }
            }
        }
        false
    }

    /// Gives an entry an unexpected message. Returns whether that uses it up.
    fn claim(&mut self, header: &Header, entry: &mut Entry, nic: &mut Nic<'_>) -> bool {
        let request = &header.request;
        let remote_offset = offset(self.config.options, request);
        let room = entry.room(remote_offset);
        let start = entry.address(remote_offset);
        // Rule 8.6: A new entry takes matching unexpected messages, oldest first, until it is used
        // up; each is reported by PUT_OVERFLOW or the like with the new entry's buffer ID.
        let used_up = entry.consume(u64::from(request.length).min(room));
        if entry.reports(request, true) {
            let found = (List::PRIORITY, entry.buffer_id);
            self.post_overflow(header, found, used_up, nic.signals);
        }
        if entry.flags.contains(TargetFlags::EVENT_CT_OVERFLOW) {
            entry.count_success(header.mlength, nic.signals);
        }
        if request.is_rendezvous() {
            self.claim_rendezvous(header, (entry, start, room), used_up, nic);
        }
        used_up
    }

    /// Posts PUT_OVERFLOW or the like: what an unexpected message was, and where it is.
    fn post_overflow(
        &self,
        header: &Header,
        (list, buffer_id): (List, u16),
        auto_unlinked: bool,
        signals: &mut Signals,
    ) {
        let kind = match header.request.op {
            DmaOp::GET => EventType::GET_OVERFLOW,
            DmaOp::ATOMIC => EventType::ATOMIC_OVERFLOW,
            DmaOp::FETCHING_ATOMIC => EventType::FETCH_ATOMIC_OVERFLOW,
            _ => EventType::PUT_OVERFLOW,
        };
        self.post_header(header, (kind, list, buffer_id), auto_unlinked, signals);
    }

    fn post_header(
        &self,
        header: &Header,
        (kind, list, buffer_id): (EventType, List, u16),
        auto_unlinked: bool,
        signals: &mut Signals,
    ) {
        let event = TargetLong {
            auto_unlinked,
            buffer_id,
            mlength: header.mlength,
            // The NIC does not keep the offset with the header.
            remote_offset: 0,
            start: header.start,
            ..describe(&header.request, self.event(kind, list))
        };
        self.post(&event, signals);
    }

    fn unlink(&mut self, command: &TargetCommand, nic: &mut Nic<'_>) {
        let list = command.ptl_list;
        let of_buffer = |entry: &Entry| entry.buffer_id == command.buffer_id;
        let found = self.list(list).remove_first(of_buffer);
        nic.signals.telemetry.unlinks.add(found.is_some());
        // Rule 7.5: UNLINK is always answered; ENTRY_NOT_FOUND means that a message may have used
        // the entry first.
        let event = if let Some(entry) = found {
            nic.pools.give(self.config.pool, 1);
            self.unlink_event(list, &entry, false)
        } else {
            TargetLong {
                buffer_id: command.buffer_id,
                return_code: ReturnCode::ENTRY_NOT_FOUND,
                ..self.event(EventType::UNLINK, list)
            }
        };
        // Rule 8.12: An unlinked entry takes nothing more: UNLINK follows the events of all messages
        // that have matched it, because the program may free its memory then.
        self.unlinks.push((self.arrivals, event));
        self.post_unlinks(nic.signals);
    }

    /// SEARCH and SEARCH_AND_DELETE: reports unexpected messages, oldest first, and takes them off
    /// the list if they are to be deleted.
    fn search(&mut self, command: &TargetCommand, delete: bool, nic: &mut Nic<'_>) {
        let once = command.flags.contains(TargetFlags::USE_ONCE);
        let key = Key::new(command, self.config.options, nic.settings.pid_bits);
        let matching = self.has(PortalOptions::IS_MATCHING);
        let found = (List::UNEXPECTED, command.buffer_id);
        let mut from = 0;
        while let Some(place) = key.find_unexpected(&self.unexpected, from, matching) {
            from = place + 1;
            if delete {
                // Rule 11.2: A deleted message is reported by PUT_OVERFLOW or the like, as if an
                // entry had taken it.
                if let Some(header) = self.unexpected.remove(place) {
                    nic.pools.give(self.config.pool, 1);
                    self.post_overflow(&header, found, false, nic.signals);
                }
            } else if let Some(header) = self.unexpected.get(place) {
                let found = (EventType::SEARCH, found.0, found.1);
                self.post_header(header, found, false, nic.signals);
            }
            if once {
                break;
            }
        }
        let telemetry = &mut nic.signals.telemetry;
        let counts = if delete { &mut telemetry.deletions } else { &mut telemetry.searches };
        counts.add(from > 0);
        // Rule 11.1: A search ends with a NO_MATCH event, unless it asked for one message and found
        // it.
        if once && from > 0 {
            return;
        }
        let event = TargetLong {
            buffer_id: command.buffer_id,
            return_code: ReturnCode::NO_MATCH,
            ..self.event(EventType::SEARCH, List::UNEXPECTED)
        };
        self.post(&event, nic.signals);
    }
}
