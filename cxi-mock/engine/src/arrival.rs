//! Incoming packets: which list entry a request is for.

use cxi_hw::{DmaFlags, DmaOp, EventType, List, PtlteState, ReturnCode, StateReason, TargetFlags};

use crate::landing::{Landing, keeps_header};
use crate::packet::{Body, Data, Packet, Reply, Request};
use crate::portal::{Entry, PortalState};
use crate::{Engine, PortalOptions, atomic, request_header};

/// Where the answer to a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Return {
    pub(crate) to: u32,
    pub(crate) life: u32,
    pub(crate) slot: u32,
    pub(crate) sequence: u32,
    /// Whether somebody waits for the answer.
    pub(crate) awaited: bool,
}

/// The answer to a request, in case the request comes again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    back: Return,
    reply: Reply,
}

impl Engine {
    /// Takes the next packet.
    pub(crate) fn step_packets(&mut self) -> bool {
        let packet = self.inbox.pop_front();
        let Some(packet) = packet.or_else(|| self.fabric.receive(self.settings.nid)) else {
            return false;
        };
        let Packet {
            from,
            life,
            slot,
            sequence,
            body,
            ..
        } = packet;
        match body {
            Body::Reply(_) if life != self.life => {}
            Body::Reply(reply) => self.answered(slot, sequence, &reply),
            Body::Request(request, data) => {
                let back = Return {
                    to: from,
                    life,
                    slot,
                    sequence,
                    awaited: request.multicast.is_none(),
                };
                if !self.answer_again(back) {
                    self.arrive(back, &request, data);
                }
            }
        }
        true
    }

    /// Answers a request that came before with the same answer. Returns whether it came before.
    fn answer_again(&mut self, back: Return) -> bool {
        let Some(Answer { back: last, reply }) = self.answers.get(&(back.to, back.slot)).copied()
        else {
            return false;
        };
        // Lives of an address and sequences of a slot only grow.
        let life = back.life.wrapping_sub(last.life).cast_signed();
        let age = back.sequence.wrapping_sub(last.sequence).cast_signed();
        if (life, age) == (0, 0) {
            self.telemetry.repetitions += 1;
            self.send_reply(back, reply);
        }
        (life, age) <= (0, 0)
    }

    /// Answers a request.
    pub(crate) fn reply(&mut self, back: Return, reply: Reply) {
        if self.fabric.is_faulty() {
            self.answers
                .insert((back.to, back.slot), Answer { back, reply });
        } else if !self.answers.is_empty() {
            self.answers.remove(&(back.to, back.slot));
        }
        self.send_reply(back, reply);
    }

    fn send_reply(&mut self, back: Return, reply: Reply) {
        if !back.awaited {
            return;
        }
        self.send(Packet {
            from: self.settings.nid,
            to: back.to,
            life: back.life,
            slot: back.slot,
            sequence: back.sequence,
            body: Body::Reply(reply),
        });
    }

    fn arrive(&mut self, back: Return, request: &Request, data: Data) {
        self.telemetry.requests += 1;
        self.telemetry.restricted_packets += u64::from(request.is_restricted());
        self.telemetry.small_messages += u64::from(request.small);
        self.telemetry.flush_requests += u64::from(request.flags.contains(DmaFlags::FLUSH));
        let accepted = self.accept(back, request);
        let unknown = [ReturnCode::VNI_NOT_FOUND, ReturnCode::PTLTE_NOT_FOUND];
        if !accepted.as_ref().is_err_and(|code| unknown.contains(code)) {
            self.telemetry.commands.add(request.op.0);
        }
        match accepted {
            Ok(landing) => {
                self.telemetry.accepted.add(request.op.0);
                self.move_data(landing, data);
            }
            Err(code) => {
                self.telemetry.refusals.add(code.0);
                let reply = Reply::refusal(code);
                self.observe((back.to, self.settings.nid), request, &reply);
                self.reply(back, reply);
            }
        }
    }

