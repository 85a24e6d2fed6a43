//! Events.

use crate::{
    AtomicOp, AtomicType, CommandByte, CompareOp, EventSize, EventType, List, MatchId, ReturnCode,
    layouts,
};

layouts! {
    /// SEND, ACK and REPLY.
    struct InitiatorShort: 16 = "c_event_initiator_short" {
        user_ptr: u64 [0; 64] "given back in the events of the initiator",
        mlength: u32 [64; 32] "bytes moved",
        ptl_list: List [96; 2] "list",
        rendezvous: bool [100; 1] "of a rendezvous",
        retry: bool [101; 1] "the operation was retried",
        tgt_error: bool [102; 1] "the target found the error",
        event_size: EventSize [112; 2] "size of the event",
        event_type: EventType [114; 5] "type of the event",
        return_code: ReturnCode [120; 6] "result; never 0",
    }

    /// SEND, ACK and REPLY with the time.
    struct InitiatorLong: 32 = "c_event_initiator_long" {
        user_ptr: u64 [0; 64] "given back in the events of the initiator",
        mlength: u32 [64; 32] "bytes moved",
        ptl_list: List [96; 2] "list",
        rendezvous: bool [100; 1] "of a rendezvous",
        retry: bool [101; 1] "the operation was retried",
        tgt_error: bool [102; 1] "the target found the error",
        event_size: EventSize [112; 2] "size of the event",
        event_type: EventType [114; 5] "type of the event",
        timestamp_ns: u32 [128; 30] "nanoseconds",
        timestamp_sec: u64 [192; 48] "seconds",
        return_code: ReturnCode [248; 6] "result; never 0",
    }

    /// TRIGGERED_OP.
    struct TriggeredShort: 16 = "c_event_trig_op_short" {
        threshold: u64 [0; 48] "successes and failures that fire the command",
        ct_handle: u16 [64; 11] "counter that fired",
        event_size: EventSize [112; 2] "size of the event",
        event_type: EventType [114; 5] "type of the event",
        return_code: ReturnCode [120; 6] "result; never 0",
    }

    /// TRIGGERED_OP with the time.
    struct TriggeredLong: 32 = "c_event_trig_op_long" {
        threshold: u64 [0; 48] "successes and failures that fire the command",
        ct_handle: u16 [64; 11] "counter that fired",
        event_size: EventSize [112; 2] "size of the event",
        event_type: EventType [114; 5] "type of the event",
        timestamp_ns: u32 [128; 30] "nanoseconds",
        timestamp_sec: u64 [192; 48] "seconds",
        return_code: ReturnCode [248; 6] "result; never 0",
    }

    /// COMMAND_FAILURE.
    struct CommandFailure: 16 = "c_event_cmd_fail" {
        cq_id: u16 [0; 10] "command queue, counted in its kind",
        is_target: bool [10; 1] "the queue is a target queue",
        fail_loc: u16 [16; 16] "where in the ring, in 64-byte units",
        fail_command: CommandByte [32; 8] "first byte of the failed command",
        event_size: EventSize [112; 2] "size of the event",
        event_type: EventType [114; 5] "type of the event",
        return_code: ReturnCode [120; 6] "result; never 0",
    }

    /// Communication at the target, short.
    struct TargetShort: 32 = "c_event_target_short" {
        header_data: u64 [0; 64] "passed on to the target",
        initiator: MatchId [64; 32] "match ID of the initiator",
        ptlte_index: u16 [96; 11] "PtlTE",
        event_size: EventSize [112; 2] "size of the event",
        event_type: EventType [114; 5] "type of the event",
        ptl_list: List [120; 2] "list",
        auto_unlinked: bool [124; 1] "the entry was unlinked by this operation",
        match_bits: u64 [128; 64] "match bits",
        buffer_id: u16 [192; 16] "handle in events",
        vni: u16 [208; 16] "VNI",
        length: u32 [224; 20] "bytes moved",
        return_code: ReturnCode [248; 6] "result; never 0",
    }

    /// Communication at the target, and whatever happens to lists and states.
    struct TargetLong: 64 = "c_event_target_long" {
        header_data: u64 [0; 64] "passed on to the target",
        initiator: MatchId [64; 32] "match ID of the initiator; a FabricAddress in RENDEZVOUS, a StateChange in STATE_CHANGE",
        ptlte_index: u16 [96; 11] "PtlTE",
        event_size: EventSize [112; 2] "size of the event",
        event_type: EventType [114; 5] "type of the event",
        ptl_list: List [120; 2] "list",
        rendezvous: bool [122; 1] "of a rendezvous",
        get_issued: bool [123; 1] "the NIC has sent the get",
        auto_unlinked: bool [124; 1] "the entry was unlinked by this operation",
        match_bits: u64 [128; 64] "match bits",
        buffer_id: u16 [192; 16] "handle in events",
        vni: u16 [208; 16] "VNI",
        timestamp_ns: u32 [224; 30] "nanoseconds",
        timestamp_sec_low: u8 [254; 2] "seconds, low two bits",
        mlength: u32 [256; 32] "bytes moved",
        rlength: u32 [288; 32] "bytes asked for",
        remote_offset: u64 [320; 56] "offset at the target",
        start: u64 [384; 57] "address",
        lpe_stat_1: u16 [448; 16] "list entries in use",
        lpe_stat_2: u16 [464; 16] "list entries there are",
        atomic_type: AtomicType [480; 4] "operand type",
        atomic_op: AtomicOp [484; 4] "operation",
        cswap_op: CompareOp [488; 3] "comparison of a compare-and-swap",
        rendezvous_id: u8 [496; 8] "rendezvous ID",
        return_code: ReturnCode [504; 6] "result; never 0",
    }

    /// TIMESTAMP.
    struct Timestamp: 16 = "c_event_timestamp" {
        timestamp_ns: u32 [0; 30] "nanoseconds",
        timestamp_sec: u64 [64; 48] "seconds",
        event_size: EventSize [112; 2] "size of the event",
        event_type: EventType [114; 5] "type of the event",
        return_code: ReturnCode [120; 6] "result; never 0",
    }

    /// EQ_SWITCH.
    struct EqSwitch: 16 = "c_event_eq_switch" {
        event_size: EventSize [112; 2] "size of the event",
        event_type: EventType [114; 5] "type of the event",
        return_code: ReturnCode [120; 6] "result; never 0",
    }
}
