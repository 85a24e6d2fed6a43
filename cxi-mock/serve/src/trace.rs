//! Files for people and programs that record what happened, one line for each event.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::error::{Doing, ServeError};

/// A file with one JSON object per line. Clones write to the same file.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    start: Instant,
    file: Arc<Mutex<File>>,
    node: Option<String>,
}

/// Something that happened, and when.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Timed<T> {
    /// Seconds since the trace was begun.
    pub(crate) seconds: f64,
    /// The node, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<String>,
    /// Event that was noted.
    #[serde(flatten)]
    pub(crate) noted: T,
}

/// A command that was answered.
#[derive(Debug, Serialize)]
pub(crate) struct Noted {
    /// Device name.
    pub(crate) device: String,
    /// Thread that wrote the command.
    pub(crate) pid: i32,
    /// Its effective user id.
    pub(crate) uid: u32,
    /// Number of the open file.
    pub(crate) client: u32,
    /// Name of the command, or its number.
    pub(crate) command: String,
    /// Its length in bytes.
    pub(crate) length: usize,
    /// `OK`, or the errno.
    pub(crate) result: String,
    /// Time that it took.
    pub(crate) microseconds: u128,
}

impl Trace {
    /// Makes the file, or empties it.
    pub(crate) fn create(path: &Path) -> Result<Self, ServeError> {
        let file = File::create(path).doing(|| format!("write the trace {}", path.display()))?;
        Ok(Self { start: Instant::now(), file: Arc::new(Mutex::new(file)), node: None })
    }

    /// The same file, for one node of several.
    pub(crate) fn on_node(&self, name: &str) -> Self {
        Self { node: Some(name.to_owned()), ..self.clone() }
    }

    /// Adds a line. If the disk is full, the trace has gaps, and the program is not affected.
    pub(crate) fn note(&self, at: Instant, noted: &impl Serialize) {
        let timed = Timed { node: self.node.clone(), ..Timed::new(self.start, at, noted) };
        let Ok(mut line) = serde_json::to_vec(&timed) else { return };
        line.push(b'\n');
        let mut file = self.file.lock();
        let _ = file.write_all(&line);
    }

    /// Adds a line that says how much is missing.
    pub(crate) fn not_seen(&self, at: Instant, count: u64) {
        self.note(at, &json!({ "not_seen": count }));
    }
}

impl<T> Timed<T> {
    pub(crate) fn new(start: Instant, at: Instant, noted: T) -> Self {
        Self {
            seconds: (micros(at.saturating_duration_since(start))).round() / 1e6,
            node: None,
            noted,
        }
    }
}

/// Microseconds, with three decimals: more would be digits of the binary number.
pub(crate) fn micros(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e9).round() / 1e3
}

/// Adds members to an object.
pub(crate) fn merge(to: &mut Value, from: Value) {
    if let (Value::Object(to), Value::Object(from)) = (to, from) {
        to.extend(from);
    }
}
