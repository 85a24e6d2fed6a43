//! Commands of target queues.

use crate::{CommandByte, List, MatchId, PtlteState, TargetFlags, layouts};

layouts! {
    /// Append, unlink and search.
    struct TargetCommand: 64 = "c_target_cmd" {
        command: CommandByte [0; 8] "class, size class and operation",
        ptl_list: List [8; 2] "list",
        ptlte_index: u16 [16; 11] "PtlTE",
        flags: TargetFlags [32; 15] "events, counting and matching",
        ct: u16 [48; 11] "counter, 0 for none",
        buffer_id: u16 [64; 16] "handle in events",
        lac: u8 [80; 3] "address context of the buffer",
        restart_seq: bool [88; 1] "appends to this list work again",
        start: u64 [128; 57] "address",
        length: u64 [192; 56] "bytes of the buffer",
        min_free: u32 [256; 24] "unlinked when fewer bytes are free",
        match_id: MatchId [288; 32] "initiators that match",
        match_bits: u64 [320; 64] "match bits",
        ignore_bits: u64 [384; 64] "match bits that do not count",
    }

    /// Changes the state of a PtlTE.
    struct SetState: 64 = "c_set_state_cmd" {
        command: CommandByte [0; 8] "class, size class and operation",
        ptlte_state: PtlteState [8; 3] "state",
        ptlte_index: u16 [16; 11] "PtlTE",
        current_addr: u64 [64; 57] "passed on to the event",
        drop_count: u32 [128; 24] "drops that the client has seen",
    }
}