    /// Finds the entry that a request is for, and what of it is used.
    fn accept(&mut self, back: Return, request: &Request) -> Result<Landing, ReturnCode> {
        let number = self.directory.find(request)?;
        let portal = self
            .portals
            .table
            .get_mut(number)
            .ok_or(ReturnCode::PTLTE_NOT_FOUND)?;
        let flow_control = portal.has(PortalOptions::EN_FLOWCTRL);
        match portal.state {
            PtlteState::ENABLED | PtlteState::SOFTWARE_MANAGED => {}
            state => {
                if state == PtlteState::DISABLED && request.op != DmaOp::GET {
                    portal.drops = portal.drops.wrapping_add(1) & 0xff_ffff;
                }
                return Err(ReturnCode::PT_DISABLED);
            }
        }
        if flow_control
            && self
                .signals
                .events
                .get(portal.config.eq)
                .is_some_and(|eq| !eq.has_room())
        {
            return Err(self.disable(number, StateReason::FC_EQ_FULL));
        }
        let pool = portal.config.pool;
        if portal.has(PortalOptions::IS_MATCHING) {
            self.telemetry.element(pool).requests += 1;
        } else {
            self.telemetry.fast_path_hits += 1;
        }
        let Some((list, place)) = find(portal, request) else {
            return Err(self.unmatched(number, request));
        };
        let config = portal.config;
        let entry = portal.lists[usize::from(list.0)].get(place);
        let entry = *entry.ok_or(ReturnCode::ENTRY_NOT_FOUND)?;
        if !flow_control
            && !entry.flags.contains(TargetFlags::EVENT_COMM_DISABLE)
            && !entry.flags.contains(TargetFlags::EVENT_SUCCESS_DISABLE)
            && self
                .signals
                .events
                .get(config.eq)
                .is_some_and(super::event_queue::Events::is_full)
        {
            self.telemetry.queue_full += 1;
            return Err(ReturnCode::ENTRY_NOT_FOUND);
        }
        if let Err(code) = check(&entry, list, config.options, request) {
            self.count_failure(&entry);
            return Err(code);
        }
        if keeps_header(list, &entry) && !self.pools.take(pool) {
            return self.no_header(back, number, request);
        }
        self.use_entry(back, request, (number, list, place))
    }

    /// Takes what the request needs of the entry.
    fn use_entry(
        &mut self,
        back: Return,
        request: &Request,
        (number, list, place): (u16, List, usize),
    ) -> Result<Landing, ReturnCode> {
        let portal = self
            .portals
            .table
            .get_mut(number)
            .ok_or(ReturnCode::PTLTE_NOT_FOUND)?;
        let options = portal.config.options;
        let (generation, pool) = (portal.generation, portal.config.pool);
        let entries = &mut portal.lists[usize::from(list.0)];
        let entry = entries.get_mut(place).ok_or(ReturnCode::ENTRY_NOT_FOUND)?;
        let remote_offset = offset(options, request);
        let header = request_header::len(list, request);
        let room = entry.room(remote_offset).saturating_sub(header.into());
        let carried = u64::from(carried(request));
        let moved = carried.min(room);
        let consumed = if request.op == DmaOp::RENDEZVOUS_PUT && list == List::PRIORITY {
            u64::from(request.length).min(room)
        } else {
            moved + u64::from(header)
        };
        let place_offset = if entry.managed() {
            entry.offset
        } else {
            remote_offset
        };
        let counts = self.telemetry.element(pool);
        counts.truncated += u64::from(room < wanted(list, request).into());
        if options.contains(PortalOptions::IS_MATCHING) {
            counts.match_entry(request, list, entry);
        }
        let mut landing = Landing {
            back,
            request: *request,
            number,
            generation,
            rgid: portal.config.rgid,
            pool,
            list,
            entry: *entry,
            iova: entry.start.wrapping_add(place_offset),
            // Neither is more than was requested.
            mlength: u32::try_from(moved).unwrap_or(u32::MAX),
            header,
            room: u32::try_from(room).unwrap_or(u32::MAX),
            auto_unlinked: false,
        };
        let used_up = entry.consume(consumed);
        landing.entry.offset = entry.offset;
        if used_up {
            entries.remove(place);
            self.pools.give(pool, 1);
            landing.auto_unlinked = true;
            self.post_auto_unlink(number, list, &landing.entry);
        }
        if options.contains(PortalOptions::EN_EVENT_MATCH) && landing.reports(true) {
            self.post_target(&landing, EventType::MATCH, ReturnCode::OK);
        }
        Ok(landing)
    }

    /// Nothing matched.
    fn unmatched(&mut self, number: u16, request: &Request) -> ReturnCode {
        let Some(portal) = self.portals.table.get(number) else {
            return ReturnCode::PTLTE_NOT_FOUND;
        };
        if portal.state == PtlteState::SOFTWARE_MANAGED {
            return self.disable(number, StateReason::FC_REQUEST_FULL);
        }
        if portal.has(PortalOptions::EN_FLOWCTRL) {
            return self.disable(number, StateReason::FC_NO_MATCH);
        }
        let forbids = !portal.has(PortalOptions::IS_MATCHING)
            && portal.lists[0]
                .find(0, |key| !key.allows(request.op))
                .is_some();
        if forbids {
            return ReturnCode::OP_VIOLATION;
        }
        self.telemetry.no_match += 1;
        ReturnCode::ENTRY_NOT_FOUND
    }

