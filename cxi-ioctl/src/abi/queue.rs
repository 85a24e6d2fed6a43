//! Command queues (transmit and target) and event queues.

use super::memory::Mminfo;
use crate::layout::{abi, commands, constants};

constants! {
    /// Write the read pointer back always.
    CQ_UPDATE_ALWAYS: u32 = 0, "CXI_CQ_UPDATE_ALWAYS";
    /// Write the read pointer back often, and when the queue runs empty.
    CQ_UPDATE_HIGH_FREQ_EMPTY: u32 = 1, "CXI_CQ_UPDATE_HIGH_FREQ_EMPTY";
    /// Write the read pointer back rarely, and when the queue runs empty.
    CQ_UPDATE_LOW_FREQ_EMPTY: u32 = 2, "CXI_CQ_UPDATE_LOW_FREQ_EMPTY";
    /// Write the read pointer back rarely.
    CQ_UPDATE_LOW_FREQ: u32 = 3, "CXI_CQ_UPDATE_LOW_FREQ";
    /// Command queue flag: of a user process; the driver sets it.
    CQ_USER: u32 = 1, "CXI_CQ_USER";
    /// Command queue flag: transmit queue.
    CQ_IS_TX: u32 = 2, "CXI_CQ_IS_TX";
    /// Command queue flag: transmits Ethernet frames.
    CQ_TX_ETHERNET: u32 = 4, "CXI_CQ_TX_ETHERNET";
    /// Command queue flag: may hold triggered commands.
    CQ_TX_WITH_TRIG_CMDS: u32 = 8, "CXI_CQ_TX_WITH_TRIG_CMDS";
    /// Event queue flag: of a user process; the driver sets it.
    EQ_USER: u64 = 1, "CXI_EQ_USER";
    /// Event queue flag: `queue` is a bus address.
    EQ_PASSTHROUGH: u64 = 2, "CXI_EQ_PASSTHROUGH";
    /// Event queue flag: long initiator events.
    EQ_INIT_LONG: u64 = 4, "CXI_EQ_INIT_LONG";
    /// Event queue flag: long target events.
    EQ_TGT_LONG: u64 = 8, "CXI_EQ_TGT_LONG";
    /// Event queue flag: no status updates for drops.
    EQ_DROP_STATUS_DISABLE: u64 = 16, "CXI_EQ_DROP_STATUS_DISABLE";
    /// Event queue flag: time stamps in events.
    EQ_TIMESTAMP_EVENTS: u64 = 32, "CXI_EQ_TIMESTAMP_EVENTS";
    /// Event queue flag: no event coalescing.
    EQ_EC_DISABLE: u64 = 64, "CXI_EQ_EC_DISABLE";
    /// Event queue flag: queue of the retry handler.
    EQ_REGISTER_PCT: u64 = 128, "CXI_EQ_REGISTER_PCT";
    /// Most commands a command queue can be asked for.
    CQ_COUNT_MAX: u32 = 65536, "CXI_MAX_CQ_COUNT";
}

