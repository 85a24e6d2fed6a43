//! Commands of transmit queues.

use crate::{AtomicOp, AtomicType, CommandByte, CompareOp, DmaFlags, MatchId, layouts};

layouts! {
    /// State that the immediate commands after it have in common.
    struct CState: 32 = "c_cstate_cmd" {
        command: CommandByte [0; 8] "class, size class and operation",
        length: u8 [8; 8] "bytes of the command that count",
        write_lac: u8 [16; 3] "address context for a fetched value",
        flags: DmaFlags [19; 11] "events, counting and kind of packet",
        initiator: MatchId [32; 32] "match ID of the initiator",
        index_ext: u8 [64; 5] "low five bits of the portal index",
        user_ptr: u64 [128; 64] "given back in the events of the initiator",
        ct: u16 [224; 11] "counter, 0 for none",
        eq: u16 [240; 11] "event queue, 0 for none",
    }

    /// Head of an immediate put or small atomic; the payload follows.
    struct IdcHeader: 16 = "c_idc_hdr", idc {
        remote_offset: u64 [64; 56] "offset at the target",
    }

    /// Head of an immediate message; the payload follows.
    struct IdcMessage: 32 = "c_idc_msg_hdr", idc {
        match_bits: u64 [64; 64] "match bits",
        header_data: u64 [128; 64] "passed on to the target",
        user_ptr: u64 [192; 64] "given back in the events of the initiator",
    }

    /// Immediate atomic with room for two operands.
    struct IdcAtomic: 64 = "c_idc_amo_cmd", idc {
        remote_offset: u64 [64; 56] "offset at the target",
        local_addr: u64 [128; 57] "local I/O virtual address",
        atomic_op: AtomicOp [192; 4] "operation",
        atomic_type: AtomicType [200; 4] "operand type",
        cswap_op: CompareOp [208; 3] "comparison of a compare-and-swap",
        op1_word1: u64 [256; 64] "first operand, low half",
        op1_word2: u64 [320; 64] "first operand, high half",
        op2_word1: u64 [384; 64] "compare value or mask, low half",
        op2_word2: u64 [448; 64] "compare value or mask, high half",
    }

    /// Payload after the head of a small immediate atomic.
    struct SmallAtomic: 16 = "c_small_amo_payload" {
        amo_op: AtomicOp [0; 4] "operation",
        amo_type: AtomicType [8; 4] "operand type",
        op1_word1: u64 [64; 64] "first operand, low half",
    }

    /// Put or get without match bits.
    struct NomatchDma: 32 = "c_nomatch_dma_cmd", dma {
        local_addr: u64 [128; 57] "local I/O virtual address",
    }

    /// Put, get or rendezvous put.
    struct FullDma: 64 = "c_full_dma_cmd", matching_dma {
        local_addr: u64 [128; 57] "local I/O virtual address",
        eager_length: u32 [256; 20] "bytes that a rendezvous put carries",
        rendezvous_id: u8 [280; 8] "rendezvous ID",
    }

    /// Atomic with operands from memory.
    struct DmaAtomic: 96 = "c_dma_amo_cmd", matching_dma {
        local_read_addr: u64 [128; 57] "where the first operand is",
        local_write_addr: u64 [512; 57] "where a fetched value goes",
        atomic_op: AtomicOp [576; 4] "operation",
        atomic_type: AtomicType [584; 4] "operand type",
        cswap_op: CompareOp [592; 3] "comparison of a compare-and-swap",
        write_lac: u8 [608; 3] "address context for a fetched value",
        op2_word1: u64 [640; 64] "compare value or mask, low half",
        op2_word2: u64 [704; 64] "compare value or mask, high half",
    }

    /// Command for a counter; TRIG_DMA has a DMA command behind it.
    struct CtCommand: 24 = "c_ct_cmd" {
        command: CommandByte [0; 8] "class, size class and operation",
        ct: u16 [16; 11] "counter, 0 for none",
        trig_ct: u16 [32; 11] "counter whose threshold fires the command",
        eq: u16 [48; 11] "event queue, 0 for none",
        ct_success: u64 [64; 48] "successes",
        ct_failure: u8 [112; 7] "failures",
        set_ct_success: bool [126; 1] "the successes apply",
        set_ct_failure: bool [127; 1] "the failures apply",
        threshold: u64 [128; 48] "successes and failures that fire the command",
    }

    /// Command for the queue itself.
    struct CqCommand: 64 = "c_cq_cmd" {
        command: CommandByte [0; 8] "class, size class and operation",
        lcid: u8 [32; 4] "communication profile of the commands that follow",
    }
}
