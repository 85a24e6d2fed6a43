//! Commands that send: immediate ones, whose data is in the command, and DMA commands, whose data
//! is in memory. All become a [`SendCommand`] first, and then a request.

use cxi_hw::{
    CState, CommandByte, DmaAtomic, DmaFlags, DmaOp, FullDma, IdcAtomic, IdcHeader, IdcMessage,
    NomatchDma, ReturnCode, SmallAtomic,
};

use crate::atomic;
use crate::command_queue::Fetched;
use crate::link::{Fetch, Report};
use crate::packet::{Atomic, Data, INLINE, Multicast, Request};
use crate::translation::{Access, Scatter, Translation};

/// Bytes of payload of an immediate command that is not restricted.
const MAX_UNRESTRICTED: usize = 192;

/// A command that sends, whatever its form.
#[derive(Debug)]
pub(crate) struct SendCommand<'a> {
    pub(crate) op: DmaOp,
    /// Fields that it has in common with a DMA command.
    pub(crate) command: FullDma,
    /// A small message, whose packet header is shorter.
    small: bool,
    atomic: Option<Atomic>,
    pub(crate) fetch: Option<Fetch>,
    /// The data of an immediate command; that of an atomic is in its operands.
    immediate: Option<&'a [u8]>,
}

/// Source of a command's data.
#[derive(Debug)]
pub(crate) enum Source {
    There(Data),
    /// So many bytes have to be read, as the data or as the operand of an atomic.
    Read(Scatter, usize),
}

/// Refuses a command that does not have the length of its kind.
pub(crate) fn check_slots(byte: CommandByte, slots: usize) -> Result<(), ReturnCode> {
    if byte.slots() == slots { Ok(()) } else { Err(ReturnCode::CMD_INVALID_ARG) }
}

/// An operand of two words.
fn words(low: u64, high: u64) -> [u8; 16] {
    (u128::from(high) << 64 | u128::from(low)).to_le_bytes()
}

impl<'a> SendCommand<'a> {
    fn new(op: DmaOp, command: FullDma) -> Self {
        Self { op, command, small: false, atomic: None, fetch: None, immediate: None }
    }

    /// A DMA command; `None` for one without effect.
    pub(crate) fn of_dma(
        byte: CommandByte,
        bytes: &[u8; DmaAtomic::BYTES],
    ) -> Result<Option<Self>, ReturnCode> {
        let op = DmaOp(byte.opcode());
        // The fields that a shorter or longer DMA command shares with a full one are in the same
        // places.
        let common = FullDma::decode(&std::array::from_fn(|at| bytes[at]));
        Ok(Some(match op {
            DmaOp::NOOP => return Ok(None),
            DmaOp::PUT | DmaOp::GET | DmaOp::RENDEZVOUS_PUT => {
                check_slots(byte, 2)?;
                Self::new(op, common)
            }
            DmaOp::NOMATCH_PUT | DmaOp::NOMATCH_GET => {
                check_slots(byte, 1)?;
                // The bytes after the command are not part of it.
                let mut half = [0; FullDma::BYTES];
                half[..NomatchDma::BYTES].copy_from_slice(&bytes[..NomatchDma::BYTES]);
                let mut command = FullDma::decode(&half);
                command.flags |= DmaFlags::RESTRICTED;
                let put = op == DmaOp::NOMATCH_PUT;
                Self::new(if put { DmaOp::PUT } else { DmaOp::GET }, command)
            }
            DmaOp::ATOMIC | DmaOp::FETCHING_ATOMIC => {
                check_slots(byte, 4)?;
                Self::of_dma_atomic(op, common, &DmaAtomic::decode(bytes))
            }
            _ => return Err(ReturnCode::ILLEGAL_OP),
        }))
    }

    fn of_dma_atomic(op: DmaOp, common: FullDma, command: &DmaAtomic) -> Self {
        Self {
            atomic: Some(Atomic {
                op: command.atomic_op,
                ty: command.atomic_type,
                compare: command.cswap_op,
                operand: [0; 16],
                second: words(command.op2_word1, command.op2_word2),
            }),
            fetch: (op == DmaOp::FETCHING_ATOMIC).then_some(Fetch {
                lac: command.write_lac,
                iova: command.local_write_addr,
                len: (command.request_len as usize).min(16),
            }),
            ..Self::new(op, FullDma { rendezvous_id: 0, ..common })
        }
    }

