//! A capture file: operations as lines, or as a timeline.

use std::path::Path;
use std::time::Instant;

use super::error::ServeError;
use super::packet::Packet;
use super::timeline::Timeline;
use super::trace::Trace;

/// Where operations are recorded. Clones write to the same file.
#[derive(Clone, Debug)]
pub(crate) enum Capture {
    /// One JSON object per line.
    Lines(Trace),
    /// For a viewer.
    Timeline(Timeline),
}

impl Capture {
    /// Makes the file, or empties it. Its name says which form it has.
    pub(crate) fn create(path: &Path) -> Result<Self, ServeError> {
        if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            Timeline::create(path).map(Self::Timeline)
        } else {
            Trace::create(path).map(Self::Lines)
        }
    }

    /// The same file, for one node of several.
    pub(crate) fn on_node(&self, name: &str) -> Self {
        match self {
            Self::Lines(trace) => Self::Lines(trace.on_node(name)),
            Self::Timeline(timeline) => Self::Timeline(timeline.on_node(name)),
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
        }
    }

    /// Adds that operations are missing.
    pub(crate) fn not_seen(&self, at: Instant, count: u64) {
        match self {
            Self::Lines(trace) => trace.not_seen(at, count),
            Self::Timeline(timeline) => timeline.not_seen(at, count),
        }
    }
}