    fn disable(&mut self, number: u16, reason: StateReason) -> ReturnCode {
        self.change_state(number, PtlteState::DISABLED, reason);
        ReturnCode::PT_DISABLED
    }

    /// No list entry is left for the header of an unexpected message.
    fn no_header(
        &mut self,
        back: Return,
        number: u16,
        request: &Request,
    ) -> Result<Landing, ReturnCode> {
        let portal = self
            .portals
            .table
            .get(number)
            .ok_or(ReturnCode::PTLTE_NOT_FOUND)?;
        if portal.has(PortalOptions::EN_SW_HW_ST_CHNG) {
            let reason = StateReason::SM_UNEXPECTED_FAIL;
            self.change_state(number, PtlteState::SOFTWARE_MANAGED, reason);
            return self.accept(back, request);
        }
        if portal.has(PortalOptions::EN_FLOWCTRL) {
            return Err(self.disable(number, StateReason::FC_UNEXPECTED_FAIL));
        }
        Err(ReturnCode::NO_SPACE)
    }
}

/// Bytes that come with a request, or that it fetches.
pub(crate) fn carried(request: &Request) -> u32 {
    match request.op {
        DmaOp::RENDEZVOUS_PUT => request.eager,
        _ => request.length,
    }
}

/// Bytes that a request takes of a buffer: on a priority list, a rendezvous put the whole message.
fn wanted(list: List, request: &Request) -> u32 {
    if list == List::PRIORITY {
        request.length
    } else {
        carried(request)
    }
}

/// The offset that a request asks for. That of a rendezvous put may be the source's.
pub(crate) fn offset(options: PortalOptions, request: &Request) -> u64 {
    let of_source =
        request.op == DmaOp::RENDEZVOUS_PUT && request.flags.contains(DmaFlags::USE_OFFSET_FOR_GET);
    if of_source || options.contains(PortalOptions::CLR_REMOTE_OFFSET) {
        0
    } else {
        request.remote_offset
    }
}

/// The first entry of the lists that count in this state that a request matches.
fn find(portal: &PortalState, request: &Request) -> Option<(List, usize)> {
    let second = if portal.state == PtlteState::SOFTWARE_MANAGED {
        List::REQUEST
    } else {
        List::OVERFLOW
    };
    let matching = portal.has(PortalOptions::IS_MATCHING);
    let label = (request.match_bits, request.initiator.0);
    let offset = offset(portal.config.options, request);
    [List::PRIORITY, second].into_iter().find_map(|list| {
        let entries = &portal.lists[usize::from(list.0)];
        let len = u64::from(wanted(list, request)) + u64::from(request_header::len(list, request));
        let mut from = 0;
        loop {
            let place = if matching {
                entries.find_labelled(from, label, |key| {
                    key.matches(request.match_bits, request.initiator) && key.allows(request.op)
                })?
            } else {
                entries.find(from, |key| key.allows(request.op))?
            };
            if entries
                .get(place)
                .is_some_and(|entry| entry.fits(offset, len))
            {
                return Some((list, place));
            }
            from = place + 1;
        }
    })
}

/// What an entry that matches may still refuse.
fn check(
    entry: &Entry,
    list: List,
    options: PortalOptions,
    request: &Request,
) -> Result<(), ReturnCode> {
    let offset = offset(options, request);
    let len = wanted(list, request);
    if !entry.managed() && u64::from(len) > entry.room(offset) {
        return Err(ReturnCode::OP_VIOLATION);
    }
    if !entry.managed() && len > 0 && offset > entry.length {
        return Err(ReturnCode::OP_VIOLATION);
    }
    let Some(atomic) = &request.atomic else {
        return Ok(());
    };
    let size = atomic::check(atomic)?;
    let at = entry.start.wrapping_add(if entry.managed() {
        entry.offset
    } else {
        offset
    });
    if !at.is_multiple_of(size.into()) {
        return Err(ReturnCode::AMO_ALIGN_ERROR);
    }
    if u64::from(size) > entry.room(offset) {
        return Err(ReturnCode::OP_VIOLATION);
    }
    Ok(())
}
