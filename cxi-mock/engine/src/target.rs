//! Commands of target queues: states, appends and unlinks.

use cxi_hw::{
    Class, DmaOp, EventType, List, PtlteState, ReturnCode, SetState, StateChange, StateReason,
    TargetCommand, TargetFlags, TargetLong, TargetOp,
};

use crate::arrival::offset;
use crate::command_queue::Fetched;
use crate::landing::describe;
use crate::portal::{self, Entry, Header, Key};
use crate::{Engine, PortalOptions};

/// A drop count that stands for any.
const ANY_DROPS: u32 = 0xff_ffff;

impl Engine {
    pub(crate) fn execute_target(
        &mut self,
        queue: u16,
        fetched: &Fetched,
    ) -> Result<(), ReturnCode> {
        let byte = fetched.byte;
        if byte.class() != Class::CQ {
            return Err(ReturnCode::ILLEGAL_OP);
        }
        let op = TargetOp(byte.opcode());
        // The operation without effect has no name among those of target queues.
        if op == TargetOp(0) {
            return Ok(());
        }
        if byte.slots() != 2 {
            return Err(ReturnCode::CMD_INVALID_ARG);
        }
        let rgid = self.queues.table.get(queue).map(|queue| queue.rgid);
        let command = TargetCommand::decode(&fetched.head());
        // All these commands have the PtlTE in the same place.
        let portal = self.portals.table.get(command.ptlte_index);
        if portal.map(|portal| portal.config.rgid) != rgid || rgid.is_none() {
            return Err(ReturnCode::CMD_INVALID_ARG);
        }
        let counter = self.signals.may_count(rgid.unwrap_or(0), command.ct);
        match op {
            TargetOp::SETSTATE => self.set_state(&SetState::decode(&fetched.head())),
            TargetOp::APPEND if counter && command.ptl_list.0 < 3 => {
                self.append(&command);
                Ok(())
            }
            TargetOp::UNLINK if command.ptl_list.0 < 3 => {
                self.unlink(&command);
                Ok(())
            }
            TargetOp::APPEND | TargetOp::UNLINK => Err(ReturnCode::CMD_INVALID_ARG),
            TargetOp::SEARCH => {
                self.search(&command, false);
                Ok(())
            }
            TargetOp::SEARCH_AND_DELETE => {
                self.search(&command, true);
                Ok(())
            }
            _ => Err(ReturnCode::ILLEGAL_OP),
        }
    }

    fn set_state(&mut self, command: &SetState) -> Result<(), ReturnCode> {
        let number = command.ptlte_index;
        let portal = self
            .portals
            .table
            .get_mut(number)
            .ok_or(ReturnCode::CMD_INVALID_ARG)?;
        let state = command.ptlte_state;
        if state > PtlteState::ETHERNET {
            return Err(ReturnCode::CMD_INVALID_ARG);
        }
        let enables = matches!(state, PtlteState::ENABLED | PtlteState::SOFTWARE_MANAGED);
        let refused = enables
            && portal.state == PtlteState::DISABLED
            && command.drop_count != ANY_DROPS
            && command.drop_count != portal.drops;
        if !refused {
            // Drops count from the change on.
            if portal.state != state {
                portal.drops = 0;
            }
            portal.state = state;
        }
        let pool = portal.config.pool;
        let change = StateChange {
            state: portal.state,
            reason: StateReason::default(),
            by_nic: false,
        };
        let code = if refused {
            ReturnCode::NO_MATCH
        } else {
            ReturnCode::OK
        };
        self.telemetry.element(pool).states.add(!refused);
        self.post_state_change(number, change, command.current_addr, code);
        Ok(())
    }

    fn append(&mut self, command: &TargetCommand) {
        let Some(portal) = self.portals.table.get(command.ptlte_index) else {
            return;
        };
        let pool = portal.config.pool;
        let linked = self.link(command);
        let code = linked.err().unwrap_or(ReturnCode::OK);
        self.telemetry.append(pool, code);
        let quiet = command.flags.contains(TargetFlags::EVENT_LINK_DISABLE);
        if linked.is_err() || linked == Ok(true) && !quiet {
            self.post_link(command, code);
        }
    }

    /// Adds an entry to its list. Says whether unexpected messages have left anything of it.
    fn link(&mut self, command: &TargetCommand) -> Result<bool, ReturnCode> {
        let number = command.ptlte_index;
        let pid_bits = self.settings.pid_bits;
        let portal = self.portals.table.get_mut(number);
        let portal = portal.ok_or(ReturnCode::PTLTE_NOT_FOUND)?;
        let list = usize::from(command.ptl_list.0);
        let priority = command.ptl_list == List::PRIORITY;
        if priority && portal.state == PtlteState::SOFTWARE_MANAGED {
            return Err(ReturnCode::PTLTE_SW_MANAGED);
        }
        if command.restart_seq {
            portal.closed[list] = false;
        }
        if portal.closed[list] || !self.pools.take(portal.config.pool) {
            portal.closed[list] = true;
            let hands_over = priority
                && portal.state == PtlteState::ENABLED
                && portal.has(PortalOptions::EN_SW_HW_ST_CHNG);
            if !hands_over {
                return Err(ReturnCode::NO_SPACE);
            }
            let reason = StateReason::SM_APPEND_FAIL;
            self.change_state(number, PtlteState::SOFTWARE_MANAGED, reason);
            return Err(ReturnCode::PTLTE_SW_MANAGED);
        }
        let key = Key::new(command, portal.config.options, pid_bits);
        let pool = portal.config.pool;
        let mut entry = Entry::new(command);
        if priority && self.claim_unexpected(number, &key, &mut entry) {
            self.pools.give(pool, 1);
            return Ok(false);
        }
        if let Some(portal) = self.portals.table.get_mut(number) {
            portal.lists[list].tidy();
            portal.lists[list].push(key, entry);
        }
        Ok(true)
    }