abi! {
    /// Options of a command queue.
    struct CqAllocOpts = "cxi_cq_alloc_opts", 24 {
        /// Number of entries.
        count: u32 = 0,
        /// When the read pointer is written back, see `CQ_UPDATE_*`.
        policy: u32 = 4,
        /// Statistics counter pool.
        stat_cnt_pool: u32 = 8,
        /// Flags: `CQ_USER`, `CQ_IS_TX`, `CQ_TX_*`.
        flags: u32 = 12,
        /// Local communication profile id, 0 to 15 in an RGID.
        lcid: u32 = 16,
        /// LPE credit threshold set of a target queue, 0 to 3.
        lpe_cdt_thresh_id: u32 = 20,
    }

    /// Allocates a transmit (TXQ) or target (TGQ) command queue.
    ///
    /// Request of CQ_ALLOC; open to everyone. libcxi: `cxil_alloc_cmdq`.
    ///
    /// Errors:
    /// - EINVAL: unknown LNI or event queue, policy above 3, threshold id above 3, LCID not
    ///   allocated, triggered commands without LCID 0
    /// - E2BIG: more than 65536 commands
    /// - EPERM: Ethernet flag without CAP_NET_RAW
    /// - EBADR: the service has no queues of the kind
    /// - ENOSPC: the service has used up its queues
    @answered struct CqAllocCmd = "cxi_cq_alloc_cmd", 48 {
        /// LNI handle.
        lni: u32 = 16,
        /// Event queue handle, 0 for none.
        eq: u32 = 20,
        /// Options.
        opts: CqAllocOpts = 24,
    }

    /// Options of a command queue in the caller's memory.
    struct CqAllocOptsBuf = "cxi_cq_alloc_opts_buf", 48 {
        /// Options.
        opts: CqAllocOpts = 0,
        /// Address of the command buffer.
        buf: u64 = 24,
        /// Non-zero: the buffer is host memory.
        is_host_mem: u8 = 32 + 3,
        /// dma-buf file descriptor, -1 for none.
        dmabuf_fd: i32 = 36,
        /// Offset in the dma-buf, in bytes.
        dmabuf_offset: u64 = 40,
    }

    /// Allocates a command queue in the caller's memory. On the development branch.
    ///
    /// Request of CQ_ALLOC_BUF; open to everyone.
    ///
    /// Errors:
    /// - as CQ_ALLOC
    @answered struct CqAllocBufCmd = "cxi_cq_alloc_buf_cmd", 72 {
        /// LNI handle.
        lni: u32 = 16,
        /// Event queue handle, 0 for none.
        eq: u32 = 20,
        /// Options.
        opts: CqAllocOptsBuf = 24,
    }

    /// Response of CQ_ALLOC, CQ_ALLOC_BUF.
    struct CqAllocResp = "cxi_cq_alloc_resp", 40 {
        /// Command queue number.
        cq: u32 = 0,
        /// Number of entries.
        count: u32 = 4,
        /// Window of command slots.
        cmds: Mminfo = 8,
        /// Window of the write pointer.
        wp_addr: Mminfo = 24,
    }

    /// Frees a command queue; its credit comes back when the hardware is done with it.
    ///
    /// Request of CQ_FREE; open to everyone. libcxi: `cxil_destroy_cmdq`.
    ///
    /// Errors:
    /// - EINVAL: no such queue in this open file
    /// - EBUSY: still in use
    @command struct CqFreeCmd = "cxi_cq_free_cmd", 8 {
        /// Command queue number.
        cq: u32 = 4,
    }

    /// Returns how many commands of a queue have not been acknowledged yet.
    ///
    /// Request of CQ_ACK_COUNTER; open to everyone. libcxi: `cxil_cmdq_ack_counter`.
    ///
    /// Errors:
    /// - EINVAL: no such queue in this open file
    @answered struct CqAckCounterCmd = "cxi_cq_ack_counter_cmd", 24 {
        /// Command queue number.
        cq: u32 = 16 + 4,
    }

    /// Response of CQ_ACK_COUNTER.
    struct CqAckCounterResp = "cxi_cq_ack_counter_resp", 4 {
        /// Commands of the queue still to be acknowledged.
        ack_counter: u32 = 0,
    }

    /// Attributes of an event queue.
    struct EqAttr = "cxi_eq_attr", 48 {
        /// Address of the event buffer, page aligned.
        queue: u64 = 0,
        /// Length of the event buffer in bytes, a multiple of the page size.
        queue_len: u64 = 8,
        /// Flags, see `EQ_USER` to `EQ_REGISTER_PCT`.
        flags: u64 = 16,
        /// First fill level, in percent, that is reported.
        status_thresh_base: u32 = 24,
        /// Percent between fill levels.
        status_thresh_delta: u32 = 28,
        /// Number of fill levels reported, at most 4.
        status_thresh_count: u32 = 32,
        /// Event coalescing delay.
        ec_delay: u32 = 36,
        /// CPU that takes the interrupts.
        cpu_affinity: u32 = 40,
        /// Event slots reserved for software.
        reserved_slots: u32 = 44,
    }

    /// Allocates an event queue over memory of the caller.
    ///
    /// Request of EQ_ALLOC; open to everyone. libcxi: `cxil_alloc_evtq`.
    ///
    /// Errors:
    /// - EINVAL: unknown LNI, memory descriptor or wait object; length 0 or no multiple of the
    ///   page size; address 0, not page aligned or outside the descriptor; status thresholds;
    ///   more reserved slots than there are
    /// - EPERM: the flag of the retry handler without CAP_SYS_ADMIN
    /// - EEXIST: the retry handler has its queue
    /// - EBADR, ENOSPC: the service has none, or none left
    @answered struct EqAllocCmd = "cxi_eq_alloc_cmd", 80 {
        /// LNI handle.
        lni: u32 = 16,
        /// Memory descriptor of the event buffer, 0 for none (passthrough).
        queue_md: u32 = 20,
        /// Wait object for events, 0 for none.
        event_wait: u32 = 24,
        /// Wait object for status changes, 0 for none.
        status_wait: u32 = 28,
        /// Attributes.
        attr: EqAttr = 32,
    }

    /// Response of EQ_ALLOC.
    struct EqAllocResp = "cxi_eq_alloc_resp", 24 {
        /// Event queue handle, 0 for none.
        eq: u32 = 0 + 4,
        /// Window of registers.
        csr: Mminfo = 8,
    }

    /// Frees an event queue; the LNI keeps its number and credit for the next one.
    ///
    /// Request of EQ_FREE; open to everyone. libcxi: `cxil_destroy_evtq`.
    ///
    /// Errors:
    /// - EINVAL: no such queue in this open file
    /// - EBUSY: still in use
    @command struct EqFreeCmd = "cxi_eq_free_cmd", 8 {
        /// Event queue handle, 0 for none.
        eq: u32 = 4,
    }

    /// Starts moving an event queue to another buffer.
    ///
    /// Request of EQ_RESIZE; open to everyone. libcxi: `cxil_evtq_resize`.
    ///
    /// Errors:
    /// - EINVAL: no such queue in this open file
    @command struct EqResizeCmd = "cxi_eq_resize_cmd", 32 {
        /// Event queue handle.
        eq_hndl: u32 = 4,
        /// Address of the event buffer, page aligned.
        queue: u64 = 8,
        /// Length of the event buffer in bytes, a multiple of the page size.
        queue_len: u64 = 16,
        /// Memory descriptor of the event buffer, 0 for none (passthrough).
        queue_md: u32 = 24 + 4,
    }

    /// Completes the move of an event queue; the old buffer may then be freed.
    ///
    /// Request of EQ_RESIZE_COMPLETE; open to everyone. libcxi: `cxil_evtq_resize_complete`.
    ///
    /// Errors:
    /// - EINVAL: no such queue in this open file
    @command struct EqResizeCompleteCmd = "cxi_eq_resize_complete_cmd", 8 {
        /// Event queue handle.
        eq_hndl: u32 = 4,
    }

    /// Changes how many event slots are reserved for flow control, by a difference. Has two forms
    /// of the same length: use [`eq_adjust_reserved_fc`](crate::eq_adjust_reserved_fc).
    ///
    /// Request of EQ_ADJUST_RESERVED_FC; open to everyone. libcxi:
    /// `cxil_evtq_adjust_reserved_fc`.
    ///
    /// Errors:
    /// - EINVAL: no such queue in this open file
    @answered struct EqAdjustReservedFcCmd = "cxi_eq_adjust_reserved_fc_cmd", 24, since Main2026_07 {
        /// Event queue handle.
        eq_hndl: u32 = 16,
        /// The value; see the command.
        value: i32 = 20,
    }

    /// Changes by a difference how many event slots are kept back for flow control. Has two forms
    /// of one length: use [`eq_adjust_reserved_fc`](crate::eq_adjust_reserved_fc).
    ///
    /// Request of EQ_ADJUST_RESERVED_FC in the form of drivers up to SHS 14.0; open to everyone.
    /// libcxi: `cxil_evtq_adjust_reserved_fc`.
    ///
    /// Errors:
    /// - EINVAL: no such queue in this open file
    @command struct EqAdjustReservedFcCmdV1 = "cxi_eq_adjust_reserved_fc_cmd", 24, until Shs14_0_1 {
        /// Event queue handle.
        eq_hndl: u32 = 4,
        /// The value; see the command.
        value: i32 = 8 + 4,
        /// Address of the response buffer; the transport fills it in.
        resp: u64 = 16,
    }

    /// Response of EQ_ADJUST_RESERVED_FC.
    struct EqAdjustReservedFcResp = "cxi_eq_adjust_reserved_fc_resp", 4 {
        /// Slots reserved for flow control after the change.
        reserved_fc: i32 = 0,
    }
}

