//! A capture file: operations as lines, as a timeline, or as packets.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Instant;

use super::error::ServeError;
use super::packet::Packet;
use super::pcapng::Pcapng;
use super::timeline::Timeline;
use super::trace::Trace;

/// Destination of recorded operations. Clones write to the same file.
#[derive(Clone, Debug)]
pub(crate) enum Capture {
    /// One JSON object per line.
    Lines(Trace),
    /// For Perfetto.
    Timeline(Timeline),
    /// For Wireshark.
    Packets(Pcapng),
}

/// The name of a NIC of a node, or of the only node.
pub(crate) fn nic_name(node: Option<&str>, device: &str) -> String {
    node.map_or_else(|| device.to_owned(), |node| format!("{node} {device}"))
}

impl Capture {
    /// Makes the file, or empties it. Its name says which form it has.
    pub(crate) fn create(path: &Path) -> Result<Self, ServeError> {
        match path.extension().and_then(OsStr::to_str) {
            Some("json") => Timeline::create(path).map(Self::Timeline),
            Some("pcapng") => Pcapng::create(path).map(Self::Packets),
            _ => Trace::create(path).map(Self::Lines),
        }
    }

    /// The same file, for one node of several.
    pub(crate) fn on_node(&self, name: &str) -> Self {
        match self {
            Self::Lines(trace) => Self::Lines(trace.on_node(name)),
            Self::Timeline(timeline) => Self::Timeline(timeline.on_node(name)),
            Self::Packets(packets) => Self::Packets(packets.on_node(name)),
        }
    }

    /// Names a NIC of this node.
    pub(crate) fn nic(&self, nid: u32, device: &str) {
        if let Self::Timeline(timeline) = self {
            timeline.nic(nid, device);
        }
    }

    /// Adds an operation that ended at this time.
    pub(crate) fn operation(&self, at: Instant, packet: &Packet) {
        match self {
            Self::Lines(trace) => trace.note(at, packet),
            Self::Timeline(timeline) => timeline.operation(at, packet),
            Self::Packets(packets) => packets.operation(at, packet),
        }
    }

    /// Adds that operations are missing.
    pub(crate) fn not_seen(&self, at: Instant, count: u64) {
        match self {
            Self::Lines(trace) => trace.not_seen(at, count),
            Self::Timeline(timeline) => timeline.not_seen(at, count),
            Self::Packets(packets) => packets.not_seen(at, count),
        }
    }
}
