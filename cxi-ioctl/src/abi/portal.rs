//! Portal table entries (PtlTEs).

use crate::layout::{abi, commands, constants};

constants! {}

bitflags::bitflags! {
    /// The option bits of [`PtAllocOpts::bits`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct PtOptions: u64 {
        /// Events for matches.
        const EN_EVENT_MATCH = 1 << 0;
        /// Clear the remote offset.
        const CLR_REMOTE_OFFSET = 1 << 1;
        /// Flow control.
        const EN_FLOWCTRL = 1 << 2;
        /// Long events.
        const USE_LONG_EVENT = 1 << 3;
        /// Lossless.
        const LOSSLESS = 1 << 4;
        /// Restricted unicast on the Ethernet list.
        const EN_RESTRICTED_UNICAST_LM = 1 << 5;
        /// Logical addressing.
        const USE_LOGICAL = 1 << 6;
        /// Matching list entries.
        const IS_MATCHING = 1 << 7;
        /// Check the space of a list entry.
        const DO_SPACE_CHECK = 1 << 8;
        /// Aligned local management.
        const EN_ALIGN_LM = 1 << 9;
        /// State changes between software and hardware.
        const EN_SW_HW_ST_CHNG = 1 << 10;
        /// Ethernet (needs CAP_NET_RAW).
        const ETHERNET = 1 << 11;
        /// Signal invalid operations.
        const SIGNAL_INVALID = 1 << 12;
        /// Signal underflow.
        const SIGNAL_UNDERFLOW = 1 << 13;
        /// Signal overflow.
        const SIGNAL_OVERFLOW = 1 << 14;
        /// Signal inexact results.
        const SIGNAL_INEXACT = 1 << 15;
        /// Match on the VNI.
        const EN_MATCH_ON_VNI = 1 << 16;
    }
}

