//! Immediate (IDC) commands: their data is in the command.

use cxi_hw::{CState, DmaFlags, DmaOp, IdcAtomic, IdcHeader, IdcMessage, ReturnCode, SmallAtomic};

use crate::command_queue::{Fetched, Kind};
use crate::dma::words;
use crate::flight::Fetch;
use crate::issue::{Common, Local};
use crate::packet::{Atomic, Data, INLINE};
use crate::transmit::{Sender, of_size};
use crate::{Engine, atomic};

/// Bytes of payload of a command that is not restricted.
const MAX_UNRESTRICTED: usize = 192;
/// Bytes of the heads.
const IDC_HEAD: usize = IdcHeader::BYTES;
const MESSAGE_HEAD: usize = IdcMessage::BYTES;

impl Engine {
    pub(crate) fn execute_immediate(
        &mut self,
        number: u16,
        fetched: &Fetched,
    ) -> Result<(), ReturnCode> {
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
            DmaOp::ATOMIC if byte.slots() == 1 => self.issue_small_atomic(sender, &state, fetched),
            DmaOp::ATOMIC | DmaOp::FETCHING_ATOMIC => {
                of_size(byte, 2)?;
                self.issue_atomic(sender, &state, op, &IdcAtomic::decode(&fetched.head()))
            }
            _ => Err(ReturnCode::ILLEGAL_OP),
        }
    }

    fn issue_small_atomic(
        &mut self,
        sender: Sender,
        state: &CState,
        fetched: &Fetched,
    ) -> Result<(), ReturnCode> {
        let head = IdcHeader::decode(&fetched.head());
        let operands = std::array::from_fn(|at| fetched.bytes[IDC_HEAD + at]);
        let operands = SmallAtomic::decode(&operands);
        let atomic = Atomic {
            op: operands.amo_op,
            ty: operands.amo_type,
            operand: words(operands.op1_word1, 0),
            ..Atomic::default()
        };
        let common = Common {
            remote_offset: head.remote_offset,
            length: atomic::size(atomic.ty).unwrap_or(0),
            ..Common::of_state(DmaOp::ATOMIC, head.dfa, state)
        };
        self.issue(
            sender,
            &common,
            Some(atomic),
            None,
            Local::Bytes(Data::None),
        )
    }

    fn issue_atomic(
        &mut self,
        sender: Sender,
        state: &CState,
        op: DmaOp,
        command: &IdcAtomic,
    ) -> Result<(), ReturnCode> {
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
            ..Common::of_state(op, command.dfa, state)
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
}

/// The payload after the head of an immediate command.
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
