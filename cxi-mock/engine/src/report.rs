//! How the end of a request is reported at the target: headers, events and counters.

use cxi_hw::{
    EventSize, EventType, List, MatchId, ReturnCode, TargetFlags, TargetLong, TargetShort,
};

use crate::entry::Entry;
use crate::landing::{Landing, describe};
use crate::portal::{Header, Nic, PortalState, Portals};
use crate::signals::Signals;
use crate::{EventFlags, PortalOptions, Settings};

/// Lengths that a short event can hold: 20 bits.
const SHORT_BYTES: u32 = 1 << 20;

impl Portals {
    /// Reports how a request has ended: an event, then a counter. Returns the number of the event
    /// queue.
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
        // The PtlTE has gone while the data moved: its entries are back already, except the one that
        // was taken for the header.
        if landing.keeps_header() {
            self.pools.give(landing.pool, 1);
        }
        0
    }

    /// Goes on with a rendezvous put whose first bytes have come.
    pub(crate) fn follow_up(
        &mut self,
        landing: &Landing,
        settings: &Settings,
        signals: &mut Signals,
    ) {
        let current = (landing.number, landing.generation);
        if landing.has_rest()
            && let Some((portal, mut nic)) = self.open_current(current, settings, signals)
        {
            portal.start_rendezvous(landing, &mut nic);
        }
    }
}

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

impl PortalState {
    fn report(&mut self, landing: &Landing, code: ReturnCode, nic: &mut Nic<'_>) {
        let success = code == ReturnCode::OK;
        let entry = &landing.entry;
        if landing.keeps_header() {
            if success {
                self.keep_header(landing);
            } else {
                nic.pools.give(landing.pool, 1);
            }
        }
        // Rule 8.9: A successful restricted put neither reports nor counts at the target, unless
        // the entry is locally managed and either the PtlTE asks for it or the put is a reduction.
        let reports_to_target = landing.request.multicast.is_some()
            || self.has(PortalOptions::EN_RESTRICTED_UNICAST_LM);
        let suppress =
            success && landing.request.is_restricted() && !(entry.managed() && reports_to_target);
        if !suppress && entry.reports(success) {
            self.post_target(landing, landing.event_type(), code, nic.signals);
        }
        if suppress {
            return;
        }
        // A rendezvous counts when the rest has come.
        if !success {
            entry.count_failure(nic.signals);
        } else if !landing.has_rest() && entry.flags.contains(TargetFlags::EVENT_CT_COMM) {
            entry.count_success(landing.mlength, nic.signals);
        }
    }

    /// Adds an unexpected message to the list.
    fn keep_header(&mut self, landing: &Landing) {
        // Rule 8.3: A message on the overflow list leaves a header, even if it is empty, unless the
        // entry disables that.
        let header = Header {
            request: landing.request,
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

    /// Writes an event about a request, short if that says enough.
    pub(crate) fn post_target(
        &self,
        landing: &Landing,
        kind: EventType,
        code: ReturnCode,
        signals: &mut Signals,
    ) {
        let eq = self.config.eq;
        let request = &landing.request;
        let moved = if code == ReturnCode::OK {
            landing.mlength
        } else {
            0
        };
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
