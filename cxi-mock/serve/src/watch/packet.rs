//! Packets as `ctl packets` shows them.

use std::fmt;

use cxi_mock::ObservedOperation;
use serde::{Deserialize, Serialize};

/// An operation between two processes, and how it ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Packet {
    /// The NIC at which it ended.
    device: String,
    /// `PUT`, `GET`, `RENDEZVOUS_PUT`, `ATOMIC` or `FETCHING_ATOMIC`.
    operation: String,
    from: Source,
    to: Destination,
    vni: u16,
    /// Hexadecimal: numbers of 64 bits are not safe in JSON.
    match_bits: String,
    /// How many bytes were requested.
    length: u32,
    /// How many bytes were moved.
    moved: u32,
    /// The list that it matched, if it succeeded.
    list: Option<String>,
    /// `OK`, or the error.
    result: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Source {
    nid: u32,
    pid: u16,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Destination {
    nid: u32,
    pid: u16,
    portal_index: u16,
}

impl Packet {
    pub(super) fn new(device: &str, operation: &ObservedOperation) -> Self {
        let (nid, pid) = operation.from;
        let from = Source { nid, pid };
        let (nid, pid, portal_index) = operation.to;
        let result = operation.code.to_string();
        Self {
            device: device.to_owned(),
            operation: operation.op.to_string(),
            from,
            to: Destination {
                nid,
                pid,
                portal_index,
            },
            vni: operation.vni,
            match_bits: format!("{:#x}", operation.match_bits),
            length: operation.length,
            moved: operation.moved,
            list: (result == "OK").then(|| operation.list.to_string()),
            result,
        }
    }
}

impl fmt::Display for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            device,
            operation,
            from,
            to,
            vni,
            match_bits,
            length,
            moved,
            result,
            list: _,
        } = self;
        write!(
            f,
            "{device} VNI {vni} {operation} {:#x}/{} -> {:#x}/{}:{} match {match_bits}, \
             {moved} of {length} bytes: {result}",
            from.nid, from.pid, to.nid, to.pid, to.portal_index
        )
    }
}
