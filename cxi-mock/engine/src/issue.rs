//! Commands that send: what they have in common, and how they become requests.

use cxi_hw::{
    CState, DmaFlags, DmaOp, EventSize, EventType, FabricAddress, InitiatorShort, MatchId,
    ReturnCode,
};

use crate::flight::{Fetch, Operation, Owner, Report};
use crate::packet::{Atomic, Data, INLINE, Multicast, Reply, Request};
use crate::translation::Access;
use crate::transmit::Sender;
use crate::{Engine, atomic};

/// What commands that send have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Common {
    pub(crate) op: DmaOp,
    pub(crate) dfa: FabricAddress,
    pub(crate) index_ext: u8,
    pub(crate) flags: DmaFlags,
    pub(crate) initiator: MatchId,
    pub(crate) match_bits: u64,
    pub(crate) header_data: u64,
    pub(crate) remote_offset: u64,
    pub(crate) user_ptr: u64,
    pub(crate) ct: u16,
    pub(crate) eq: u16,
    pub(crate) length: u32,
    pub(crate) eager: u32,
    pub(crate) rendezvous_id: u8,
    pub(crate) small: bool,
}

impl Common {
    /// What an immediate command takes from the state of its queue.
    pub(crate) fn of_state(op: DmaOp, dfa: FabricAddress, state: &CState) -> Self {
        Self {
            op,
            dfa,
            index_ext: state.index_ext,
            flags: state.flags,
            initiator: state.initiator,
            match_bits: 0,
            header_data: 0,
            remote_offset: 0,
            user_ptr: state.user_ptr,
            ct: state.ct,
            eq: state.eq,
            length: 0,
            eager: 0,
            rendezvous_id: 0,
            small: false,
        }
    }
}

impl Common {
    fn multicast(&self) -> Option<Multicast> {
        self.dfa.is_multicast().then(|| Multicast {
            id: self.dfa.multicast_id(),
            reduction: self.dfa.reduction(),
            index: self.index_ext,
        })
    }
}

/// Where the data of a command is.
// Most are bytes of an immediate command.
#[allow(clippy::large_enum_variant)]
pub(crate) enum Local {
    Bytes(Data),
    /// Address context and address.
    Memory(u8, u64),
}

impl Engine {
    /// Reads the data and sends it.
    pub(crate) fn issue(
        &mut self,
        sender: Sender,
        common: &Common,
        mut atomic: Option<Atomic>,
        fetch: Option<Fetch>,
        local: Local,
    ) -> Result<(), ReturnCode> {
        let rgid = sender.rgid;
        if !self.signals.may_report(rgid, common.eq) || !self.signals.may_count(rgid, common.ct) {
            return Err(ReturnCode::CMD_INVALID_ARG);
        }
        let reply = matches!(common.op, DmaOp::GET | DmaOp::FETCHING_ATOMIC);
        let operation = Operation {
            rgid,
            owner: sender.owner,
            report: Report {
                eq: common.eq,
                ct: common.ct,
                flags: common.flags,
                user_ptr: common.user_ptr,
                reply,
                rendezvous: false,
                before: 0,
            },
            fetch,
            high_rate: sender.profile.high_rate,
        };
        if let Owner::Queue(number, _) = sender.owner
            && let Some(queue) = self.queues.table.get_mut(number)
        {
            queue.busy = true;
            queue.pending += 1;
        }
        self.telemetry.high_rate_commands += u64::from(operation.high_rate);
        let pid_bits = self.settings.pid_bits;
        let restricted = common.flags.contains(DmaFlags::RESTRICTED);
        let eager = if common.op == DmaOp::RENDEZVOUS_PUT {
            common.eager.min(common.length)
        } else {
            common.length
        };
        let mut request = Request {
            op: common.op,
            vni: sender.profile.vni,
            // PIDs and portal indices have fewer bits.
            pid: u16::try_from(common.dfa.pid(pid_bits)).unwrap_or(u16::MAX),
            index: u16::try_from(common.dfa.index(common.index_ext, pid_bits)).unwrap_or(u16::MAX),
            flags: common.flags,
            small: common.small,
            initiator: common.initiator,
            match_bits: if restricted { 0 } else { common.match_bits },
            header_data: if restricted { 0 } else { common.header_data },
            remote_offset: common.remote_offset,
            length: common.length,
            eager,
            rendezvous_id: common.rendezvous_id,
            atomic: None,
            multicast: common.multicast(),
        };
        let reduces = DmaFlags::RESTRICTED | DmaFlags::REDUCTION;
        let reduction = common.op == DmaOp::PUT && common.flags.contains(reduces);
        let data = match self.gather(rgid, common, atomic.as_mut(), local) {
            Ok(data) if request.multicast.is_some() => match data {
                Data::Inline(..) if reduction => Ok(data),
                _ => Err(ReturnCode::INVALID_DFA_FORMAT),
            },
            data => data,
        };
        let data = match data {
            Ok(data) => data,
            Err(code) => {
                self.telemetry.sources_refused.add(code.0);
                let reply = Reply::error(code);
                self.observe((self.settings.nid, common.dfa.nid()), &request, &reply);
                self.complete(&operation, &reply);
                return Ok(());
            }
        };
        if common.op != DmaOp::GET {
            self.report_send(&operation.report, common.length);
        }
        request.atomic = atomic;
        if request.multicast.is_some() {
            self.multicast(&operation, request, data);
            return Ok(());
        }
        self.launch(common.dfa.nid(), operation, request, data);
        Ok(())
    }

