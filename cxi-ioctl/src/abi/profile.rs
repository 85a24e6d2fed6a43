//! Communication profiles: the right to send on a VNI with a traffic class.

use crate::layout::{abi, commands, constants};

constants! {
    /// Traffic class: dedicated access.
    TC_DEDICATED_ACCESS: u32 = 0, "CXI_TC_DEDICATED_ACCESS";
    /// Traffic class: low latency.
    TC_LOW_LATENCY: u32 = 1, "CXI_TC_LOW_LATENCY";
    /// Traffic class: bulk data.
    TC_BULK_DATA: u32 = 2, "CXI_TC_BULK_DATA";
    /// Traffic class: best effort.
    TC_BEST_EFFORT: u32 = 3, "CXI_TC_BEST_EFFORT";
    /// Traffic class: Ethernet.
    TC_ETH: u32 = 4, "CXI_TC_ETH";
    /// Traffic class type: default.
    TC_TYPE_DEFAULT: u32 = 0, "CXI_TC_TYPE_DEFAULT";
    /// Traffic class type: high rate puts.
    TC_TYPE_HRP: u32 = 1, "CXI_TC_TYPE_HRP";
    /// Traffic class type: restricted.
    TC_TYPE_RESTRICTED: u32 = 2, "CXI_TC_TYPE_RESTRICTED";
    /// Traffic class type: collective leaf.
    TC_TYPE_COLL_LEAF: u32 = 3, "CXI_TC_TYPE_COLL_LEAF";
    /// Only LCID 0, which triggered commands need.
    LCID_TRIG: u32 = 0, "TRIG_LCID", since Shs13_1;
    /// Any LCID but 0.
    LCID_NON_TRIG: u32 = 1, "NON_TRIG_LCID", since Shs13_1;
    /// Any LCID.
    LCID_ANY: u32 = 2, "ANY_LCID", since Shs13_1;
    /// Number of traffic classes a service can name.
    TC_COUNT: usize = 5, "CXI_TC_MAX";
    /// Number of traffic class types.
    TC_TYPE_COUNT: u32 = 4, "CXI_TC_TYPE_MAX";
    /// Traffic class: Ethernet, first priority code point.
    TC_ETH_TC1: u32 = 5, "CXI_ETH_TC1";
    /// Traffic class: Ethernet, shared.
    TC_ETH_SHARED: u32 = 6, "CXI_ETH_SHARED";
    /// Traffic class: Ethernet, second priority code point.
    TC_ETH_TC2: u32 = 7, "CXI_ETH_TC2";
}

abi! {
    /// Allocates a communication profile: the right to send on a VNI with a traffic class.
    ///
    /// Request of CP_ALLOC; open to everyone. libcxi: `cxil_alloc_cp`.
    ///
    /// Errors:
    /// - EINVAL: unknown LNI, no VNI, a traffic class and type that do not exist or that the
    ///   service does not have
    /// - ENOENT: no enabled service has the VNI
    /// - EPERM: no service that has it admits the caller; an Ethernet class without CAP_NET_RAW
    /// - ENOSPC: no LCID or communication profile is free
    @answered struct CpAllocCmd = "cxi_cp_alloc_cmd", 32 {
        /// LNI handle.
        lni: u32 = 16,
        /// VNI.
        vni: u32 = 20,
        /// Traffic class, see `TC_*`.
        tc: u32 = 24,
        /// Traffic class type, see `TC_TYPE_*`.
        tc_type: u32 = 28,
    }

    /// Allocates a communication profile with a choice of LCID: triggered commands need LCID 0.
    /// From SHS 13.1.
    ///
    /// Request of TRIG_CP_ALLOC; open to everyone. libcxi: `cxil_alloc_trig_cp`.
    ///
    /// Errors:
    /// - as CP_ALLOC
    /// - ENOSPC also: the LCID asked for is taken
    @answered struct TrigCpAllocCmd = "cxi_trig_cp_alloc_cmd", 40 {
        /// LNI handle.
        lni: u32 = 16,
        /// VNI.
        vni: u32 = 20,
        /// Traffic class, see `TC_*`.
        tc: u32 = 24,
        /// Traffic class type, see `TC_TYPE_*`.
        tc_type: u32 = 28,
        /// Kind of LCID that is acceptable, see `LCID_*`.
        cp_type: u32 = 32 + 4,
    }

    /// Response of CP_ALLOC, TRIG_CP_ALLOC.
    struct CpAllocResp = "cxi_cp_alloc_resp", 8 {
        /// Handle of the communication profile, per open file.
        cp_hndl: u32 = 0,
        /// Local communication profile id, 0 to 15 in an RGID.
        lcid: u32 = 4,
    }

    /// Frees a communication profile.
    ///
    /// Request of CP_FREE; open to everyone. libcxi: `cxil_destroy_cp`.
    ///
    /// Errors:
    /// - EINVAL: no such profile in this open file
    /// - EBUSY: a command queue uses it
    @command struct CpFreeCmd = "cxi_cp_free_cmd", 8 {
        /// Handle of the communication profile, per open file.
        cp_hndl: u32 = 4,
    }

    /// Changes the VNI of a communication profile of a service with exclusive profiles. From SHS
    /// 13.1.
    ///
    /// Request of CP_MODIFY; open to everyone. libcxi: `cxil_modify_cp`.
    ///
    /// Errors:
    /// - EINVAL: no such profile, the service has no exclusive profiles, no right to the VNI
    @command struct CpModifyCmd = "cxi_cp_modify_cmd", 12 {
        /// Handle of the communication profile, per open file.
        cp_hndl: u32 = 4,
        /// VNI.
        vni: u32 = 8,
    }
}

commands! {
    CpAllocCmd: CP_ALLOC -> CpAllocResp,
        of (lni: u32, vni: u32, tc: u32, tc_type: u32), response at 8;
    TrigCpAllocCmd: TRIG_CP_ALLOC -> CpAllocResp,
        of (lni: u32, vni: u32, tc: u32, tc_type: u32, cp_type: u32), response at 8;
    CpFreeCmd: CP_FREE -> (), of (cp_hndl: u32);
    CpModifyCmd: CP_MODIFY -> (), of (cp_hndl: u32, vni: u32);
}
