//! Rendezvous: a put that carries little data, and a get by which the target's NIC fetches the
//! rest.

use cxi_hw::{
    DmaFlags, DmaOp, ENDPOINT_DEFINED_BITS, EventType, List, MatchId, RendezvousMatchBits,
    RendezvousUserPtr, TargetFlags, TargetLong,
};

use crate::entry::Entry;
use crate::landing::Landing;
use crate::link::{Operation, Owner, Report};
use crate::packet::Request;
use crate::portal::{Header, Nic, PortalState, RendezvousGet};
use crate::report::describe;

/// The match bits of the get of the rest.
fn get_bits(request: &Request) -> u64 {
    let [.., low, high] = request.match_bits.to_le_bytes();
    let bits = RendezvousMatchBits {
        rendezvous_id: request.rendezvous_id,
        transaction_type: 0,
        match_bits: u16::from_le_bytes([low, high]),
    };
    u64::from_le_bytes(bits.encode())
}

/// A rendezvous put that has found its buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rest {
    request: Request,
    from: u32,
    entry: Entry,
    auto_unlinked: bool,
    /// Position of this message's buffer.
    start: u64,
    /// Bytes for which the buffer has room.
    room: u64,
    /// Bytes that have arrived.
    eager: u32,
}

impl PortalState {
    /// Continues a rendezvous put that has matched an entry on arrival.
    pub(crate) fn start_rendezvous(&self, landing: &Landing, nic: &mut Nic<'_>) {
        // Rule 10.5: PUT precedes RENDEZVOUS, which precedes the REPLY of the get.
        let rest = Rest {
            request: landing.request,
            from: landing.back.nid,
            entry: landing.entry,
            auto_unlinked: landing.auto_unlinked,
            start: landing.iova,
            room: landing.room,
            eager: landing.mlength,
        };
        self.get_rest(&rest, nic);
    }

    /// Continues a rendezvous put that has waited for the entry that is now appended.
    pub(crate) fn claim_rendezvous(
        &mut self,
        header: &Header,
        (entry, start, room): (&Entry, u64, u64),
        auto_unlinked: bool,
        nic: &mut Nic<'_>,
    ) {
        // Rule 10.6: For an unexpected message, the get stores behind the eager bytes in the new
        // entry; software copies the eager bytes.
        let rest = Rest {
            request: header.request,
            from: header.from,
            entry: *entry,
            auto_unlinked,
            start,
            room,
            eager: header.mlength,
        };
        // The get ends the message at its source, whose memory may be gone after that, so it waits
        // for the first bytes.
        if self.moving.iter().any(|it| it.0 == header.arrival) {
            self.claimed.push((header.arrival, rest));
        } else {
            self.get_rest(&rest, nic);
        }
    }

    /// Continues a rendezvous put that was claimed before its first bytes arrived, if it was one.
    pub(crate) fn continue_claimed(&mut self, arrival: u64, nic: &mut Nic<'_>) {
        let mut claimed = self.claimed.iter();
        if let Some(place) = claimed.position(|(of, _)| *of == arrival) {
            let (_, rest) = self.claimed.remove(place);
            self.get_rest(&rest, nic);
        }
    }

    /// Reports RENDEZVOUS, and requests the get unless software issues it.
    fn get_rest(&self, rest: &Rest, nic: &mut Nic<'_>) {
        let request = &rest.request;
        let pid = request.initiator.pid(nic.settings.pid_bits);
        // Rule 10.7: If the NIC may not issue the get, RENDEZVOUS says so, with the match bits of the
        // get that software issues.
        let issued = nic.settings.rendezvous_gets;
        let iova = rest.start.wrapping_add(rest.eager.into());
        let source = if request.is_offset_of_source() { request.remote_offset } else { 0 };
        let remote_offset = source.wrapping_add(rest.eager.into());
        if rest.entry.reports(request, true) {
            // Rule 10.2: RENDEZVOUS has the source's address in place of its match ID, and says
            // where the rest starts at both sides.
            let event = TargetLong {
                initiator: MatchId(rest.from << ENDPOINT_DEFINED_BITS | pid),
                get_issued: issued,
                auto_unlinked: rest.auto_unlinked,
                buffer_id: rest.entry.buffer_id,
                mlength: rest.eager,
                remote_offset,
                start: iova,
                match_bits: if issued { request.match_bits } else { get_bits(request) },
                ..describe(request, self.event(EventType::RENDEZVOUS, List::PRIORITY))
            };
            self.post(&event, nic.signals);
        }
        if issued {
            nic.signals.telemetry.element(self.config.pool).offloaded += 1;
            let get = self.get(rest, remote_offset, iova, nic);
            nic.gets.push_back(get);
        }
    }

    fn get(&self, rest: &Rest, remote_offset: u64, iova: u64, nic: &Nic<'_>) -> RendezvousGet {
        let (settings, request) = (nic.settings, &rest.request);
        let pid = request.initiator.pid(settings.pid_bits);
        let pid = u16::try_from(pid).unwrap_or(u16::MAX);
        let length = u64::from(request.length).min(rest.room).saturating_sub(rest.eager.into());
        let flags = rest.entry.flags;
        let mut report = DmaFlags::empty();
        // Rule 10.10: At the target a rendezvous counts twice: when its first bytes arrive, and when
        // the rest has arrived.
        for (flag, set) in [
            (DmaFlags::EVENT_CT_REPLY, flags.contains(TargetFlags::EVENT_CT_COMM)),
            (DmaFlags::EVENT_CT_BYTES, flags.contains(TargetFlags::EVENT_CT_BYTES)),
            (DmaFlags::EVENT_SUCCESS_DISABLE, !rest.entry.reports(request, true)),
        ] {
            report.set(flag, set);
        }
        let user_ptr = RendezvousUserPtr {
            src_nid: rest.from,
            src_pid: pid,
            ptlte_index: self.number,
            rendezvous_id: request.rendezvous_id,
            buffer_id: rest.entry.buffer_id,
        };
        // Rule 10.4: The get goes to the rendezvous index of the source's PID with the put's ID and
        // upper match bits, even for zero bytes, from any PID of this NIC; its REPLY goes to the
        // target PtlTE's event queue.
        RendezvousGet {
            to: rest.from,
            operation: Operation {
                rgid: self.config.rgid,
                owner: Owner::Portal(self.number, self.generation),
                report: Report {
                    eq: self.config.eq,
                    ct: rest.entry.ct,
                    flags: report,
                    user_ptr: u64::from_le_bytes(user_ptr.encode()),
                    reply: true,
                    rendezvous: true,
                },
                fetch: None,
                high_rate: false,
            },
            request: Request {
                started: None,
                op: DmaOp::GET,
                vni: request.vni,
                pid,
                index: u16::try_from(settings.rendezvous_index).unwrap_or(u16::MAX),
                flags: DmaFlags::empty(),
                small: false,
                initiator: MatchId::new(u32::MAX, settings.nid, settings.pid_bits),
                match_bits: get_bits(request),
                header_data: 0,
                remote_offset,
                // No more than was requested.
                length: u32::try_from(length).unwrap_or(u32::MAX),
                eager: 0,
                rendezvous_id: 0,
                atomic: None,
                multicast: None,
            },
            lac: rest.entry.lac,
            iova,
        }
    }
}