    /// The data of a command: read now if there is little of it.
    fn gather(
        &self,
        rgid: u16,
        common: &Common,
        atomic: Option<&mut Atomic>,
        local: Local,
    ) -> Result<Data, ReturnCode> {
        let (lac, iova) = match local {
            Local::Bytes(data) => return Ok(data),
            Local::Memory(lac, iova) => (lac, iova),
        };
        let (access, len) = match common.op {
            DmaOp::GET => (Access::Write, common.length),
            DmaOp::RENDEZVOUS_PUT => (Access::Read, common.eager.min(common.length)),
            _ => (Access::Read, common.length),
        };
        if let Some(atomic) = atomic {
            if atomic::size(atomic.ty).is_some_and(|size| size != len) || len > 16 {
                return Err(ReturnCode::AMO_LENGTH_ERROR);
            }
            let from = self
                .translation
                .translate((rgid, lac), iova, len.into(), access)?;
            let operand = &mut atomic.operand[..len as usize];
            from.read(0, operand)
                .map_err(|_| ReturnCode::NO_TRANSLATION)?;
            return Ok(Data::None);
        }
        let memory = self
            .translation
            .translate((rgid, lac), iova, len.into(), access)?;
        if access == Access::Read && len as usize <= INLINE {
            let mut bytes = [0; INLINE];
            let len = len as usize;
            let read = memory.read(0, &mut bytes[..len]);
            read.map_err(|_| ReturnCode::NO_TRANSLATION)?;
            return Ok(Data::Inline(bytes, len));
        }
        Ok(Data::Memory(memory))
    }

    /// SEND, and its counter.
    fn report_send(&mut self, report: &Report, length: u32) {
        let quiet = DmaFlags::EVENT_SEND_DISABLE | DmaFlags::EVENT_SUCCESS_DISABLE;
        if !report.flags.intersects(quiet) {
            let event = InitiatorShort {
                user_ptr: report.user_ptr,
                mlength: length,
                event_size: EventSize::BYTES_16,
                event_type: EventType::SEND,
                return_code: ReturnCode::OK,
                ..InitiatorShort::default()
            };
            self.post_initiator(report.eq, &event);
        }
        if report.flags.contains(DmaFlags::EVENT_CT_SEND) {
            let bytes = report.flags.contains(DmaFlags::EVENT_CT_BYTES);
            let amount = if bytes { length.into() } else { 1 };
            self.signals.count(report.ct, amount, 0);
        }
    }
}