commands! {
    CqAllocCmd: CQ_ALLOC -> CqAllocResp, of (lni: u32, eq: u32, opts: CqAllocOpts), response at 8;
    #[unchecked] CqAllocBufCmd: CQ_ALLOC_BUF -> CqAllocResp,
        of (lni: u32, eq: u32, opts: CqAllocOptsBuf), response at 8;
    CqFreeCmd: CQ_FREE -> (), of (cq: u32);
    CqAckCounterCmd: CQ_ACK_COUNTER -> CqAckCounterResp, of (cq: u32), response at 8;
    #[unchecked] EqAllocCmd: EQ_ALLOC -> EqAllocResp, response at 8;
    EqFreeCmd: EQ_FREE -> (), of (eq: u32);
    #[unchecked] EqResizeCmd: EQ_RESIZE -> (), of (eq_hndl: u32, queue_md: u32);
    EqResizeCompleteCmd: EQ_RESIZE_COMPLETE -> (), of (eq_hndl: u32);
    EqAdjustReservedFcCmd: EQ_ADJUST_RESERVED_FC -> EqAdjustReservedFcResp,
        of (eq_hndl: u32, value: i32), response at 8;
    EqAdjustReservedFcCmdV1: EQ_ADJUST_RESERVED_FC -> EqAdjustReservedFcResp,
        of (eq_hndl: u32, value: i32), response at 16;
}