abi! {
    /// Options of a PtlTE, one bit each.
    struct PtAllocOpts = "cxi_pt_alloc_opts", 8 {
        /// One bit each, see [`PtOptions`].
        bits: u64 = 0,
    }

    /// Allocates a portal table entry.
    ///
    /// Request of PTE_ALLOC; open to everyone. libcxi: `cxil_alloc_pte`.
    ///
    /// Errors:
    /// - EINVAL: unknown LNI or event queue
    /// - EPERM: Ethernet option without CAP_NET_RAW
    /// - EBADR, ENOSPC: the service has none, or none left
    @answered struct PteAllocCmd = "cxi_pte_alloc_cmd", 32 {
        /// LNI handle.
        lni_hndl: u32 = 16,
        /// Event queue handle, 0 for none.
        evtq_hndl: u32 = 20,
        /// Options.
        opts: PtAllocOpts = 24,
    }

    /// Response of PTE_ALLOC.
    struct PteAllocResp = "cxi_pte_alloc_resp", 4 {
        /// PtlTE number.
        pte_number: u32 = 0,
    }

    /// Frees a PtlTE; the LNI keeps its number and credit for the next one.
    ///
    /// Request of PTE_FREE; open to everyone. libcxi: `cxil_destroy_pte`.
    ///
    /// Errors:
    /// - EINVAL: no such PtlTE in this open file
    /// - EBUSY: mapped into a domain
    @answered struct PteFreeCmd = "cxi_pte_free_cmd", 24 {
        /// PtlTE number.
        pte_number: u32 = 16 + 4,
    }

    /// Maps a PtlTE into a domain at an offset.
    ///
    /// Request of PTE_MAP; open to everyone. libcxi: `cxil_map_pte`.
    ///
    /// Errors:
    /// - EINVAL: unknown PtlTE or domain, of different LNIs, offset 256 or above
    @answered struct PteMapCmd = "cxi_pte_map_cmd", 32 {
        /// PtlTE number.
        pte_number: u32 = 16,
        /// Domain handle.
        domain_hndl: u32 = 20,
        /// Offset within the domain, below 256.
        pid_offset: u32 = 24,
        /// Non-zero: `pid_offset` is a multicast id and index.
        is_multicast: u8 = 28 + 3,
    }

    /// Response of PTE_MAP.
    struct PteMapResp = "cxi_pte_map_resp", 4 {
        /// Index of the mapping or PtlTE; see the command.
        pte_index: u32 = 0,
    }

    /// Removes a mapping.
    ///
    /// Request of PTE_UNMAP; open to everyone. libcxi: `cxil_unmap_pte`.
    ///
    /// Errors:
    /// - EINVAL: no such mapping in this open file
    @answered struct PteUnmapCmd = "cxi_pte_unmap_cmd", 24 {
        /// Index of the mapping or PtlTE; see the command.
        pte_index: u32 = 16 + 4,
    }

    /// Invalidates a list entry.
    ///
    /// Request of PTE_LE_INVALIDATE; open to everyone. libcxi: `cxil_invalidate_pte_le`.
    @command struct PteLeInvalidateCmd = "cxi_pte_le_invalidate_cmd", 16 {
        /// Index of the mapping or PtlTE; see the command.
        pte_index: u32 = 4,
        /// Buffer id of the list entry.
        buffer_id: u32 = 8,
        /// List: the numbers of `enum c_ptl_list`.
        list: u32 = 12,
    }

    /// Status of a PtlTE; `ule_offsets` and `ule_count` are read by the driver first.
    struct PteStatus = "cxi_pte_status", 32 {
        /// Messages dropped.
        drop_count: u32 = 0,
        /// State: the numbers of `enum c_ptlte_state`.
        state: u8 = 4 + 1,
        /// LEs reserved for the pool.
        les_reserved: u16 = 6,
        /// LEs in use in the pool.
        les_allocated: u16 = 8,
        /// Most LEs the pool may have.
        les_max: u16 = 10 + 4,
        /// Address of an array for the offsets of unexpected list entries, 0 for none; read by the driver.
        ule_offsets: u64 = 16,
        /// Room in that array; the number of unexpected list entries on return.
        ule_count: u16 = 24 + 6,
    }

    /// Returns the state of a PtlTE. The driver reads `ule_offsets` and `ule_count` from the
    /// response buffer first: use [`pte_status`](crate::pte_status).
    ///
    /// Request of PTE_STATUS; open to everyone. libcxi: `cxil_pte_status`.
    ///
    /// Errors:
    /// - EINVAL: no such PtlTE in this open file
    @answered struct PteStatusCmd = "cxi_pte_status_cmd", 24 {
        /// Index of the mapping or PtlTE; see the command.
        pte_index: u32 = 16 + 4,
    }

    /// Moves a PtlTE to software-managed matching.
    ///
    /// Request of PTE_TRANSITION_SM; open to everyone. libcxi: `cxil_pte_transition_sm`.
    @answered struct PteTransitionSmCmd = "cxi_pte_transition_sm_cmd", 24 {
        /// Index of the mapping or PtlTE; see the command.
        pte_index: u32 = 16,
        /// Messages dropped.
        drop_count: u32 = 20,
    }
}

commands! {
    PteAllocCmd: PTE_ALLOC -> PteAllocResp,
        of (lni_hndl: u32, evtq_hndl: u32, opts: PtAllocOpts), response at 8;
    PteFreeCmd: PTE_FREE -> (), of (pte_number: u32);
    PteMapCmd: PTE_MAP -> PteMapResp,
        of (pte_number: u32, domain_hndl: u32, pid_offset: u32, is_multicast: u8), response at 8;
    PteUnmapCmd: PTE_UNMAP -> (), of (pte_index: u32);
    PteLeInvalidateCmd: PTE_LE_INVALIDATE -> (), of (pte_index: u32, buffer_id: u32, list: u32);
    PteStatusCmd: PTE_STATUS -> PteStatus, response at 8, list in response at 16;
    PteTransitionSmCmd: PTE_TRANSITION_SM -> (), of (pte_index: u32, drop_count: u32);
}
