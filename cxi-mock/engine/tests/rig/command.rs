//! Commands as programs write them.

use cxi_hw::{
    AtomicOp, AtomicType, CState, Class, CommandByte, CompareOp, CtCommand, CtOp, DmaAtomic,
    DmaFlags, DmaOp, FabricAddress, FullDma, IdcHeader, IdcMessage, List, MatchId, PtlteState,
    SetState, TargetCommand, TargetFlags, TargetOp,
};

use super::{BUFFER, CT, EQ, LAC, NID, PORTAL};

pub fn target(op: TargetOp) -> CommandByte {
    CommandByte::new(Class::CQ, 1, op.0)
}

pub fn dma(op: DmaOp) -> CommandByte {
    CommandByte::new(Class::DMA, 1, op.0)
}

pub fn counter(op: CtOp, ct: u16) -> CtCommand {
    CtCommand { command: CommandByte::new(Class::CT, 1, op.0), ct, ..CtCommand::default() }
}

/// A command that waits for [`CT`].
pub fn trig(op: CtOp, ct: u16, threshold: u64) -> CtCommand {
    counter(op, ct).with_trig_ct(CT).with_threshold(threshold)
}

/// A triggered DMA command.
pub fn trig_dma(threshold: u64, dma: &[u8]) -> Vec<u8> {
    let head = trig(CtOp::TRIG_DMA, 0, threshold).with_command(CommandByte::new(
        Class::CT,
        2,
        CtOp::TRIG_DMA.0,
    ));
    padded(&[head.encode().as_slice(), dma].concat(), 128)
}

pub fn padded(command: &[u8], bytes: usize) -> Vec<u8> {
    let mut padded = command.to_vec();
    padded.resize(bytes, 0);
    padded
}

/// An entry of the priority list of [`PORTAL`] that takes puts from anybody.
pub fn entry(buffer_id: u16, start: u64, length: u64) -> TargetCommand {
    TargetCommand {
        command: target(TargetOp::APPEND),
        ptl_list: List::PRIORITY,
        ptlte_index: PORTAL,
        flags: TargetFlags::OP_PUT,
        buffer_id,
        lac: LAC,
        start,
        length,
        match_id: MatchId::ANY,
        ..TargetCommand::default()
    }
}

pub fn unlink(list: List, buffer_id: u16) -> TargetCommand {
    TargetCommand {
        command: target(TargetOp::UNLINK),
        ptl_list: list,
        ptlte_index: PORTAL,
        buffer_id,
        ..TargetCommand::default()
    }
}

pub fn set_state(number: u16, state: PtlteState, drop_count: u32) -> SetState {
    SetState {
        command: target(TargetOp::SETSTATE),
        ptlte_state: state,
        ptlte_index: number,
        drop_count,
        ..SetState::default()
    }
}

pub fn search(op: TargetOp, buffer_id: u16, match_bits: u64) -> TargetCommand {
    TargetCommand {
        command: target(op),
        ptl_list: List::UNEXPECTED,
        ptlte_index: PORTAL,
        buffer_id,
        match_id: MatchId::ANY,
        match_bits,
        length: 0xffff_ffff,
        ..TargetCommand::default()
    }
}

/// A DMA command to portal index 0 of PID 0 of a NIC.
pub fn message(op: DmaOp, nid: u32, local_addr: u64, len: u32) -> FullDma {
    let (dfa, index_ext) = FabricAddress::unicast(nid, 0, 0, 9);
    FullDma {
        command: dma(op),
        index_ext,
        lac: LAC,
        flags: DmaFlags::EVENT_SEND_DISABLE,
        dfa,
        local_addr,
        request_len: len,
        eq: EQ,
        initiator: MatchId::new(0, nid, 9),
        user_ptr: 0xfeed,
        ..FullDma::default()
    }
}

pub fn put(len: u32) -> FullDma {
    message(DmaOp::PUT, NID, BUFFER, len)
}

pub fn get(len: u32) -> FullDma {
    message(DmaOp::GET, NID, BUFFER, len)
}

/// Address of the operand of an [`atomic`]; its result goes to another.
pub const OPERAND: u64 = BUFFER;
pub const RESULT: u64 = BUFFER + 64;

pub fn atomic(op: DmaOp, atomic_op: AtomicOp, atomic_type: AtomicType, size: u32) -> DmaAtomic {
    let base = put(0);
    DmaAtomic {
        command: CommandByte::new(Class::DMA, 2, op.0),
        index_ext: base.index_ext,
        lac: LAC,
        flags: DmaFlags::EVENT_SEND_DISABLE,
        dfa: base.dfa,
        local_read_addr: OPERAND,
        request_len: size,
        eq: EQ,
        initiator: base.initiator,
        local_write_addr: RESULT,
        atomic_op,
        atomic_type,
        write_lac: LAC,
        ..DmaAtomic::default()
    }
}

