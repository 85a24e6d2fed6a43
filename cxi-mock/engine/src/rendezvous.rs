//! Rendezvous: a put that carries little, and a get of the rest by the target's NIC.

use cxi_hw::{
    DmaFlags, DmaOp, ENDPOINT_DEFINED_BITS, EventType, List, MatchId, RendezvousMatchBits,
    RendezvousUserPtr, TargetFlags, TargetLong,
};

use crate::flight::{Operation, Owner, Report};
use crate::landing::{Landing, describe};
use crate::packet::{Data, Reply, Request};
use crate::portal::{self, Entry, Header};
use crate::translation::Access;
use crate::{Engine, Portal};

/// A rendezvous put that has found its buffer.
#[derive(Clone, Copy, Debug)]
struct Rest<'a> {
    request: &'a Request,
    from: u32,
    number: u16,
    entry: &'a Entry,
    auto_unlinked: bool,
    /// Where the buffer of this message starts.
    start: u64,
    /// Bytes that there is room for.
    room: u64,
    /// Bytes that have come.
    eager: u32,
}

impl Engine {
    /// A rendezvous put has matched an entry that was there.
    pub(crate) fn start_rendezvous(&mut self, landing: &Landing) {
        self.get_rest(&Rest {
            request: &landing.request,
            from: landing.back.to,
            number: landing.number,
            entry: &landing.entry,
            auto_unlinked: landing.auto_unlinked,
            start: landing.iova,
            room: landing.room.into(),
            eager: landing.mlength,
        });
    }

    /// An entry was appended that a rendezvous put had waited for.
    pub(crate) fn claim_rendezvous(
        &mut self,
        number: u16,
        header: &Header,
        (entry, start, room): (&Entry, u64, u64),
        auto_unlinked: bool,
    ) {
        self.get_rest(&Rest {
            request: &header.request,
            from: header.from,
            number,
            entry,
            auto_unlinked,
            start,
            room,
            eager: header.mlength,
        });
    }

    /// Reports RENDEZVOUS, and starts the get unless software does.
    fn get_rest(&mut self, rest: &Rest<'_>) {
        let Some(portal) = self.portals.table.get(rest.number) else {
            return;
        };
        let generation = portal.generation;
        let Portal { eq, rgid, pool, .. } = portal.config;
        let pid_bits = self.settings.pid_bits;
        let request = rest.request;
        let pid = request.initiator.pid(pid_bits);
        let source = u16::try_from(pid).unwrap_or(u16::MAX);
        let flags = rest.entry.flags;
        let issued = self.settings.rendezvous_gets;
        let at = rest.start.wrapping_add(rest.eager.into());
        let remote_offset = if request.flags.contains(DmaFlags::USE_OFFSET_FOR_GET) {
            request.remote_offset.wrapping_add(rest.eager.into())
        } else {
            rest.eager.into()
        };
        let quiet = TargetFlags::EVENT_COMM_DISABLE | TargetFlags::EVENT_SUCCESS_DISABLE;
        if !flags.intersects(quiet) {
            let event = describe(
                request,
                portal::event(EventType::RENDEZVOUS, rest.number, List::PRIORITY),
            );
            let event = TargetLong {
                initiator: MatchId(rest.from << ENDPOINT_DEFINED_BITS | pid),
                get_issued: issued,
                auto_unlinked: rest.auto_unlinked,
                buffer_id: rest.entry.buffer_id,
                mlength: rest.eager,
                remote_offset,
                start: at,
                ..event
            };
            self.signals.post(eq, &event.encode());
        }
        if !issued {
            return;
        }
        self.telemetry.element(pool).offloaded += 1;
        let whole = u64::from(request.length).min(rest.room);
        let length = whole.saturating_sub(rest.eager.into());
        let mut report_flags = DmaFlags::empty();
        report_flags.set(
            DmaFlags::EVENT_CT_REPLY,
            flags.contains(TargetFlags::EVENT_CT_COMM),
        );
        report_flags.set(
            DmaFlags::EVENT_CT_BYTES,
            flags.contains(TargetFlags::EVENT_CT_BYTES),
        );
        report_flags.set(DmaFlags::EVENT_SUCCESS_DISABLE, flags.intersects(quiet));
        let operation = Operation {
            rgid,
            owner: Owner::Portal(rest.number, generation),
            report: Report {
                eq,
                ct: rest.entry.ct,
                flags: report_flags,
                user_ptr: user_pointer(rest, source),
                reply: true,
                rendezvous: true,
                before: rest.eager,
            },
            fetch: None,
            high_rate: false,
        };
        let context = (rgid, rest.entry.lac);
        let to = self
            .translation
            .translate(context, at, length, Access::Write);
        let to = match to {
            Ok(to) => to,
            Err(code) => return self.complete(&operation, &Reply::error(code)),
        };
        let get = Request {
            op: DmaOp::GET,
            vni: request.vni,
            pid: source,
            index: u16::try_from(self.settings.rendezvous_index).unwrap_or(u16::MAX),
            flags: DmaFlags::empty(),
            small: false,
            initiator: MatchId::default(),
            match_bits: match_bits(request),
            header_data: 0,
            remote_offset,
            // No more than was requested.
            length: u32::try_from(length).unwrap_or(u32::MAX),
            eager: 0,
            rendezvous_id: 0,
            atomic: None,
            multicast: None,
        };
        self.launch(rest.from, operation, get, Data::Memory(to));
    }
}

/// The match bits of the get.
fn match_bits(request: &Request) -> u64 {
    let [.., low, high] = request.match_bits.to_le_bytes();
    let bits = RendezvousMatchBits {
        rendezvous_id: request.rendezvous_id,
        transaction_type: 0,
        match_bits: u16::from_le_bytes([low, high]),
    };
    u64::from_le_bytes(bits.encode())
}

/// The user pointer in the REPLY of the get.
fn user_pointer(rest: &Rest<'_>, pid: u16) -> u64 {
    let pointer = RendezvousUserPtr {
        src_nid: rest.from,
        src_pid: pid,
        ptlte_index: rest.number,
        rendezvous_id: rest.request.rendezvous_id,
        buffer_id: rest.entry.buffer_id,
    };
    u64::from_le_bytes(pointer.encode())
}
