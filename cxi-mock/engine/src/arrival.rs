//! Requests that arrive: which list entry a request is for, and how much of that entry it uses.

use cxi_hw::{DmaOp, EventType, List, PtlteState, ReturnCode, StateReason, TargetFlags};

use crate::entry::Entry;
use crate::landing::{Landing, keeps_header};
use crate::packet::{ReplyTo, Request};
use crate::portal::{Nic, PortalState, Portals};
use crate::signals::Signals;
use crate::{PortalOptions, Settings, atomic, request_header};

/// Drop counts have 24 bits.
const DROP_MASK: u32 = 0xff_ffff;

impl Portals {
    /// Finds the entry that a request is for, and takes what the request needs of it.
    pub(crate) fn accept(
        &mut self,
        back: ReplyTo,
        request: &Request,
        settings: &Settings,
        signals: &mut Signals,
    ) -> Result<Box<Landing>, ReturnCode> {
        let number = self.directory.find(request)?;
        let (portal, mut nic) =
            self.open(number, settings, signals).ok_or(ReturnCode::PTLTE_NOT_FOUND)?;
        portal.accept(back, request, &mut nic)
    }
}

impl PortalState {
    fn accept(
        &mut self,
        back: ReplyTo,
        request: &Request,
        nic: &mut Nic<'_>,
    ) -> Result<Box<Landing>, ReturnCode> {
        if !matches!(self.state, PtlteState::ENABLED | PtlteState::SOFTWARE_MANAGED) {
            // Rule 8.5: A PtlTE that is disabled or reset refuses all requests; when disabled, it
            // counts them as drops, except for gets.
            if self.state == PtlteState::DISABLED && request.op != DmaOp::GET {
                self.drops = self.drops.wrapping_add(1) & DROP_MASK;
            }
            return Err(ReturnCode::PT_DISABLED);
        }
        // Room for events comes before matching: a message that matches must be reported.
        let flow_control = self.has(PortalOptions::EN_FLOWCTRL);
        if flow_control && !nic.signals.has_room(self.config.eq) {
            return Err(self.disable(StateReason::FC_EQ_FULL, nic));
        }
        let telemetry = &mut nic.signals.telemetry;
        if self.has(PortalOptions::IS_MATCHING) {
            telemetry.element(self.config.pool).requests += 1;
        } else {
            telemetry.fast_path_hits += 1;
        }
        let Some((list, place)) = self.find(request) else {
            return Err(self.unmatched(request, nic));
        };
        let entry = self.list(list).get(place).copied().ok_or(ReturnCode::ENTRY_NOT_FOUND)?;
        // Without flow control the initiator is told to try again, so that no event is lost.
        if !flow_control && entry.reports(request, true) && nic.signals.is_full(self.config.eq) {
            nic.signals.telemetry.queue_full += 1;
            return Err(ReturnCode::ENTRY_NOT_FOUND);
        }
        if let Err(code) = check(&entry, list, self.config.options, request) {
            entry.count_failure(nic.signals);
            return Err(code);
        }
        if keeps_header(list, &entry) && !nic.pools.take(self.config.pool) {
            return self.no_header(back, request, nic);
        }
        self.use_entry(back, request, (list, place), nic)
    }

    /// Takes what the request needs of the entry.
    fn use_entry(
        &mut self,
        back: ReplyTo,
        request: &Request,
        (list, place): (List, usize),
        nic: &mut Nic<'_>,
    ) -> Result<Box<Landing>, ReturnCode> {
        let config = self.config;
        let (number, generation) = (self.number, self.generation);
        let entries = &mut self.lists[usize::from(list.0)];
        let entry = entries.get_mut(place).ok_or(ReturnCode::ENTRY_NOT_FOUND)?;
        let remote_offset = offset(config.options, request);
        let header = request_header::len(list, request);
        let room = entry.room(remote_offset).saturating_sub(header.into());
        // Rule 10.9: A truncated put to a locally managed entry succeeds, so that software can
        // build a rendezvous from plain puts.
        let moved = u64::from(request.carried()).min(room);
        let consumed = if request.is_rendezvous() && list == List::PRIORITY {
            u64::from(request.length).min(room)
        } else {
            moved + u64::from(header)
        };
        let counts = nic.signals.telemetry.element(config.pool);
        counts.truncated += u64::from(room < wanted(list, request).into());
        if config.options.contains(PortalOptions::IS_MATCHING) {
            counts.match_entry(request, list, entry);
        }
        self.arrivals += 1;
        let mut landing = Box::new(Landing {
            arrival: self.arrivals,
            back,
            request: *request,
            number,
            generation,
            rgid: config.rgid,
            pool: config.pool,
            list,
            entry: *entry,
            iova: entry.address(remote_offset),
            // No more than was requested.
            mlength: u32::try_from(moved).unwrap_or(u32::MAX),
            header,
            room,
            auto_unlinked: false,
        });
        let used_up = entry.consume(consumed);
        landing.entry.offset = entry.offset;
        if used_up {
            // Rule 7.6: An entry that is used once, or has fewer than min_free bytes left, is
            // unlinked before the message is reported.
            entries.remove(place);
            nic.pools.give(config.pool, 1);
            landing.auto_unlinked = true;
            let flags = landing.entry.flags;
            if !flags.contains(TargetFlags::EVENT_UNLINK_DISABLE) {
                let event = self.unlink_event(list, &landing.entry, true);
                self.post(&event, nic.signals);
            }
        }
        let moving = (landing.arrival, list, landing.entry.buffer_id);
        self.moving.push(moving);
        if landing.keeps_header() {
            // Before the data moves: an entry that is appended meanwhile must find the message.
            self.keep_header(&landing);
        }
        if self.has(PortalOptions::EN_EVENT_MATCH) && landing.entry.reports(request, true) {
            // Rule 8.10: If the PtlTE asks for it, a MATCH event precedes the event of the message.
            self.post_target(&landing, EventType::MATCH, ReturnCode::OK, nic.signals);
        }
        Ok(landing)
    }