    /// An immediate command, completed by the state of its queue.
    pub(crate) fn of_immediate(fetched: &'a Fetched, state: &CState) -> Result<Self, ReturnCode> {
        let op = DmaOp(fetched.byte.opcode());
        let common = FullDma {
            index_ext: state.index_ext,
            flags: state.flags,
            initiator: state.initiator,
            user_ptr: state.user_ptr,
            ct: state.ct,
            eq: state.eq,
            ..FullDma::default()
        };
        Ok(match op {
            DmaOp::PUT => {
                let head = IdcHeader::decode(&fetched.head());
                let payload = payload(fetched, IdcHeader::BYTES, head.length, state.flags)?;
                let command =
                    FullDma { dfa: head.dfa, remote_offset: head.remote_offset, ..common };
                Self::with_payload(command, payload)
            }
            DmaOp::SMALL_MESSAGE => {
                let head = IdcMessage::decode(&fetched.head());
                let flags = state.flags - DmaFlags::RESTRICTED;
                let payload = payload(fetched, IdcMessage::BYTES, head.length, flags)?;
                let command = FullDma {
                    dfa: head.dfa,
                    flags,
                    match_bits: head.match_bits,
                    header_data: head.header_data,
                    user_ptr: head.user_ptr,
                    ..common
                };
                Self { small: true, ..Self::with_payload(command, payload) }
            }
            DmaOp::ATOMIC if fetched.byte.slots() == 1 => {
                let head = IdcHeader::decode(&fetched.head());
                let operands = std::array::from_fn(|at| fetched.bytes[IdcHeader::BYTES + at]);
                let operands = SmallAtomic::decode(&operands);
                let command =
                    FullDma { dfa: head.dfa, remote_offset: head.remote_offset, ..common };
                let atomic = Atomic {
                    op: operands.amo_op,
                    ty: operands.amo_type,
                    operand: words(operands.op1_word1, 0),
                    ..Atomic::default()
                };
                Self::with_operands(op, command, atomic)
            }
            DmaOp::ATOMIC | DmaOp::FETCHING_ATOMIC => {
                check_slots(fetched.byte, 2)?;
                let head = IdcAtomic::decode(&fetched.head());
                let command =
                    FullDma { dfa: head.dfa, remote_offset: head.remote_offset, ..common };
                let atomic = Atomic {
                    op: head.atomic_op,
                    ty: head.atomic_type,
                    compare: head.cswap_op,
                    operand: words(head.op1_word1, head.op1_word2),
                    second: words(head.op2_word1, head.op2_word2),
                };
                let mut sent = Self::with_operands(op, command, atomic);
                sent.fetch = (op == DmaOp::FETCHING_ATOMIC).then_some(Fetch {
                    lac: state.write_lac,
                    iova: head.local_addr,
                    len: sent.command.request_len as usize,
                });
                sent
            }
            _ => return Err(ReturnCode::ILLEGAL_OP),
        })
    }

    fn with_payload(command: FullDma, payload: &'a [u8]) -> Self {
        // The payload has at most 224 bytes.
        #[allow(clippy::cast_possible_truncation)]
        let request_len = payload.len() as u32;
        let command = FullDma { request_len, ..command };
        Self { immediate: Some(payload), ..Self::new(DmaOp::PUT, command) }
    }

    fn with_operands(op: DmaOp, command: FullDma, atomic: Atomic) -> Self {
        let command = FullDma { request_len: atomic::size(atomic.ty).unwrap_or(0), ..command };
        Self { atomic: Some(atomic), immediate: Some(&[]), ..Self::new(op, command) }
    }

    pub(crate) fn report(&self) -> Report {
        Report {
            eq: self.command.eq,
            ct: self.command.ct,
            flags: self.command.flags,
            user_ptr: self.command.user_ptr,
            reply: matches!(self.op, DmaOp::GET | DmaOp::FETCHING_ATOMIC),
            rendezvous: false,
        }
    }

