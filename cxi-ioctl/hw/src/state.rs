//! Status blocks, registers and doorbell words.

use crate::{CommandByte, ReturnCode, layouts};

layouts! {
    /// Status block at the start of an event buffer.
    struct EqStatus: 64 = "c_eq_status" {
        timestamp_ns_cpy: u32 [0; 30] "nanoseconds, first copy",
        timestamp_sec_cpy: u64 [64; 48] "seconds, first copy",
        thld_sts: bool [112; 1] "a threshold was crossed",
        thld_id: u8 [116; 2] "which threshold",
        unackd_dropped_event: bool [120; 1] "events were lost, and the loss is not acknowledged",
        event_drop_seq_no: bool [124; 1] "toggles with each run of lost events",
        event_slots_free: u32 [128; 26] "slots that are free",
        event_slots_rsrvd: u32 [160; 26] "slots kept for flow control",
        wr_ptr: u32 [192; 26] "write pointer in slots",
        using_buffer_b: bool [224; 1] "the second buffer is in use",
        timestamp_ns: u32 [416; 30] "nanoseconds, last copy",
        timestamp_sec: u64 [448; 48] "seconds, last copy",
    }

    /// The word that a client stores in the page of an event queue.
    struct EqState: 8 = "c_ee_cfg_eq_sw_state" {
        rd_ptr: u32 [0; 26] "read pointer",
        reading_buffer_b: bool [31; 1] "the second buffer is read",
        event_int_disable: bool [32; 1] "no interrupts for events",
        eq_sts_int_disable: bool [33; 1] "no interrupts for status",
        event_drop_seq_no: bool [40; 1] "toggles with each run of lost events",
    }

    /// Status word at the start of a command ring.
    struct CqStatus: 8 = "c_cq_status" {
        rd_ptr: u16 [0; 16] "read pointer",
        num_write_cmds_rejected: u16 [16; 16] "low-latency writes that were refused",
        fail_command: CommandByte [32; 8] "first byte of the failed command",
        return_code: ReturnCode [48; 6] "result; never 0",
        fail_loc_32: bool [61; 1] "the failed command is in the odd half",
        fail_ll: bool [62; 1] "the failed command came by a low-latency window",
        ll_disabled: bool [63; 1] "low-latency windows are off",
    }

    /// Words that a counter writes back.
    struct CtWriteback: 8 = "c_ct_writeback" {
        ct_success: u64 [0; 48] "successes",
        ct_failure: u8 [48; 7] "failures",
        ct_writeback: bool [63; 1] "set by each write-back",
    }

    /// Match bits of the get of a rendezvous.
    struct RendezvousMatchBits: 8 = "rdzv_match_bits" {
        rendezvous_id: u8 [0; 8] "rendezvous ID of the put",
        transaction_type: u8 [8; 4] "0",
        match_bits: u16 [48; 16] "the upper match bits of the put",
    }

    /// User pointer in the REPLY of the get of a rendezvous.
    struct RendezvousUserPtr: 8 = "rdzv_user_ptr" {
        src_nid: u32 [0; 20] "NIC address of the source",
        src_pid: u16 [20; 9] "PID of the source",
        ptlte_index: u16 [29; 11] "PtlTE",
        rendezvous_id: u8 [40; 8] "rendezvous ID of the put",
        buffer_id: u16 [48; 16] "handle of the list entry",
    }
}
