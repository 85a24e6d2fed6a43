//! `ctl packets`: operations as they end.

use std::io::{self, Write};

use serde::Deserialize;

use super::control::Connection;
use super::error::{Doing, ServeError, say};
use super::order::Order;
use super::packet::Packet;
use super::trace::Timed;

/// Answer of a node.
#[derive(Debug, Deserialize)]
struct News {
    /// Number of earlier packets that were dropped.
    missed: u64,
    packets: Vec<Timed<Packet>>,
}

/// Prints this many operations, or until the reader is gone. The end of the node is an error.
pub(crate) fn show(
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
            say(format_args!("{} packets were not seen", news.missed));
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
