//! Commands of transmit queues that send.

use cxi_hw::{
    CState, Class, CommandByte, CqCommand, CqOp, DmaAtomic, DmaFlags, DmaOp, EventSize, EventType,
    FabricAddress, FullDma, IdcAtomic, IdcHeader, IdcMessage, InitiatorShort, MatchId, NomatchDma,
    ReturnCode, SmallAtomic,
};

use crate::command_queue::{Fetched, Kind};
use crate::flight::{Fetch, Operation, Owner, Report};
use crate::packet::{Atomic, Data, INLINE, Reply, Request};
use crate::translation::Access;
use crate::{CommunicationProfile, Engine, atomic};

/// Bytes of payload of an immediate command that is not restricted.
const MAX_UNRESTRICTED: usize = 192;
/// Bytes of the heads of immediate commands.
const IDC_HEAD: usize = IdcHeader::BYTES;
const MESSAGE_HEAD: usize = IdcMessage::BYTES;

/// On whose behalf a command runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sender {
    pub(crate) rgid: u16,
    pub(crate) profile: CommunicationProfile,
    pub(crate) owner: Owner,
}

/// What commands that send have in common.
#[derive(Clone, Copy, Debug)]
struct Common {
    op: DmaOp,
    dfa: FabricAddress,
    index_ext: u8,
    flags: DmaFlags,
    initiator: MatchId,
    match_bits: u64,
    header_data: u64,
    remote_offset: u64,
    user_ptr: u64,
    ct: u16,
    eq: u16,
    length: u32,
    eager: u32,
    rendezvous_id: u8,
    small: bool,
}