    fn post_link(&mut self, command: &TargetCommand, return_code: ReturnCode) {
        let number = command.ptlte_index;
        let Some(portal) = self.portals.table.get(number) else {
            return;
        };
        let config = portal.config;
        let event = TargetLong {
            buffer_id: command.buffer_id,
            start: command.start,
            lpe_stat_1: self.pools.used(config.pool),
            lpe_stat_2: self.pools.size(config.pool),
            return_code,
            ..portal::event(EventType::LINK, number, command.ptl_list)
        };
        self.signals.post(config.eq, &event.encode());
    }

    /// Gives an entry the unexpected messages that it matches, oldest first. Says whether they use
    /// it up.
    fn claim_unexpected(&mut self, number: u16, key: &Key, entry: &mut Entry) -> bool {
        let mut from = 0;
        loop {
            let Some(portal) = self.portals.table.get_mut(number) else {
                return true;
            };
            let options = portal.config.options;
            let matching = options.contains(PortalOptions::IS_MATCHING);
            let Some(place) = key.find_unexpected(&portal.unexpected, from, matching) else {
                return false;
            };
            from = place + 1;
            let fits = portal.unexpected.get(place).is_some_and(|header| {
                let request = &header.request;
                let offset = offset(options, request);
                key.allows(request.op) && entry.fits(offset, request.length.into())
            });
            if !fits {
                continue;
            }
            let pool = portal.config.pool;
            let Some(header) = portal.unexpected.remove(place) else {
                continue;
            };
            self.pools.give(pool, 1);
            if self.claim(number, &header, entry, offset(options, &header.request)) {
                return true;
            }
        }
    }

    /// Gives an entry an unexpected message. Says whether that uses it up.
    fn claim(
        &mut self,
        number: u16,
        header: &Header,
        entry: &mut Entry,
        remote_offset: u64,
    ) -> bool {
        let request = &header.request;
        let room = entry.room(remote_offset);
        let offset = if entry.managed() {
            entry.offset
        } else {
            remote_offset
        };
        let start = entry.start.wrapping_add(offset);
        let used_up = entry.consume(u64::from(request.length).min(room));
        let quiet = TargetFlags::EVENT_COMM_DISABLE | TargetFlags::EVENT_SUCCESS_DISABLE;
        if !entry.flags.intersects(quiet) {
            self.post_overflow(number, header, (List::PRIORITY, entry.buffer_id), used_up);
        }
        if entry.flags.contains(TargetFlags::EVENT_CT_OVERFLOW) {
            self.count_success(entry, header.mlength);
        }
        if request.op == DmaOp::RENDEZVOUS_PUT {
            let entry = *entry;
            self.claim_rendezvous(number, header, (&entry, start, room), used_up);
        }
        used_up
    }

    /// PUT_OVERFLOW and the like: what an unexpected message was, and where it is.
    pub(crate) fn post_overflow(
        &mut self,
        number: u16,
        header: &Header,
        (list, buffer_id): (List, u16),
        auto_unlinked: bool,
    ) {
        let kind = match header.request.op {
            DmaOp::GET => EventType::GET_OVERFLOW,
            DmaOp::ATOMIC => EventType::ATOMIC_OVERFLOW,
            DmaOp::FETCHING_ATOMIC => EventType::FETCH_ATOMIC_OVERFLOW,
            _ => EventType::PUT_OVERFLOW,
        };
        self.post_header(number, header, (kind, list, buffer_id), auto_unlinked);
    }

    pub(crate) fn post_header(
        &mut self,
        number: u16,
        header: &Header,
        (kind, list, buffer_id): (EventType, List, u16),
        auto_unlinked: bool,
    ) {
        let Some(portal) = self.portals.table.get(number) else {
            return;
        };
        let eq = portal.config.eq;
        let event = describe(&header.request, portal::event(kind, number, list));
        let event = TargetLong {
            auto_unlinked,
            buffer_id,
            mlength: header.mlength,
            // No longer known.
            remote_offset: 0,
            start: header.start,
            ..event
        };
        self.signals.post(eq, &event.encode());
    }

    fn unlink(&mut self, command: &TargetCommand) {
        let number = command.ptlte_index;
        let list = command.ptl_list;
        let Some(portal) = self.portals.table.get_mut(number) else {
            return;
        };
        let config = portal.config;
        let entries = &mut portal.lists[usize::from(list.0)];
        let found = entries.remove_first(|entry| entry.buffer_id == command.buffer_id);
        self.telemetry.unlinks.add(found.is_some());
        if let Some(entry) = found {
            self.pools.give(config.pool, 1);
            return self.post_unlink(number, list, &entry, false);
        }
        let event = TargetLong {
            buffer_id: command.buffer_id,
            return_code: ReturnCode::ENTRY_NOT_FOUND,
            ..portal::event(EventType::UNLINK, number, list)
        };
        self.signals.post(config.eq, &event.encode());
    }
}