/// An immediate command of the smallest size that holds head and payload.
pub fn immediate(op: DmaOp, head: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut command = [head, payload].concat();
    let len = command.len();
    let least = if op == DmaOp::SMALL_MESSAGE { 64 } else { 32 };
    let bytes = len.next_power_of_two().max(least);
    command.resize(bytes, 0);
    command[0] = CommandByte::new(Class::IDC, u8::try_from(bytes.ilog2() - 5).unwrap(), op.0).0;
    command[1] = u8::try_from(len).unwrap();
    command
}

pub fn idc_put(payload: &[u8]) -> Vec<u8> {
    let (dfa, _) = FabricAddress::unicast(NID, 0, 0, 9);
    let head = IdcHeader { dfa, ..IdcHeader::default() };
    immediate(DmaOp::PUT, &head.encode(), payload)
}

pub fn idc_message(match_bits: u64, payload: &[u8]) -> Vec<u8> {
    let (dfa, _) = FabricAddress::unicast(NID, 0, 0, 9);
    let head = IdcMessage {
        dfa,
        match_bits,
        header_data: 0xdada,
        user_ptr: 0xbeef,
        ..IdcMessage::default()
    };
    immediate(DmaOp::SMALL_MESSAGE, &head.encode(), payload)
}

pub fn c_state(flags: DmaFlags) -> CState {
    CState {
        command: CommandByte::new(Class::IDC, 0, DmaOp::CSTATE.0),
        length: 32,
        write_lac: LAC,
        flags,
        initiator: MatchId::new(0, NID, 9),
        user_ptr: 0xcafe,
        eq: EQ,
        ..CState::default()
    }
}

/// An entry of the overflow list, for unexpected messages.
pub fn overflow(buffer_id: u16, start: u64, length: u64) -> TargetCommand {
    TargetCommand {
        ptl_list: List::OVERFLOW,
        flags: TargetFlags::OP_PUT | TargetFlags::MANAGE_LOCAL | TargetFlags::NO_TRUNCATE,
        ignore_bits: u64::MAX,
        ..entry(buffer_id, start, length)
    }
}

/// An entry of the request list, for what software handles.
pub fn request_list(buffer_id: u16) -> TargetCommand {
    overflow(buffer_id, BUFFER + 0x8000, 4096).with_list(List::REQUEST)
}

/// Setters, so that a test says only what is special about its command.
macro_rules! setters {
    ($($with:ident for $command:ty { $($set:ident $field:ident: $type:ty,)* })*) => {$(
        pub trait $with: Sized {
            $(#[must_use] fn $set(self, $field: $type) -> Self;)*
        }

        impl $with for $command {
            $(fn $set(self, $field: $type) -> Self { Self { $field, ..self } })*
        }
    )*};
}

setters! {
    DmaWith for FullDma {
        with_command command: CommandByte,
        with_flags flags: DmaFlags,
        with_lac lac: u8,
        with_dfa dfa: FabricAddress,
        with_index index_ext: u8,
        with_offset remote_offset: u64,
        with_local_addr local_addr: u64,
        with_len request_len: u32,
        with_eager eager_length: u32,
        with_rendezvous rendezvous_id: u8,
        with_ct ct: u16,
        with_eq eq: u16,
        with_initiator initiator: MatchId,
        with_match_bits match_bits: u64,
        with_header header_data: u64,
        with_user_ptr user_ptr: u64,
    }
    AtomicWith for DmaAtomic {
        with_dfa dfa: FabricAddress,
        with_initiator initiator: MatchId,
        with_flags flags: DmaFlags,
        with_offset remote_offset: u64,
        with_read_addr local_read_addr: u64,
        with_write_addr local_write_addr: u64,
        with_cswap cswap_op: CompareOp,
        with_second op2_word1: u64,
        with_second_high op2_word2: u64,
        with_ct ct: u16,
    }
    TargetWith for TargetCommand {
        with_command command: CommandByte,
        with_list ptl_list: List,
        with_portal ptlte_index: u16,
        with_flags flags: TargetFlags,
        with_ct ct: u16,
        with_restart restart_seq: bool,
        with_length length: u64,
        with_min_free min_free: u32,
        with_match_id match_id: MatchId,
        with_match_bits match_bits: u64,
        with_ignore_bits ignore_bits: u64,
    }
    CtWith for CtCommand {
        with_command command: CommandByte,
        with_trig_ct trig_ct: u16,
        with_threshold threshold: u64,
        with_eq eq: u16,
        with_success ct_success: u64,
        with_failure ct_failure: u8,
        sets_success set_ct_success: bool,
        sets_failure set_ct_failure: bool,
    }
}

impl FullDmaTo for FullDma {
    fn to(self, nid: u32, pid: u32, index: u32) -> Self {
        let (dfa, index_ext) = FabricAddress::unicast(nid, pid, index, 9);
        self.with_dfa(dfa).with_index(index_ext)
    }
}

/// Destination of a command.
pub trait FullDmaTo {
    #[must_use]
    fn to(self, nid: u32, pid: u32, index: u32) -> Self;
}
