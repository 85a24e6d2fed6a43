//! Wait objects: sleeping until an event queue reports something.

use crate::layout::{abi, commands, constants};

constants! {
    /// No wait object.
    WAIT_NONE: u32 = 0, "CXI_WAIT_NONE";
}

abi! {
    /// Allocates a wait object: a file in sysfs to poll for events.
    ///
    /// Request of WAIT_ALLOC; open to everyone. libcxi: `cxil_alloc_wait_obj`.
    ///
    /// Errors:
    /// - EINVAL: unknown LNI
    @answered struct WaitAllocCmd = "cxi_wait_alloc_cmd", 24 {
        /// LNI handle.
        lni: u32 = 16 + 4,
    }

    /// Response of WAIT_ALLOC.
    struct WaitAllocResp = "cxi_wait_alloc_resp", 8 {
        /// Client number: directory `clients/<client_id>` in sysfs.
        client_id: u32 = 0,
        /// Wait object number: directory `wait/<wait>` in sysfs.
        wait: u32 = 4,
    }

    /// Frees a wait object.
    ///
    /// Request of WAIT_FREE; open to everyone. libcxi: `cxil_destroy_wait_obj`.
    ///
    /// Errors:
    /// - EINVAL: no such object in this open file
    /// - EBUSY: an event queue uses it
    @answered struct WaitFreeCmd = "cxi_wait_free_cmd", 24 {
        /// Wait object number: directory `wait/<wait>` in sysfs.
        wait: u32 = 16 + 4,
    }
}

commands! {
    WaitAllocCmd: WAIT_ALLOC -> WaitAllocResp, of (lni: u32), response at 8;
    WaitFreeCmd: WAIT_FREE -> (), of (wait: u32);
}