    /// Handles a request that no entry matched.
    fn unmatched(&mut self, request: &Request, nic: &mut Nic<'_>) -> ReturnCode {
        // Rule 8.4: An unmatched message disables a PtlTE that has flow control or is managed by
        // software; otherwise it is refused without a target event.
        if self.state == PtlteState::SOFTWARE_MANAGED {
            return self.disable(StateReason::FC_REQUEST_FULL, nic);
        }
        if self.has(PortalOptions::EN_FLOWCTRL) {
            return self.disable(StateReason::FC_NO_MATCH, nic);
        }
        let forbids = !self.has(PortalOptions::IS_MATCHING)
            && self.lists[0].find(0, |key| !key.allows(request.op)).is_some();
        if forbids {
            return ReturnCode::OP_VIOLATION;
        }
        nic.signals.telemetry.no_match += 1;
        ReturnCode::ENTRY_NOT_FOUND
    }

    fn disable(&mut self, reason: StateReason, nic: &mut Nic<'_>) -> ReturnCode {
        self.change_state(PtlteState::DISABLED, reason, nic);
        ReturnCode::PT_DISABLED
    }

    /// Handles an unexpected message for whose header no list entry is left.
    fn no_header(
        &mut self,
        back: ReplyTo,
        request: &Request,
        nic: &mut Nic<'_>,
    ) -> Result<Box<Landing>, ReturnCode> {
        if self.has(PortalOptions::EN_SW_HW_ST_CHNG) {
            let reason = StateReason::SM_UNEXPECTED_FAIL;
            self.change_state(PtlteState::SOFTWARE_MANAGED, reason, nic);
            // This repeats only once, because request lists keep no headers.
            return self.accept(back, request, nic);
        }
        if self.has(PortalOptions::EN_FLOWCTRL) {
            return Err(self.disable(StateReason::FC_UNEXPECTED_FAIL, nic));
        }
        Err(ReturnCode::NO_SPACE)
    }

    /// Finds the first entry that a request matches, in the lists that count in this state.
    fn find(&self, request: &Request) -> Option<(List, usize)> {
        // Rule 8.1: The priority list is searched first, then the overflow list or, if software
        // manages the PtlTE, the request list; the first matching entry wins.
        let second =
            if self.state == PtlteState::SOFTWARE_MANAGED { List::REQUEST } else { List::OVERFLOW };
        let matching = self.has(PortalOptions::IS_MATCHING);
        let label = (request.match_bits, request.initiator.0);
        let offset = offset(self.config.options, request);
        [List::PRIORITY, second].into_iter().find_map(|list| {
            let entries = &self.lists[usize::from(list.0)];
            let len =
                u64::from(wanted(list, request)) + u64::from(request_header::len(list, request));
            let mut from = 0;
            loop {
                let place = if matching {
                    entries.find_labelled(from, label, |key| {
                        key.matches(request.match_bits, request.initiator) && key.allows(request.op)
                    })?
                } else {
                    entries.find(from, |key| key.allows(request.op))?
                };
                if entries.get(place).is_some_and(|entry| entry.fits(offset, len)) {
                    return Some((list, place));
                }
                from = place + 1;
            }
        })
    }
}

/// Bytes of a buffer that a request takes. On a priority list, a rendezvous put takes room for the
/// whole message.
fn wanted(list: List, request: &Request) -> u32 {
    if list == List::PRIORITY { request.length } else { request.carried() }
}

/// The offset that a request asks for. For a rendezvous put, it may be the offset at the source.
pub(crate) fn offset(options: PortalOptions, request: &Request) -> u64 {
    if request.is_offset_of_source() || options.contains(PortalOptions::CLR_REMOTE_OFFSET) {
        0
    } else {
        request.remote_offset
    }
}

/// Checks for which reasons a matching entry may still refuse a request.
fn check(
    entry: &Entry,
    list: List,
    options: PortalOptions,
    request: &Request,
) -> Result<(), ReturnCode> {
    let offset = offset(options, request);
    let len = wanted(list, request);
    // Rule 7.11: Bounds are checked whether or not the PtlTE matches.
    let beyond = u64::from(len) > entry.room(offset);
    // Rule 7.10: A locally managed entry truncates; any other entry refuses an access beyond its
    // end.
    if !entry.managed() && beyond {
        return Err(ReturnCode::OP_VIOLATION);
    }
    let Some(atomic) = &request.atomic else { return Ok(()) };
    let size = atomic::check(atomic)?;
    // Rule 13.7: An atomic must be aligned to its size.
    if !entry.address(offset).is_multiple_of(size.into()) {
        return Err(ReturnCode::AMO_ALIGN_ERROR);
    }
    if u64::from(size) > entry.room(offset) {
        return Err(ReturnCode::OP_VIOLATION);
    }
    Ok(())
}
