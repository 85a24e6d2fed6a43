//! A timeline of operations in the trace event format of Chrome, which Perfetto and other viewers
//! open: a process for each NIC, below it tracks for each process that uses it.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::capture::nic_name;
use super::error::{Doing, ServeError};
use super::packet::{Endpoint, Packet};
use super::trace::micros;

/// Length for which the arrival of an operation is drawn, in microseconds: it takes no time, and a
/// viewer shows arrows only between bars.
const ARRIVAL: f64 = 1.0;
/// The first number of a track: it must not be the number of a process, which is a NIC address of 20
/// bits. Viewers read 32 bits.
const FIRST_TRACK: u32 = 1 << 20;

/// A file with a timeline. Clones write to the same file.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    start: Instant,
    node: Option<String>,
    drawing: Arc<Mutex<Drawing>>,
}

#[derive(Debug)]
struct Drawing {
    file: File,
    /// Position of the next event: before the bracket that ends the list, so that the file is
    /// complete at any time, even if this process is killed.
    end: u64,
    /// The tracks of each process on each NIC.
    tracks: HashMap<(u32, String), Vec<Track>>,
    next_track: u32,
    next_arrow: u64,
}

/// Bars on a track must not overlap, so operations that do are on several tracks.
#[derive(Debug)]
struct Track {
    number: u32,
    free_from: f64,
}

impl Timeline {
    /// Makes the file, or empties it.
    pub(crate) fn create(path: &Path) -> Result<Self, ServeError> {
        let doing = || format!("write the timeline {}", path.display());
        let file = File::create(path).doing(doing)?;
        file.write_all_at(b"[\n]\n", 0).doing(doing)?;
        Ok(Self {
            start: Instant::now(),
            node: None,
            drawing: Arc::new(Mutex::new(Drawing {
                file,
                end: 1,
                tracks: HashMap::new(),
                next_track: FIRST_TRACK,
                next_arrow: 1,
            })),
        })
    }

    /// The same file, for one node of several.
    pub(crate) fn on_node(&self, name: &str) -> Self {
        Self { node: Some(name.to_owned()), ..self.clone() }
    }

    /// Names a NIC.
    pub(crate) fn nic(&self, nid: u32, device: &str) {
        let name = nic_name(self.node.as_deref(), device);
        self.drawing.lock().write(&[json!({
            "ph": "M", "name": "process_name", "pid": nid, "args": {"name": name},
        })]);
    }

    /// Draws an operation that ended at this time, and an arrow to where it arrived.
    pub(crate) fn operation(&self, at: Instant, packet: &Packet) {
        let ended = at.saturating_duration_since(self.start);
        let took = Duration::from_secs_f64(packet.microseconds.unwrap_or_default() / 1e6);
        let (start, end) = (micros(ended.saturating_sub(took)), micros(ended));
        let (duration, bytes) = (micros(took.min(ended)), packet.length);
        let mut name = format!("{} {bytes} bytes", packet.operation);
        let arrived = packet.result == "OK";
        if !arrived {
            name = format!("{name}: {}", packet.result);
        }
        let mut drawing = self.drawing.lock();
        let from = drawing.track(&packet.from, start, end);
        let mut events = vec![json!({
            "ph": "X", "name": name, "pid": packet.from.nid, "tid": from, "ts": start,
            "dur": duration, "args": packet,
        })];
        if arrived {
            let to = drawing.track(&packet.to.endpoint, end, end + ARRIVAL);
            let (nid, id) = (packet.to.endpoint.nid, drawing.next_arrow);
            drawing.next_arrow += 1;
            events.extend([
                json!({
                    "ph": "X", "name": format!("from {:#x}", packet.from.nid), "pid": nid,
                    "tid": to, "ts": end, "dur": ARRIVAL,
                }),
                json!({
                    "ph": "s", "name": "arrives", "cat": "packet", "id": id,
                    "pid": packet.from.nid, "tid": from, "ts": start,
                }),
                json!({
                    "ph": "f", "bp": "e", "name": "arrives", "cat": "packet", "id": id,
                    "pid": nid, "tid": to, "ts": end,
                }),
            ]);
        }
        drawing.write(&events);
    }

    /// Marks a gap.
    pub(crate) fn not_seen(&self, at: Instant, count: u64) {
        self.drawing.lock().write(&[json!({
            "ph": "i", "s": "g", "name": format!("{count} operations were not seen"),
            "pid": 0, "tid": 0, "ts": micros(at.saturating_duration_since(self.start)),
        })]);
    }
}

impl Drawing {
    /// A track of a process that is free from the one time on, and is taken up to the other.
    fn track(&mut self, process: &Endpoint, from: f64, to: f64) -> u32 {
        let name = process.to_string();
        let tracks = self.tracks.entry((process.nid, name.clone())).or_default();
        if let Some(track) = tracks.iter_mut().find(|track| track.free_from <= from) {
            track.free_from = to;
            return track.number;
        }
        let number = self.next_track;
        self.next_track += 1;
        tracks.push(Track { number, free_from: to });
        self.write(&[json!({
            "ph": "M", "name": "thread_name", "pid": process.nid, "tid": number,
            "args": {"name": name},
        })]);
        number
    }

    /// Adds events. If the disk is full, some are missing, and the program is not affected.
    fn write(&mut self, events: &[Value]) {
        let first = if self.end == 1 { "\n" } else { ",\n" };
        let lines: Vec<_> = events.iter().map(Value::to_string).collect();
        let text = first.to_owned() + &lines.join(",\n");
        let added = text.len() as u64;
        if self.file.write_all_at((text + "\n]\n").as_bytes(), self.end).is_ok() {
            self.end += added;
        }
    }
}
