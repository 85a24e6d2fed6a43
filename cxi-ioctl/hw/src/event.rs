//! Events.

use crate::{AtomicOp, AtomicType, CommandByte, CompareOp, layouts};

layouts! {
    /// SEND, ACK and REPLY.
    struct InitiatorShort: 16 = "c_event_initiator_short", initiator_event {}

    /// SEND, ACK and REPLY with the time.
    struct InitiatorLong: 32 = "c_event_initiator_long", initiator_event {
        timestamp_ns: u32 [128; 30] "nanoseconds",
        timestamp_sec: u64 [192; 48] "seconds",
    }

    /// TRIGGERED_OP.
    struct TriggeredShort: 16 = "c_event_trig_op_short", trigger_event {}

    /// TRIGGERED_OP with the time.
    struct TriggeredLong: 32 = "c_event_trig_op_long", trigger_event {
        timestamp_ns: u32 [128; 30] "nanoseconds",
        timestamp_sec: u64 [192; 48] "seconds",
    }

    /// COMMAND_FAILURE.
    struct CommandFailure: 16 = "c_event_cmd_fail", event {
        cq_id: u16 [0; 10] "command queue, counted in its kind",
        is_target: bool [10; 1] "the queue is a target queue",
        fail_loc: u16 [16; 16] "where in the ring, in 64-byte units",
        fail_command: CommandByte [32; 8] "first byte of the failed command",
    }

    /// Communication at the target, short.
    struct TargetShort: 32 = "c_event_target_short", target_event {
        length: u32 [224; 20] "bytes moved",
    }

    /// Communication at the target, and whatever happens to lists and states.
    struct TargetLong: 64 = "c_event_target_long", target_event {
        rendezvous: bool [122; 1] "of a rendezvous",
        get_issued: bool [123; 1] "the NIC has sent the get",
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
    }

    /// TIMESTAMP.
    struct Timestamp: 16 = "c_event_timestamp", event {
        timestamp_ns: u32 [0; 30] "nanoseconds",
        timestamp_sec: u64 [64; 48] "seconds",
    }

    /// EQ_SWITCH.
    struct EqSwitch: 16 = "c_event_eq_switch", event {}
}
