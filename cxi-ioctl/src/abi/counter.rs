//! Counting events.

use super::memory::Mminfo;
use crate::layout::{abi, commands, constants};

constants! {}

bitflags::bitflags! {
    /// The parts of [`CtWriteback::bits`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct CtWritebackBits: u64 {
        /// Number of successes.
        const CT_SUCCESS = (1 << 48) - 1;
        /// Number of failures.
        const CT_FAILURE = 0x7F << 48;
        /// Set by each write-back.
        const CT_WRITEBACK = 1 << 63;
    }
}

impl CtWriteback {
    /// Number of successes, up to 2^48 - 1.
    #[must_use]
    pub const fn success(self) -> u64 {
        self.bits & CtWritebackBits::CT_SUCCESS.bits()
    }

    /// Number of failures, up to 127.
    #[must_use]
    pub const fn failure(self) -> u8 {
        self.bits.to_le_bytes()[6] & 0x7F
    }

    /// Whether this came from a write-back.
    #[must_use]
    pub const fn written_back(self) -> bool {
        self.bits >> 63 != 0
    }
}

abi! {
    /// What the NIC writes back of a counter; bit 0 is the lowest.
    struct CtWriteback = "c_ct_writeback", 8 {
        /// Successes in bits 0 to 47, failures in bits 48 to 54, bit 63 is set by a write-back.
        bits: u64 = 0,
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_back_has_three_parts() {
        let parts = |bits| {
            let writeback = CtWriteback { bits };
            (
                writeback.success(),
                writeback.failure(),
                writeback.written_back(),
            )
        };
        assert_eq!(parts(0), (0, 0, false));
        assert_eq!(parts(u64::MAX), ((1 << 48) - 1, 127, true));
        assert_eq!(parts(1 << 63), (0, 0, true));
        assert_eq!(parts(3 << 54 | 5), (5, 64, false));
    }
}