impl Common {
    fn of_state(op: DmaOp, dfa: FabricAddress, state: &CState) -> Self {
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

/// Where the data of a command is.
enum Local {
    Bytes(Data),
    /// Address context and address.
    Memory(u8, u64),
}

fn of_size(byte: CommandByte, slots: usize) -> Result<(), ReturnCode> {
    if byte.slots() == slots {
        Ok(())
    } else {
        Err(ReturnCode::CMD_INVALID_ARG)
    }
}

impl Engine {
    pub(crate) fn execute_transmit(
        &mut self,
        number: u16,
        fetched: &Fetched,
    ) -> Result<(), ReturnCode> {
        let byte = fetched.byte;
        match byte.class() {
            Class::IDC => self.execute_immediate(number, fetched),
            Class::DMA => {
                let lcid = match self.queues.table.get(number).map(|it| &it.kind) {
                    Some(Kind::Transmit { lcid, .. }) => *lcid,
                    _ => return Err(ReturnCode::ILLEGAL_OP),
                };
                let sender = self.sender(number, lcid, false)?;
                self.execute_dma(sender, byte, &fetched.head())
            }
            Class::CT => self.execute_counter(number, fetched),
            _ => self.execute_cq(number, fetched),
        }
    }

    /// Who sends with an LCID of a queue.
    pub(crate) fn sender(
        &self,
        number: u16,
        lcid: u8,
        triggered: bool,
    ) -> Result<Sender, ReturnCode> {
        let queue = self.queues.table.get(number);
        let queue = queue.ok_or(ReturnCode::CMD_INVALID_ARG)?;
        let profile = self.profiles.get(&(queue.rgid, lcid));
        let owner = if triggered {
            Owner::Triggered(number, queue.generation)
        } else {
            Owner::Queue(number, queue.generation)
        };
        Ok(Sender {
            rgid: queue.rgid,
            profile: *profile.ok_or(ReturnCode::CMD_INVALID_ARG)?,
            owner,
        })
    }

    fn execute_cq(&mut self, number: u16, fetched: &Fetched) -> Result<(), ReturnCode> {
        let byte = fetched.byte;
        of_size(byte, 2)?;
        match CqOp(byte.opcode()) {
            // Each command ends before the next one starts.
            CqOp::NOOP | CqOp::FENCE => Ok(()),
            CqOp::LCID => {
                let selected = CqCommand::decode(&fetched.head()).lcid;
                let queue = self.queues.table.get_mut(number);
                let queue = queue.ok_or(ReturnCode::CMD_INVALID_ARG)?;
                if !self.profiles.contains_key(&(queue.rgid, selected)) {
                    return Err(ReturnCode::CMD_INVALID_ARG);
                }
                if let Kind::Transmit {
                    lcid, triggered, ..
                } = &mut queue.kind
                {
                    if *triggered && selected != 0 {
                        return Err(ReturnCode::CMD_INVALID_ARG);
                    }
                    *lcid = selected;
                }
                Ok(())
            }
            _ => Err(ReturnCode::ILLEGAL_OP),
        }
    }

    fn execute_immediate(&mut self, number: u16, fetched: &Fetched) -> Result<(), ReturnCode> {
        let byte = fetched.byte;
        let op = DmaOp(byte.opcode());
        let queue = self.queues.table.get_mut(number);
        let Some(Kind::Transmit { lcid, state, .. }) = queue.map(|queue| &mut queue.kind) else {
            return Err(ReturnCode::ILLEGAL_OP);
        };
        if op == DmaOp::NOOP {
            return Ok(());
        }
        if op == DmaOp::CSTATE {
            of_size(byte, 1)?;
            **state = CState::decode(&fetched.head());
            return Ok(());
        }
        let (lcid, state) = (*lcid, **state);
        let sender = self.sender(number, lcid, false)?;
        match op {
            DmaOp::PUT => {
                let head = IdcHeader::decode(&fetched.head());
                let payload = payload(fetched, IDC_HEAD, head.length, state.flags)?;
                let common = Common {
                    remote_offset: head.remote_offset,
                    length: u32::try_from(payload.len()).unwrap_or(0),
                    ..Common::of_state(op, head.dfa, &state)
                };
                self.issue(
                    sender,
                    &common,
                    None,
                    None,
                    Local::Bytes(Data::inline(payload)),
                )
            }
            DmaOp::SMALL_MESSAGE => {
                let head = IdcMessage::decode(&fetched.head());
                let flags = state.flags - DmaFlags::RESTRICTED;
                let payload = payload(fetched, MESSAGE_HEAD, head.length, flags)?;
                let common = Common {
                    flags,
                    match_bits: head.match_bits,
                    header_data: head.header_data,
                    user_ptr: head.user_ptr,
                    length: u32::try_from(payload.len()).unwrap_or(0),
                    small: true,
                    ..Common::of_state(DmaOp::PUT, head.dfa, &state)
                };
                self.issue(
                    sender,
                    &common,
                    None,
                    None,
                    Local::Bytes(Data::inline(payload)),
                )
            }
            DmaOp::ATOMIC if byte.slots() == 1 => {
                let head = IdcHeader::decode(&fetched.head());
                let operands: [u8; SmallAtomic::BYTES] =
                    std::array::from_fn(|at| fetched.bytes[IDC_HEAD + at]);
                let operands = SmallAtomic::decode(&operands);
                let atomic = Atomic {
                    op: operands.amo_op,
                    ty: operands.amo_type,
                    operand: u128::from(operands.op1_word1).to_le_bytes(),
                    ..Atomic::default()
                };
                let common = Common {
                    remote_offset: head.remote_offset,
                    length: atomic::size(atomic.ty).unwrap_or(0),
                    ..Common::of_state(op, head.dfa, &state)
                };
                self.issue(
                    sender,
                    &common,
                    Some(atomic),
                    None,
                    Local::Bytes(Data::None),
                )
            }
            DmaOp::ATOMIC | DmaOp::FETCHING_ATOMIC => {
                of_size(byte, 2)?;
                let command = IdcAtomic::decode(&fetched.head());
                let atomic = Atomic {
                    op: command.atomic_op,
                    ty: command.atomic_type,
                    compare: command.cswap_op,
                    operand: words(command.op1_word1, command.op1_word2),
                    second: words(command.op2_word1, command.op2_word2),
                };
                let common = Common {
                    remote_offset: command.remote_offset,
                    length: atomic::size(atomic.ty).unwrap_or(0),
                    ..Common::of_state(op, command.dfa, &state)
                };
                let fetch = (op == DmaOp::FETCHING_ATOMIC).then_some(Fetch {
                    lac: state.write_lac,
                    iova: command.local_addr,
                    len: common.length as usize,
                });
                self.issue(
                    sender,
                    &common,
                    Some(atomic),
                    fetch,
                    Local::Bytes(Data::None),
                )
            }
            _ => Err(ReturnCode::ILLEGAL_OP),
        }
    }

    /// A DMA command, from a queue or out of a triggered one.
    pub(crate) fn execute_dma(
        &mut self,
        sender: Sender,
        byte: CommandByte,
        bytes: &[u8; DmaAtomic::BYTES],
    ) -> Result<(), ReturnCode> {
        let op = DmaOp(byte.opcode());
        match op {
            DmaOp::NOOP => {
                self.skip(sender);
                Ok(())
            }
            DmaOp::PUT | DmaOp::GET | DmaOp::RENDEZVOUS_PUT => {
                of_size(byte, 2)?;
                let head = std::array::from_fn(|at| bytes[at]);
                let command = FullDma::decode(&head);
                let common = Common {
                    op,
                    dfa: command.dfa,
                    index_ext: command.index_ext,
                    flags: command.flags,
                    initiator: command.initiator,
                    match_bits: command.match_bits,
                    header_data: command.header_data,
                    remote_offset: command.remote_offset,
                    user_ptr: command.user_ptr,
                    ct: command.ct,
                    eq: command.eq,
                    length: command.request_len,
                    eager: command.eager_length,
                    rendezvous_id: command.rendezvous_id,
                    small: false,
                };
                let local = Local::Memory(command.lac, command.local_addr);
                self.issue(sender, &common, None, None, local)
            }
            DmaOp::NOMATCH_PUT | DmaOp::NOMATCH_GET => {
                of_size(byte, 1)?;
                let head = std::array::from_fn(|at| bytes[at]);
                let command = NomatchDma::decode(&head);
                let put = op == DmaOp::NOMATCH_PUT;
                let common = Common {
                    op: if put { DmaOp::PUT } else { DmaOp::GET },
                    dfa: command.dfa,
                    index_ext: command.index_ext,
                    // Only failures are reported.
                    flags: command.flags | DmaFlags::RESTRICTED | DmaFlags::EVENT_SUCCESS_DISABLE,
                    initiator: MatchId::default(),
                    match_bits: 0,
                    header_data: 0,
                    remote_offset: command.remote_offset,
                    user_ptr: 0,
                    ct: command.ct,
                    eq: command.eq,
                    length: command.request_len,
                    eager: 0,
                    rendezvous_id: 0,
                    small: false,
                };
                let local = Local::Memory(command.lac, command.local_addr);
                self.issue(sender, &common, None, None, local)
            }
            DmaOp::ATOMIC | DmaOp::FETCHING_ATOMIC => {
                of_size(byte, 4)?;
                self.execute_dma_atomic(sender, op, &DmaAtomic::decode(bytes))
            }
            _ => Err(ReturnCode::ILLEGAL_OP),
        }
    }

    fn execute_dma_atomic(
        &mut self,
        sender: Sender,
        op: DmaOp,
        command: &DmaAtomic,
    ) -> Result<(), ReturnCode> {
        let atomic = Atomic {
            op: command.atomic_op,
            ty: command.atomic_type,
            compare: command.cswap_op,
            operand: [0; 16],
            second: words(command.op2_word1, command.op2_word2),
        };
        let common = Common {
            op,
            dfa: command.dfa,
            index_ext: command.index_ext,
            flags: command.flags,
            initiator: command.initiator,
            match_bits: command.match_bits,
            header_data: command.header_data,
            remote_offset: command.remote_offset,
            user_ptr: command.user_ptr,
            ct: command.ct,
            eq: command.eq,
            length: command.request_len,
            eager: 0,
            rendezvous_id: 0,
            small: false,
        };
        let fetch = (op == DmaOp::FETCHING_ATOMIC).then_some(Fetch {
            lac: command.write_lac,
            iova: command.local_write_addr,
            len: (common.length as usize).min(16),
        });
        let local = Local::Memory(command.lac, command.local_read_addr);
        self.issue(sender, &common, Some(atomic), fetch, local)
    }

    /// A DMA command that does nothing has ended.
    fn skip(&mut self, sender: Sender) {
        if let Owner::Triggered(number, generation) = sender.owner {
            self.end_triggered(number, generation);
        }
    }

    /// Reads what is to be sent and sends it.
    fn issue(
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
        let data = match self.gather(rgid, common, atomic.as_mut(), local) {
            Ok(_) if common.dfa.is_multicast() => Err(ReturnCode::INVALID_DFA_FORMAT),
            data => data,
        };
        let data = match data {
            Ok(data) => data,
            Err(code) => {
                self.complete(&operation, &Reply::error(code));
                return Ok(());
            }
        };
        if common.op != DmaOp::GET {
            self.report_send(&operation.report, common.length);
        }
        let pid_bits = self.settings.pid_bits;
        let restricted = common.flags.contains(DmaFlags::RESTRICTED);
        let eager = if common.op == DmaOp::RENDEZVOUS_PUT {
            common.eager.min(common.length)
        } else {
            common.length
        };
        let request = Request {
            op: common.op,
            vni: sender.profile.vni,
            // PIDs and portal indices have fewer bits.
            pid: u16::try_from(common.dfa.pid(pid_bits)).unwrap_or(u16::MAX),
            index: u16::try_from(common.dfa.index(common.index_ext, pid_bits)).unwrap_or(u16::MAX),
            restricted,
            flush: common.flags.contains(DmaFlags::FLUSH),
            use_offset_for_get: common.flags.contains(DmaFlags::USE_OFFSET_FOR_GET),
            small: common.small,
            initiator: common.initiator,
            match_bits: if restricted { 0 } else { common.match_bits },
            header_data: if restricted { 0 } else { common.header_data },
            remote_offset: common.remote_offset,
            length: common.length,
            eager,
            rendezvous_id: common.rendezvous_id,
            atomic,
        };
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

fn words(low: u64, high: u64) -> [u8; 16] {
    (u128::from(high) << 64 | u128::from(low)).to_le_bytes()
}

/// The payload behind the head of an immediate command.
fn payload(
    fetched: &Fetched,
    head: usize,
    length: u8,
    flags: DmaFlags,
) -> Result<&[u8], ReturnCode> {
    let end = usize::from(length);
    let most = if flags.contains(DmaFlags::RESTRICTED) {
        INLINE
    } else {
        MAX_UNRESTRICTED
    };
    let fits = end >= head && end <= fetched.byte.bytes() && end - head <= most;
    if fits {
        Ok(&fetched.bytes[head..end])
    } else {
        Err(ReturnCode::CMD_INVALID_ARG)
    }
}
