//! Packets as `ctl packets` shows them.

use std::fmt;
use std::io::{self, Write};

use cxi_mock::ObservedOperation;
use serde::{Deserialize, Serialize};

use crate::control::Connection;
use crate::error::{Doing, ServeError};
use crate::order::Order;
use crate::trace::Timed;

/// An operation between two processes, and what it came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Packet {
    /// The NIC at which it ended.
    device: String,
    /// `PUT`, `GET`, `RENDEZVOUS_PUT`, `ATOMIC` or `FETCHING_ATOMIC`.
    operation: String,
    from: Source,
    to: Place,
    vni: u16,
    /// Hexadecimal: numbers of 64 bits are not safe in JSON.
    match_bits: String,
    /// Bytes asked for.
    length: u32,
    /// Bytes that were moved.
    moved: u32,
    /// The list that it matched, if it ended well.
    list: Option<String>,
    /// `OK`, or why not.
    result: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Source {
    nid: u32,
    pid: u16,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Place {
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
            to: Place {
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

/// What a node answers.
#[derive(Debug, Deserialize)]
struct News {
    /// Packets before these that were dropped.
    missed: u64,
    packets: Vec<Timed<Packet>>,
}

/// Prints this many operations, or until the reader is gone. The end of the node is an error.
pub(crate) fn show_packets(
    connection: &Connection,
    node: Option<&str>,
    count: Option<u64>,
    json: bool,
) -> Result<u8, ServeError> {
    let mut left = count.unwrap_or(u64::MAX);
    let mut out = io::stdout().lock();
    while left > 0 {
        let order = Order::Packets { count, json };
        let answer = connection.send(node, order)?;
        let news: News = serde_json::from_value(answer)
            .map_err(io::Error::from)
            .doing(|| "understand the node".to_owned())?;
        if news.missed > 0 {
            crate::say(format_args!("{} packets were not seen", news.missed));
        }
        for packet in news.packets {
            let printed = if json {
                serde_json::to_string(&packet).map_or(Ok(()), |line| writeln!(out, "{line}"))
            } else {
                writeln!(out, "{:10.6} {}", packet.seconds, packet.noted)
            };
            left -= 1;
            if printed.is_err() || left == 0 {
                return Ok(0);
            }
        }
        if out.flush().is_err() {
            return Ok(0);
        }
    }
    Ok(0)
}
