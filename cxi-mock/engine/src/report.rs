//! Reports of the end of a request at the target.

use cxi_hw::{
    EventSize, EventType, List, MatchId, ReturnCode, TargetFlags, TargetLong, TargetShort,
};

use crate::landing::Landing;
use crate::packet::Request;
use crate::portal::{Header, Nic, PortalState, Portals};
use crate::signals::Signals;
use crate::{EventFlags, PortalOptions, Settings};

/// Lengths that a short event can hold: 20 bits.
const SHORT_BYTES: u32 = 1 << 20;

/// Fills an event with a request's properties.
pub(crate) fn describe(request: &Request, event: TargetLong) -> TargetLong {
    let rendezvous = request.is_rendezvous();
    let atomic = request.atomic.unwrap_or_default();
    // Rule 9.5: A long event describes the whole request; its remote offset is the initiator's even
    // for a locally managed entry, because programs send data in it.
    TargetLong {
        header_data: request.header_data,
        initiator: request.initiator,
        rendezvous,
        match_bits: request.match_bits,
        vni: request.vni,
        rlength: request.length,
        remote_offset: request.remote_offset,
        rendezvous_id: if rendezvous { request.rendezvous_id } else { 0 },
        atomic_type: atomic.ty,
        atomic_op: atomic.op,
        cswap_op: atomic.compare,
        ..event
    }
}

impl Portals {
    /// Reports how a request has ended: an event, then a counter. Continues a rendezvous put whose
    /// first bytes have arrived. Returns the number of the event queue.
    pub(crate) fn report(
        &mut self,
        landing: &Landing,
        code: ReturnCode,
        settings: &Settings,
        signals: &mut Signals,
    ) -> u16 {
        let current = (landing.number, landing.generation);
        if let Some((portal, mut nic)) = self.open_current(current, settings, signals) {
            portal.report(landing, code, &mut nic);
            return portal.config.eq;
        }
        // The PtlTE was freed while the data moved, and its entries with it.
        0
    }
}

impl PortalState {
    fn report(&mut self, landing: &Landing, code: ReturnCode, nic: &mut Nic<'_>) {
        let success = code == ReturnCode::OK;
        let entry = &landing.entry;
        if landing.keeps_header() && !success {
            self.take_header_back(landing, nic);
        }
        // Rule 8.9: A successful restricted put neither reports nor counts at the target, unless
        // the entry is locally managed and either the PtlTE asks for it or the put is a reduction.
        let reports_to_target = landing.request.multicast.is_some()
            || self.has(PortalOptions::EN_RESTRICTED_UNICAST_LM);
        let suppress =
            success && landing.request.is_restricted() && !(entry.managed() && reports_to_target);
        if !suppress && entry.reports(&landing.request, success) {
            self.post_target(landing, landing.event_type(), code, nic.signals);
        }
        if !suppress {
            if !success {
                entry.count_failure(nic.signals);
            } else if entry.flags.contains(TargetFlags::EVENT_CT_COMM) {
                entry.count_success(landing.mlength, nic.signals);
            }
        }
        if success && landing.has_rest() {
            self.start_rendezvous(landing, nic);
        }
        self.moving.retain(|(arrival, ..)| *arrival != landing.arrival);
        self.continue_claimed(landing.arrival, nic);
        self.post_unlinks(nic.signals);
    }

    /// Removes an unexpected message whose data has not arrived, unless an entry has taken it.
    fn take_header_back(&mut self, landing: &Landing, nic: &mut Nic<'_>) {
        let is_it = |header: &Header| header.arrival == landing.arrival;
        if self.unexpected.remove_first(is_it).is_some() {
            nic.pools.give(landing.pool, 1);
        }
    }

    /// Adds an unexpected message to the list.
    pub(crate) fn keep_header(&mut self, landing: &Landing) {
        // Rule 8.3: A message on the overflow list leaves a header, even if it is empty, unless the
        // entry disables that.
        let header = Header {
            request: landing.request,
            arrival: landing.arrival,
            from: landing.back.nid,
            // Rule 8.7: The PUT event of an unexpected message and its PUT_OVERFLOW have the same
            // start address, by which programs join the two.
            start: landing.iova,
            mlength: landing.mlength,
        };
        let key = (landing.request.match_bits, landing.request.initiator);
        self.unexpected.tidy();
        self.unexpected.push(key, header);
    }

    /// Writes an event about a request: a short one if that says enough.
    pub(crate) fn post_target(
        &self,
        landing: &Landing,
        kind: EventType,
        code: ReturnCode,
        signals: &mut Signals,
    ) {
        let eq = self.config.eq;
        let request = &landing.request;
        let moved = if code == ReturnCode::OK { landing.mlength } else { 0 };
        let mlength = moved + landing.header;
        let long = signals.has_flag(eq, EventFlags::TARGET_LONG)
            || self.has(PortalOptions::USE_LONG_EVENT)
            || landing.list != List::PRIORITY
            || request.is_rendezvous()
            || kind == EventType::MATCH
            // Rule 9.8: A length of more than 20 bits needs a long event.
            || mlength >= SHORT_BYTES;
        if long {
            let event = TargetLong {
                auto_unlinked: landing.auto_unlinked,
                buffer_id: landing.entry.buffer_id,
                mlength,
                start: landing.iova,
                return_code: code,
                ..self.event(kind, landing.list)
            };
            self.post(&describe(request, event), signals);
        } else {
            let event = TargetShort {
                header_data: request.header_data,
                initiator: MatchId(request.initiator.0),
                ptlte_index: self.number,
                event_size: EventSize::BYTES_32,
                event_type: kind,
                ptl_list: landing.list,
                auto_unlinked: landing.auto_unlinked,
                match_bits: request.match_bits,
                buffer_id: landing.entry.buffer_id,
                vni: request.vni,
                length: mlength,
                return_code: code,
            };
            signals.post(eq, &event.encode());
        }
    }
}
