//! Domains: a (VNI, PID) pair that targets are reached by.

use crate::layout::{abi, commands, constants};

constants! {
    /// PID that asks for any free one.
    PID_ANY: u32 = 511, "C_PID_ANY";
}

abi! {
    /// Request of DOMAIN_RESERVE.
    struct DomainReserveCmd = "cxi_domain_reserve_cmd", 32 {
        /// Opcode; `new()` fills it in.
        op: u32 = 0,
        _pad0: [u8; 4] = 4,
        /// Address of the response buffer; the transport fills it in.
        resp: u64 = 8,
        /// LNI handle.
        lni: u32 = 16,
        /// VNI.
        vni: u32 = 20,
        /// PID, or `PID_ANY`.
        pid: u32 = 24,
        /// Number of entries.
        count: u32 = 28,
    }

    /// Response of DOMAIN_RESERVE.
    struct DomainReserveResp = "cxi_domain_reserve_resp", 4 {
        /// PID, or `PID_ANY`.
        pid: u32 = 0,
    }

    /// Request of DOMAIN_ALLOC.
    struct DomainAllocCmd = "cxi_domain_alloc_cmd", 32 {
        /// Opcode; `new()` fills it in.
        op: u32 = 0,
        _pad0: [u8; 4] = 4,
        /// Address of the response buffer; the transport fills it in.
        resp: u64 = 8,
        /// LNI handle.
        lni: u32 = 16,
        /// VNI.
        vni: u32 = 20,
        /// PID, or `PID_ANY`.
        pid: u32 = 24,
        _pad1: [u8; 4] = 28,
    }

    /// Response of DOMAIN_ALLOC.
    struct DomainAllocResp = "cxi_domain_alloc_resp", 12 {
        /// Domain handle.
        domain: u32 = 0,
        /// VNI.
        vni: u32 = 4,
        /// PID, or `PID_ANY`.
        pid: u32 = 8,
    }

    /// Request of DOMAIN_FREE.
    struct DomainFreeCmd = "cxi_domain_free_cmd", 8 {
        /// Opcode; `new()` fills it in.
        op: u32 = 0,
        /// Domain handle.
        domain: u32 = 4,
    }
}

commands! {
    DomainReserveCmd: DOMAIN_RESERVE -> DomainReserveResp, response at 8;
    DomainAllocCmd: DOMAIN_ALLOC -> DomainAllocResp, response at 8;
    DomainFreeCmd: DOMAIN_FREE -> ();
}
