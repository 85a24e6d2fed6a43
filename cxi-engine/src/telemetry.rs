//! What is counted for telemetry.

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
    /// Requests received.
    pub requests: u64,
    /// Requests refused.
    pub refused: u64,
}
