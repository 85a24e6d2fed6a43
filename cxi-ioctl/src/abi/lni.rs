//! Logical network interfaces.

use crate::layout::{abi, commands, constants};

constants! {}

abi! {
    /// Allocates an LNI of a service: the right to allocate everything else within the service's
    /// limits.
    ///
    /// Request of LNI_ALLOC; open to everyone. libcxi: `cxil_alloc_lni`.
    ///
    /// Errors:
    /// - EINVAL: no such service, or a request in the form of another driver generation
    /// - EKEYREVOKED: the service is disabled
    /// - EPERM: the caller is not a member of the service
    /// - ENOSPC: no RGID is free
    @answered struct LniAllocCmd = "cxi_lni_alloc_cmd", 24, since Main2026_07 {
        /// Service id.
        svc_id: u32 = 16 + 4,
    }

    /// Allocates an LNI of a service: the right to allocate everything else within the service's
    /// limits.
    ///
    /// Request of LNI_ALLOC in the form of drivers up to SHS 14.0; open to everyone. libcxi:
    /// `cxil_alloc_lni`.
    ///
    /// Errors:
    /// - EINVAL: no such service, or a request in the form of another driver generation
    /// - EKEYREVOKED: the service is disabled
    /// - EPERM: the caller is not a member of the service
    /// - ENOSPC: no RGID is free
    @command struct LniAllocCmdV1 = "cxi_lni_alloc_cmd", 16, until Shs14_0_1 {
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

    /// Frees an LNI.
    ///
    /// Request of LNI_FREE; open to everyone. libcxi: `cxil_destroy_lni`.
    ///
    /// Errors:
    /// - EINVAL: no such LNI in this open file
    /// - EBUSY: something allocated from it still exists
    @command struct LniFreeCmd = "cxi_lni_free_cmd", 8 {
        /// LNI handle.
        lni: u32 = 4,
    }
}

commands! {
    LniAllocCmd: LNI_ALLOC -> LniAllocResp, of (svc_id: u32), response at 8;
    LniAllocCmdV1: LNI_ALLOC -> LniAllocResp, of (svc_id: u32), response at 8;
    LniFreeCmd: LNI_FREE -> (), of (lni: u32);
}
