//! Operations as `ctl packets` shows and captures record them.

use std::fmt;
use std::time::Instant;

use cxi_mock::serve::ObservedOperation;
use serde::{Deserialize, Serialize};

use super::endpoints::Endpoints;
use super::trace::micros;

/// An operation between two processes, and how it ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Packet {
    /// The NIC at which it ended.
    pub(crate) device: String,
    /// `PUT`, `GET`, `RENDEZVOUS_PUT`, `ATOMIC` or `FETCHING_ATOMIC`.
    pub(crate) operation: String,
    pub(crate) from: Endpoint,
    pub(crate) to: Destination,
    vni: u16,
    /// Hexadecimal: numbers of 64 bits are not safe in JSON.
    match_bits: String,
    /// Number of bytes that were requested.
    pub(crate) length: u32,
    /// Number of bytes that were moved.
    moved: u32,
    /// The list that it matched, if it succeeded.
    list: Option<String>,
    /// `OK`, or the error.
    pub(crate) result: String,
    /// From the initiator's command to the end, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) microseconds: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Endpoint {
    pub(crate) nid: u32,
    pid: u16,
    /// Name and number of the process that receives there, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    process: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Destination {
    #[serde(flatten)]
    pub(crate) endpoint: Endpoint,
    portal_index: u16,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(process) = &self.process {
            write!(f, "{process}, ")?;
        }
        write!(f, "PID {}", self.pid)
    }
}

impl Packet {
    pub(crate) fn new(
        device: &str,
        operation: &ObservedOperation,
        ended: Instant,
        endpoints: &Endpoints,
    ) -> Self {
        let endpoint =
            |(nid, pid)| Endpoint { nid, pid, process: endpoints.process(nid, operation.vni, pid) };
        let (nid, pid, portal_index) = operation.to;
        let started = operation.started;
        let result = operation.code.to_string();
        Self {
            device: device.to_owned(),
            operation: operation.op.to_string(),
            from: endpoint(operation.from),
            to: Destination { endpoint: endpoint((nid, pid)), portal_index },
            vni: operation.vni,
            match_bits: format!("{:#x}", operation.match_bits),
            length: operation.length,
            moved: operation.moved,
            list: (result == "OK").then(|| operation.list.to_string()),
            result,
            microseconds: started.map(|at| micros(ended.saturating_duration_since(at))),
        }
    }
}

impl fmt::Display for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { device, operation, from, to, vni, match_bits, length, moved, result, .. } = self;
        write!(
            f,
            "{device} VNI {vni} {operation} {:#x}/{} -> {:#x}/{}:{} match {match_bits}, \
             {moved} of {length} bytes: {result}",
            from.nid, from.pid, to.endpoint.nid, to.endpoint.pid, to.portal_index
        )
    }
}
