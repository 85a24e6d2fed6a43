//! Memory registration: translations of the caller's memory for the NIC.

use crate::layout::{abi, commands, constants};

constants! {
    /// No memory descriptor.
    MD_NONE: u32 = 0, "CXI_MD_NONE";
    /// No dma-buf.
    DMABUF_NONE: i32 = -1, "INVALID_DMABUF_FD", since Main2026_07;
}

bitflags::bitflags! {
    /// The bits of [`AtuMapCmd::flags`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct MapFlags: u32 {
        /// Pin the pages.
        const PIN = 1 << 0;
        /// Translate through ATS.
        const ATS = 1 << 1;
        /// The NIC may write.
        const WRITE = 1 << 2;
        /// The NIC may read.
        const READ = 1 << 3;
        /// Fault pages in.
        const FAULT = 1 << 4;
        /// Do not cache.
        const NOCACHE = 1 << 5;
        /// `va` is a user address.
        const USER_ADDR = 1 << 6;
        /// ATS passthrough.
        const ATS_PT = 1 << 7;
        /// ATS dynamic.
        const ATS_DYN = 1 << 8;
        /// Device memory (dma-buf).
        const DEVICE = 1 << 9;
        /// Not used.
        const UNUSED = 1 << 10;
        /// Allocate a memory descriptor without translating yet.
        const ALLOC_MD = 1 << 11;
        /// Prefetch the translation.
        const PREFETCH = 1 << 12;
    }
}

abi! {
    /// A window of device memory.
    struct Mminfo = "cxi_mminfo", 16 {
        /// File offset to give to mmap, opaque.
        offset: u64 = 0,
        /// Length in bytes.
        size: u64 = 8,
    }

    /// Hints for mapping memory.
    struct MdHints = "cxi_md_hints", 40 {
        /// log2 of the page size, 0 for automatic.
        page_shift: i32 = 0,
        /// log2 of the huge page size, 0 for automatic.
        huge_shift: i32 = 4,
        /// Page table group mode.
        ptg_mode: i32 = 8,
        /// Non-zero: `ptg_mode` applies.
        ptg_mode_valid: u8 = 12 + 3,
        /// dma-buf file descriptor, -1 for none.
        dmabuf_fd: i32 = 16 + 4,
        /// Offset in the dma-buf, in bytes.
        dmabuf_offset: u64 = 24,
        /// Non-zero: the dma-buf fields apply.
        dmabuf_valid: u8 = 32 + 7,
    }

    /// A memory descriptor.
    struct Md = "cxi_md", 40 {
        /// Address to use in commands.
        iova: u64 = 0,
        /// Address of the memory.
        va: u64 = 8,
        /// Length in bytes.
        len: u64 = 16,
        /// Logical address context, 0 to 7 in an RGID.
        lac: u8 = 24 + 3,
        /// log2 of the page size, 0 for automatic.
        page_shift: i32 = 28,
        /// log2 of the huge page size, 0 for automatic.
        huge_shift: i32 = 32,
        /// Handle.
        id: u32 = 36,
    }

    /// Registers memory of the caller for the NIC; takes an address context of the service if no
    /// mapping of the kind exists.
    ///
    /// Request of ATU_MAP; open to everyone. libcxi: `cxil_map`.
    ///
    /// Errors:
    /// - EINVAL: unknown LNI, length 0, unknown flags
    /// - EOVERFLOW: the range wraps (EFAULT up to 14.0)
    /// - EOPNOTSUPP: ATS where there is none
    /// - EBADR, ENOSPC: the service has no address contexts, or none left; the RGID has eight
    @answered struct AtuMapCmd = "cxi_atu_map_cmd", 88 {
        /// LNI handle.
        lni: u32 = 16 + 4,
        /// Address of the memory.
        va: u64 = 24,
        /// Length in bytes.
        len: u64 = 32,
        /// Flags, see [`MapFlags`].
        flags: u32 = 40 + 4,
        /// Hints for the mapping.
        hints: MdHints = 48,
    }

    /// Response of ATU_MAP.
    struct AtuMapResp = "cxi_atu_map_resp", 48 {
        /// Handle.
        id: u32 = 0 + 4,
        /// The memory descriptor.
        md: Md = 8,
    }

    /// Removes a registration.
    ///
    /// Request of ATU_UNMAP; open to everyone. libcxi: `cxil_unmap`.
    ///
    /// Errors:
    /// - EINVAL: no such descriptor in this open file
    /// - EBUSY: an event queue uses it
    @command struct AtuUnmapCmd = "cxi_atu_unmap_cmd", 8 {
        /// Handle.
        id: u32 = 4,
    }

    /// Changes the memory behind a descriptor that was made without memory.
    ///
    /// Request of ATU_UPDATE_MD; open to everyone. libcxi: `cxil_update_md`.
    ///
    /// Errors:
    /// - EINVAL: no such descriptor in this open file
    @command struct AtuUpdateMdCmd = "cxi_atu_update_md_cmd", 32 {
        /// Handle.
        id: u32 = 4,
        /// Address of the memory.
        va: u64 = 8,
        /// Length in bytes.
        len: u64 = 16,
        /// Flags, see [`MapFlags`].
        flags: u32 = 24 + 4,
    }
}

commands! {
    #[unchecked] AtuMapCmd: ATU_MAP -> AtuMapResp, response at 8;
    AtuUnmapCmd: ATU_UNMAP -> (), of (id: u32);
    #[unchecked] AtuUpdateMdCmd: ATU_UPDATE_MD -> ();
}
