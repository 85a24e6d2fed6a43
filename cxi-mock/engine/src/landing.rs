//! A request that has found its list entry: its data moves, then both sides are notified.

use cxi_hw::{
    DmaOp, EventSize, EventType, List, MatchId, ReturnCode, TargetFlags, TargetLong, TargetShort,
};

use crate::arrival::Return;
use crate::packet::{Data, Reply, Request};
use crate::portal::{self, Entry, Header};
use crate::transfer::Transfer;
use crate::translation::Access;
use crate::{Engine, EntryPool, EventFlags, PortalOptions, atomic, request_header};

/// Lengths that a short event can hold.
const SHORT_BYTES: u32 = 1 << 20;

/// A request, the entry that it matched and what of that it uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Landing {
    pub(crate) back: Return,
    pub(crate) request: Request,
    pub(crate) number: u16,
    pub(crate) generation: u64,
    pub(crate) rgid: u16,
    pub(crate) pool: EntryPool,
    pub(crate) list: List,
    /// The offset, as it was before.
    pub(crate) entry: Entry,
    /// Where the entry is used.
    pub(crate) iova: u64,
    /// Bytes that move.
    pub(crate) mlength: u32,
    /// Bytes of packet headers before them.
    pub(crate) header: u32,
    /// Bytes that there was room for.
    pub(crate) room: u32,
    pub(crate) auto_unlinked: bool,
}

impl Landing {
    /// Whether the entry wants an event at the end, by success or failure.
    pub(crate) fn reports(&self, success: bool) -> bool {
        let mut quiet = TargetFlags::EVENT_COMM_DISABLE;
        quiet.set(TargetFlags::EVENT_SUCCESS_DISABLE, success);
        !self.entry.flags.intersects(quiet)
    }

    fn event_type(&self) -> EventType {
        match self.request.op {
            DmaOp::GET => EventType::GET,
            DmaOp::ATOMIC => EventType::ATOMIC,
            DmaOp::FETCHING_ATOMIC => EventType::FETCH_ATOMIC,
            _ => EventType::PUT,
        }
    }

    /// Whether a list entry was taken for the header of the message.
    fn keeps_header(&self) -> bool {
        keeps_header(self.list, &self.entry)
    }

    fn is_rendezvous(&self) -> bool {
        self.request.op == DmaOp::RENDEZVOUS_PUT
    }
}

/// Whether an unexpected message leaves its header.
pub(crate) fn keeps_header(list: List, entry: &Entry) -> bool {
    let disabled = entry.flags.contains(TargetFlags::UNEXPECTED_HDR_DISABLE);
    list == List::OVERFLOW && !disabled
}

