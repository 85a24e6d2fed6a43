//! Wait objects: sleeping until an event queue has something.

use crate::layout::{abi, commands, constants};

constants! {
    /// No wait object.
    WAIT_NONE: u32 = 0, "CXI_WAIT_NONE";
}

abi! {
    /// Request of WAIT_ALLOC.
    struct WaitAllocCmd = "cxi_wait_alloc_cmd", 24 {
        /// Opcode; `new()` fills it in.
        op: u32 = 0,
        _pad0: [u8; 4] = 4,
        /// Address of the response buffer; the transport fills it in.
        resp: u64 = 8,
        /// LNI handle.
        lni: u32 = 16,
        _pad1: [u8; 4] = 20,
    }

    /// Response of WAIT_ALLOC.
    struct WaitAllocResp = "cxi_wait_alloc_resp", 8 {
        /// Client number: folder `clients/<client_id>` in sysfs.
        client_id: u32 = 0,
        /// Wait object number: folder `wait/<wait>` in sysfs.
        wait: u32 = 4,
    }

    /// Request of WAIT_FREE.
    struct WaitFreeCmd = "cxi_wait_free_cmd", 24 {
        /// Opcode; `new()` fills it in.
        op: u32 = 0,
        _pad0: [u8; 4] = 4,
        /// Address of the response buffer; the transport fills it in.
        resp: u64 = 8,
        /// Wait object number: folder `wait/<wait>` in sysfs.
        wait: u32 = 16,
        _pad1: [u8; 4] = 20,
    }
}

commands! {
    WaitAllocCmd: WAIT_ALLOC -> WaitAllocResp, response at 8;
    WaitFreeCmd: WAIT_FREE -> ();
}
