//! Counting events.

use super::memory::Mminfo;
use crate::layout::{abi, commands, constants};

constants! {}

abi! {
    /// Allocates a counting event.
    ///
    /// Request of CT_ALLOC; open to everyone. libcxi: `cxil_alloc_ct`.
    ///
    /// Errors:
    /// - EINVAL: unknown LNI, write-back address not 8-byte aligned
    /// - EBADR, ENOSPC: the service has none, or none left
    @answered struct CtAllocCmd = "cxi_ct_alloc_cmd", 32 {
        /// LNI handle.
        lni: u32 = 16 + 4,
        /// Address of the counter write-back, 8-byte aligned, 0 for none.
        wb: u64 = 24,
    }

    /// Response of CT_ALLOC.
    struct CtAllocResp = "cxi_ct_alloc_resp", 24 {
        /// Counter number.
        ctn: u32 = 0 + 4,
        /// Window of the counter doorbell.
        doorbell: Mminfo = 8,
    }

    /// Frees a counting event; its credit comes back when the LNI is freed.
    ///
    /// Request of CT_FREE; open to everyone. libcxi: `cxil_destroy_ct`.
    ///
    /// Errors:
    /// - EINVAL: no such counter in this open file
    /// - EBUSY: still in use
    @command struct CtFreeCmd = "cxi_ct_free_cmd", 8 {
        /// Counter number.
        ctn: u32 = 4,
    }

    /// Changes where a counter is written back to.
    ///
    /// Request of CT_WB_UPDATE; open to everyone. libcxi: `cxil_ct_wb_update`.
    ///
    /// Errors:
    /// - EINVAL: no such counter, address not 8-byte aligned
    @command struct CtWbUpdateCmd = "cxi_ct_wb_update_cmd", 16 {
        /// Counter number.
        ctn: u32 = 4,
        /// Address of the counter write-back, 8-byte aligned, 0 for none.
        wb: u64 = 8,
    }
}

commands! {
    #[unchecked] CtAllocCmd: CT_ALLOC -> CtAllocResp, of (lni: u32), response at 8;
    CtFreeCmd: CT_FREE -> (), of (ctn: u32);
    #[unchecked] CtWbUpdateCmd: CT_WB_UPDATE -> (), of (ctn: u32);
}