    fn eager(&self) -> u32 {
        self.command.eager_length.min(self.command.request_len)
    }

    /// Message of a queue that sends with this VNI.
    // An address has 12 bits for both PID and index.
    #[allow(clippy::cast_possible_truncation)]
    pub(crate) fn request(&self, vni: u16, pid_bits: u32) -> Request {
        let command = &self.command;
        let restricted = command.flags.contains(DmaFlags::RESTRICTED);
        Request {
            started: None,
            op: self.op,
            // Rule 5.3: A message carries the VNI of the queue that sends it; no command names one.
            vni,
            // Rule 5.1: An address holds the PID in its low bits and the upper portal index bits
            // above; the command holds the low five index bits.
            pid: command.dfa.pid(pid_bits) as u16,
            index: command.dfa.index(command.index_ext, pid_bits) as u16,
            flags: command.flags,
            small: self.small,
            initiator: command.initiator,
            match_bits: if restricted { 0 } else { command.match_bits },
            header_data: if restricted { 0 } else { command.header_data },
            remote_offset: command.remote_offset,
            length: command.request_len,
            eager: if self.op == DmaOp::RENDEZVOUS_PUT {
                self.eager()
            } else {
                command.request_len
            },
            rendezvous_id: command.rendezvous_id,
            atomic: self.atomic,
            multicast: command.dfa.is_multicast().then(|| Multicast {
                id: command.dfa.multicast_id(),
                reduction: command.dfa.reduction(),
                index: command.index_ext,
            }),
        }
    }

    /// Returns whether the command may go to a multicast tree.
    fn is_reduction(&self) -> bool {
        let reduces = DmaFlags::RESTRICTED | DmaFlags::REDUCTION;
        let inline = self.command.request_len as usize <= INLINE;
        self.op == DmaOp::PUT && self.command.flags.contains(reduces) && inline
    }

    /// The data of the command. If there is little of it, it is to be read now.
    pub(crate) fn gather(
        &self,
        rgid: u16,
        translation: &Translation,
        request: &Request,
    ) -> Result<Source, ReturnCode> {
        // Rule 5.5: Only a restricted put with the reduction flag and its data in the packet may go
        // to a multicast tree.
        if request.multicast.is_some() && !self.is_reduction() {
            return Err(ReturnCode::INVALID_DFA_FORMAT);
        }
        if let Some(payload) = self.immediate {
            return Ok(Source::There(if self.atomic.is_some() {
                Data::None
            } else {
                Data::Inline(payload.to_vec())
            }));
        }
        let (access, len) = match self.op {
            DmaOp::GET => (Access::Write, self.command.request_len),
            DmaOp::RENDEZVOUS_PUT => (Access::Read, self.eager()),
            _ => (Access::Read, self.command.request_len),
        };
        if let Some(atomic) = &request.atomic
            && (atomic::size(atomic.ty).is_some_and(|size| size != len) || len > 16)
        {
            return Err(ReturnCode::AMO_LENGTH_ERROR);
        }
        let context = (rgid, self.command.lac);
        let memory = translation.translate(context, self.command.local_addr, len.into(), access)?;
        // Rule 13.5: The first operand of a DMA atomic is in memory, the second one in the command.
        let bytes = len as usize;
        if access == Access::Read && bytes <= INLINE {
            return Ok(Source::Read(memory, bytes));
        }
        Ok(Source::There(Data::Memory(memory)))
    }
}

/// The payload after the head of an immediate command.
fn payload(
    fetched: &Fetched,
    head: usize,
    length: u8,
    flags: DmaFlags,
) -> Result<&[u8], ReturnCode> {
    // Rule 2.11: The length of an immediate command includes its head; the payload is at most 192
    // bytes, or 224 if restricted.
    let end = usize::from(length);
    let most = if flags.contains(DmaFlags::RESTRICTED) { INLINE } else { MAX_UNRESTRICTED };
    let fits = end >= head && end <= fetched.byte.bytes() && end - head <= most;
    if fits { Ok(&fetched.bytes[head..end]) } else { Err(ReturnCode::CMD_INVALID_ARG) }
}