/// What an event says about a request.
pub(crate) fn describe(request: &Request, event: TargetLong) -> TargetLong {
    let rendezvous = request.op == DmaOp::RENDEZVOUS_PUT;
    let atomic = request.atomic.unwrap_or_default();
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

impl Engine {
    /// Moves the data of a request, in several steps if there is much of it.
    pub(crate) fn move_data(&mut self, landing: Landing, data: Data) {
        let moved = match landing.request.op {
            DmaOp::ATOMIC | DmaOp::FETCHING_ATOMIC => {
                let done = self.apply_atomic(&landing);
                let fetched = done.unwrap_or_default();
                return self.land(&landing, done.map(drop), fetched);
            }
            DmaOp::GET => self.copy_out(&landing, data),
            _ => self.copy_in(&landing, data),
        };
        if let Some(moved) = moved {
            self.land(&landing, moved, [0; 16]);
        }
    }

    fn apply_atomic(&self, landing: &Landing) -> Result<[u8; 16], ReturnCode> {
        let Some(atomic) = &landing.request.atomic else {
            return Err(ReturnCode::AMO_INVAL_OP_ERROR);
        };
        let context = (landing.rgid, landing.entry.lac);
        let len = landing.mlength;
        let at = self
            .translation
            .translate(context, landing.iova, len.into(), Access::Both)?;
        let segment = at.single().ok_or(ReturnCode::NO_TRANSLATION)?;
        let mut fetched = [0; 16];
        let mut change = |value: &mut [u8]| {
            let old = &mut fetched[..value.len()];
            old.copy_from_slice(value);
            atomic::apply(atomic, value);
        };
        let len = len as usize;
        let updated = segment.memory.update(segment.va, len, &mut change);
        updated.map_err(|_| ReturnCode::NO_TRANSLATION)?;
        Ok(fetched)
    }

    /// Copies the data of a put; `None` if there is more to do.
    fn copy_in(&mut self, landing: &Landing, data: Data) -> Option<Result<(), ReturnCode>> {
        let context = (landing.rgid, landing.entry.lac);
        let whole = u64::from(landing.header) + u64::from(landing.mlength);
        let to = match self
            .translation
            .translate(context, landing.iova, whole, Access::Write)
        {
            Ok(to) => to,
            Err(code) => return Some(Err(code)),
        };
        let gone = |_| ReturnCode::NO_TRANSLATION;
        if landing.header > 0 {
            let header = request_header::encode(&landing.request, landing.back.to, &self.settings);
            let header = &header[..landing.header as usize];
            if let Err(code) = to.write(0, header).map_err(gone) {
                return Some(Err(code));
            }
        }
        match data {
            Data::Inline(bytes, len) => {
                let bytes = &bytes[..len.min(landing.mlength as usize)];
                match to.single() {
                    Some(segment) if landing.header == 0 && !landing.keeps_header() => {
                        self.signals.stage(segment, bytes);
                        Some(Ok(()))
                    }
                    _ => Some(to.write(landing.header.into(), bytes).map_err(gone)),
                }
            }
            Data::Memory(from) if landing.mlength > 0 => {
                self.start_transfer(Transfer::put(*landing, from))
            }
            _ => Some(Ok(())),
        }
    }

    /// Copies the data of a get; `None` if there is more to do.
    fn copy_out(&mut self, landing: &Landing, data: Data) -> Option<Result<(), ReturnCode>> {
        let context = (landing.rgid, landing.entry.lac);
        let len = landing.mlength.into();
        if let Err(code) = self
            .translation
            .translate(context, landing.iova, len, Access::Read)
        {
            return Some(Err(code));
        }
        match data {
            Data::Memory(to) if len > 0 => self.start_transfer(Transfer::get(*landing, to)),
            _ => Some(Ok(())),
        }
    }

    /// Reports a request whose data has moved, or is stored with its event, and answers it.
    pub(crate) fn land(
        &mut self,
        landing: &Landing,
        moved: Result<(), ReturnCode>,
        fetched: [u8; 16],
    ) {
        let code = moved.err().unwrap_or(ReturnCode::OK);
        let moved = match self.signal(landing, code) {
            Ok(()) => moved,
            Err(code) => self.signal(landing, code).and(Err(code)),
        };
        let reply = match moved {
            Err(code) => {
                self.telemetry.refusals.add(code.0);
                Reply::refusal(code)
            }
            Ok(()) => Reply {
                code,
                mlength: landing.mlength,
                list: landing.list,
                rendezvous: landing.is_rendezvous(),
                target_error: false,
                fetched,
            },
        };
        let route = (landing.back.to, self.settings.nid);
        self.observe(route, &landing.request, &reply);
        self.reply(landing.back, reply);
        let requested = landing.list == List::PRIORITY;
        if moved.is_ok() && landing.is_rendezvous() && requested && self.is_current(landing) {
            self.start_rendezvous(landing);
        }
    }

    /// Whether the PtlTE is the one that the request came to.
    fn is_current(&self, landing: &Landing) -> bool {
        let portal = self.portals.table.get(landing.number);
        portal.is_some_and(|portal| portal.generation == landing.generation)
    }

    /// Adds an unexpected message to the list.
    fn keep_header(&mut self, landing: &Landing) {
        let Some(portal) = self.portals.table.get_mut(landing.number) else {
            return;
        };
        let header = Header {
            request: landing.request,
            from: landing.back.to,
            start: landing.iova,
            mlength: landing.mlength,
        };
        let key = (landing.request.match_bits, landing.request.initiator);
        portal.unexpected.tidy();
        portal.unexpected.push(key, header);
    }

    /// Reports how a request has ended: an event, then a counter. Without memory for bytes that are
    /// stored with the event, neither.
    fn signal(&mut self, landing: &Landing, code: ReturnCode) -> Result<(), ReturnCode> {
        let success = code == ReturnCode::OK;
        let entry = &landing.entry;
        let current = self.is_current(landing);
        if landing.keeps_header() {
            if current && success {
                self.keep_header(landing);
            } else {
                self.pools.give(landing.pool, 1);
            }
        }
        let portal = self.portals.table.get(landing.number);
        let told = landing.request.multicast.is_some()
            || portal.is_some_and(|it| it.has(PortalOptions::EN_RESTRICTED_UNICAST_LM));
        let quiet = landing.request.is_restricted() && !(entry.managed() && told);
        let nobody = !current || (quiet && success);
        if !nobody && landing.reports(success) {
            self.post_target(landing, landing.event_type(), code);
        }
        let stored = self.signals.flush();
        stored.map_err(|_| ReturnCode::NO_TRANSLATION)?;
        if nobody {
            return Ok(());
        }
        // A rendezvous counts when the rest has come.
        let rest = landing.is_rendezvous() && landing.list == List::PRIORITY;
        if !success {
            self.count_failure(entry);
        } else if !rest && entry.flags.contains(TargetFlags::EVENT_CT_COMM) {
            self.count_success(entry, landing.mlength);
        }
        Ok(())
    }

    pub(crate) fn count_success(&mut self, entry: &Entry, bytes: u32) {
        let by_bytes = entry.flags.contains(TargetFlags::EVENT_CT_BYTES);
        let amount = if by_bytes { bytes.into() } else { 1 };
        self.signals.count(entry.ct, amount, 0);
    }

    pub(crate) fn count_failure(&mut self, entry: &Entry) {
        if entry.flags.contains(TargetFlags::EVENT_CT_COMM) {
            self.signals.count(entry.ct, 0, 1);
        }
    }

    /// Writes an event about a request, short if that says enough.
    pub(crate) fn post_target(&mut self, landing: &Landing, kind: EventType, code: ReturnCode) {
        let Some(portal) = self.portals.table.get(landing.number) else {
            return;
        };
        let eq = portal.config.eq;
        let request = &landing.request;
        let moved = if code == ReturnCode::OK {
            landing.mlength
        } else {
            0
        };
        let mlength = moved + landing.header;
        let events = self.signals.events.get(eq);
        let long = events.is_some_and(|it| it.config.flags.contains(EventFlags::TARGET_LONG))
            || portal.has(PortalOptions::USE_LONG_EVENT)
            || landing.list != List::PRIORITY
            || landing.is_rendezvous()
            || kind == EventType::MATCH
            || mlength >= SHORT_BYTES;
        if long {
            let event = TargetLong {
                auto_unlinked: landing.auto_unlinked,
                buffer_id: landing.entry.buffer_id,
                mlength,
                start: landing.iova,
                return_code: code,
                ..portal::event(kind, landing.number, landing.list)
            };
            self.signals.post(eq, &describe(request, event).encode());
        } else {
            let event = TargetShort {
                header_data: request.header_data,
                initiator: MatchId(request.initiator.0),
                ptlte_index: landing.number,
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
            self.signals.post(eq, &event.encode());
        }
    }
}
