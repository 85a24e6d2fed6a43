//! Logical network interfaces.

use crate::layout::{abi, commands};

abi! {
    /// Request of LNI_ALLOC.
    struct LniAllocCmd = "cxi_lni_alloc_cmd", 24, since Main {
        /// Opcode; `new()` fills it in.
        op: u32 = 0,
        _pad0: [u8; 4] = 4,
        /// Address of the response buffer; the transport fills it in.
        resp: u64 = 8,
        /// Service id.
        svc_id: u32 = 16,
        _pad1: [u8; 4] = 20,
    }

    /// Request of LNI_ALLOC, up to 14.0.
    struct LniAllocCmdV1 = "cxi_lni_alloc_cmd", 16, until Shs14_0_1 {
        /// Opcode; `new()` fills it in.
        op: u32 = 0,
        /// Service id.
        svc_id: u32 = 4,
        /// Address of the response buffer; the transport fills it in.
        resp: u64 = 8,
    }

    /// Response of LNI_ALLOC.
    struct LniAllocResp = "cxi_lni_alloc_resp", 4 {
        /// LNI handle.
        lni: u32 = 0,
    }

    /// Request of LNI_FREE.
    struct LniFreeCmd = "cxi_lni_free_cmd", 8 {
        /// Opcode; `new()` fills it in.
        op: u32 = 0,
        /// LNI handle.
        lni: u32 = 4,
    }
}

commands! {
    LniAllocCmd: LNI_ALLOC -> LniAllocResp, response at 8;
    LniAllocCmdV1: LNI_ALLOC -> LniAllocResp, response at 8;
    LniFreeCmd: LNI_FREE -> ();
}
