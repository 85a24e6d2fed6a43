//! Domains: the (VNI, PID) pairs under which targets are reached.

use crate::layout::{abi, commands, constants};

constants! {
    /// PID that requests any free one.
    PID_ANY: u32 = 511, "C_PID_ANY";
}

abi! {
    /// Reserves a run of PIDs of a VNI for an LNI, until the LNI is freed.
    ///
    /// Request of DOMAIN_RESERVE; open to everyone. libcxi: `cxil_reserve_domain`.
    ///
    /// Errors:
    /// - EINVAL: unknown LNI, count 0 or above 511, no right to the VNI
    /// - EEXIST: the PIDs are taken
    /// - ENOSPC: no such run is free
    @answered struct DomainReserveCmd = "cxi_domain_reserve_cmd", 32 {
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

    /// Allocates a domain: a VNI and a PID under which the LNI is reached.
    ///
    /// Request of DOMAIN_ALLOC; open to everyone. libcxi: `cxil_alloc_domain`.
    ///
    /// Errors:
    /// - EINVAL: unknown LNI, PID out of range
    /// - ENOENT: no enabled service has the VNI
    /// - EPERM: no service that has it admits the caller
    /// - EEXIST: the PID is taken
    /// - ENOSPC: no PID is free
    @answered struct DomainAllocCmd = "cxi_domain_alloc_cmd", 32 {
        /// LNI handle.
        lni: u32 = 16,
        /// VNI.
        vni: u32 = 20,
        /// PID, or `PID_ANY`.
        pid: u32 = 24 + 4,
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

    /// Frees a domain.
    ///
    /// Request of DOMAIN_FREE; open to everyone. libcxi: `cxil_destroy_domain`.
    ///
    /// Errors:
    /// - EINVAL: no such domain in this open file
    /// - EBUSY: a PtlTE is mapped into it
    @command struct DomainFreeCmd = "cxi_domain_free_cmd", 8 {
        /// Domain handle.
        domain: u32 = 4,
    }
}

commands! {
    DomainReserveCmd: DOMAIN_RESERVE -> DomainReserveResp,
        of (lni: u32, vni: u32, pid: u32, count: u32), response at 8;
    DomainAllocCmd: DOMAIN_ALLOC -> DomainAllocResp, of (lni: u32, vni: u32, pid: u32), response at 8;
    DomainFreeCmd: DOMAIN_FREE -> (), of (domain: u32);
}
