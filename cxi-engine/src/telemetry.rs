//! What is counted for telemetry.

/// Numbers that the type of an event can have.
pub(crate) const EVENT_TYPES: usize = 32;
/// Numbers that the operation of a request can have.
const OPERATIONS: usize = 16;

/// Counts since the engine was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Telemetry {
    /// Requests that asked to make earlier writes visible: `IXE_DMAWR_FLUSH_REQS`.
    pub flush_requests: u64,
    /// Restricted requests received: `IXE_RX_PTL_RESTRICTED_PKT`.
    pub restricted_packets: u64,
    /// Requests to PtlTEs that do not match: `LPE_PLEC_HITS`.
    pub fast_path_hits: u64,
    /// Answers to high rate puts: `HNI_HRP_ACK`.
    pub high_rate_acks: u64,
    /// Events written, by number of their [`EventType`](cxi_hw::EventType), without those that fill
    /// blocks: `EE_EVENT_PUT_CNTR` and the like.
    pub events: [u64; EVENT_TYPES],
    /// Requests that found a PtlTE, by number of their [`DmaOp`](cxi_hw::DmaOp): `LPE_PUT_CMDS` and
    /// its like.
    pub commands: [u64; OPERATIONS],
    /// Requests on a VNI that no domain receives: `RMU_PTL_INVLD_VNI_CNTR`.
    pub unknown_vnis: u64,
    /// Requests to a PID or portal index without a PtlTE: `RMU_PTL_NO_PTLTE_CNTR`.
    pub unknown_portals: u64,
    /// Requests received.
    pub requests: u64,
    /// Requests refused.
    pub refused: u64,
}
