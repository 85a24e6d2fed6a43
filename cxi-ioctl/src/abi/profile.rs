//! Communication profiles: the right to send on a VNI with a traffic class.

use crate::layout::{abi, commands};

/// Traffic class: dedicated access.
pub const TC_DEDICATED_ACCESS: u32 = 0;
/// Traffic class: low latency.
pub const TC_LOW_LATENCY: u32 = 1;
/// Traffic class: bulk data.
pub const TC_BULK_DATA: u32 = 2;
/// Traffic class: best effort.
pub const TC_BEST_EFFORT: u32 = 3;
/// Traffic class: Ethernet.
pub const TC_ETH: u32 = 4;
/// Traffic class type: default.
pub const TC_TYPE_DEFAULT: u32 = 0;
/// Traffic class type: high rate puts.
pub const TC_TYPE_HRP: u32 = 1;
/// Traffic class type: restricted.
pub const TC_TYPE_RESTRICTED: u32 = 2;
/// Traffic class type: collective leaf.
pub const TC_TYPE_COLL_LEAF: u32 = 3;
/// Only LCID 0, which triggered commands need.
pub const LCID_TRIG: u32 = 0;
/// Any LCID but 0.
pub const LCID_NON_TRIG: u32 = 1;
/// Any LCID.
pub const LCID_ANY: u32 = 2;
/// Number of traffic classes a service can name.
pub const TC_COUNT: usize = 5;

abi! {
    /// Request of CP_ALLOC.
    struct CpAllocCmd = "cxi_cp_alloc_cmd", 32 {
        /// Opcode; `new()` fills it in.
        op: u32 = 0,
        _pad0: [u8; 4] = 4,
        /// Address of the response buffer; the transport fills it in.
        resp: u64 = 8,
        /// LNI handle.
        lni: u32 = 16,
        /// VNI.
        vni: u32 = 20,
        /// Traffic class, see `TC_*`.
        tc: u32 = 24,
        /// Traffic class type, see `TC_TYPE_*`.
        tc_type: u32 = 28,
    }

    /// Request of TRIG_CP_ALLOC.
    struct TrigCpAllocCmd = "cxi_trig_cp_alloc_cmd", 40 {
        /// Opcode; `new()` fills it in.
        op: u32 = 0,
        _pad0: [u8; 4] = 4,
        /// Address of the response buffer; the transport fills it in.
        resp: u64 = 8,
        /// LNI handle.
        lni: u32 = 16,
        /// VNI.
        vni: u32 = 20,
        /// Traffic class, see `TC_*`.
        tc: u32 = 24,
        /// Traffic class type, see `TC_TYPE_*`.
        tc_type: u32 = 28,
        /// Which LCIDs will do, see `LCID_*`.
        cp_type: u32 = 32,
        _pad1: [u8; 4] = 36,
    }

    /// Response of CP_ALLOC, TRIG_CP_ALLOC.
    struct CpAllocResp = "cxi_cp_alloc_resp", 8 {
        /// Handle of the communication profile, per open file.
        cp_hndl: u32 = 0,
        /// Local communication profile id, 0 to 15 in an RGID.
        lcid: u32 = 4,
    }

    /// Request of CP_FREE.
    struct CpFreeCmd = "cxi_cp_free_cmd", 8 {
        /// Opcode; `new()` fills it in.
        op: u32 = 0,
        /// Handle of the communication profile, per open file.
        cp_hndl: u32 = 4,
    }

    /// Request of CP_MODIFY.
    struct CpModifyCmd = "cxi_cp_modify_cmd", 12 {
        /// Opcode; `new()` fills it in.
        op: u32 = 0,
        /// Handle of the communication profile, per open file.
        cp_hndl: u32 = 4,
        /// VNI.
        vni: u32 = 8,
    }
}

commands! {
    CpAllocCmd: CP_ALLOC -> CpAllocResp, response at 8;
    TrigCpAllocCmd: TRIG_CP_ALLOC -> CpAllocResp, response at 8;
    CpFreeCmd: CP_FREE -> ();
    CpModifyCmd: CP_MODIFY -> ();
}
