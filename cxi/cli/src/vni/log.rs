//! The log of a pool's changes: one JSON object per line, numbered by the pool.

use std::path::Path;

use cxi_job::pool::Event;
use cxi_job::pool::log::{AppendError, EventLog as _, FileLog, LogError, Record};

use crate::exit::{Exit, Failure};
use crate::input;

/// Several million changes.
const LONGEST: u64 = 1 << 30;

/// Opens the log of a pool that has so many changes, or creates an empty one.
pub(super) fn open(path: &Path, changes: u64) -> Result<FileLog, Failure> {
    let log = FileLog::open(path).map_err(|error| unusable(&error))?;
    Ok(log.begin_after(changes))
}

/// Opens an existing log for reading.
pub(super) fn look(path: &Path) -> Result<FileLog, Failure> {
    FileLog::look(path).map_err(|error| unusable(&error))
}

/// The changes after this number.
pub(super) fn after(log: &mut FileLog, sequence: u64) -> Result<Vec<Event>, Failure> {
    let records = log.load(sequence).map_err(|error| unusable(&error))?;
    Ok(records.into_iter().map(|record| record.event).collect())
}

/// Appends a change, and returns only when it is on disk. On failure the log is unchanged. The lock
/// of the pool makes sure that nobody else writes.
pub(super) fn append(log: &mut FileLog, event: &Event) -> Result<(), Failure> {
    let record = Record {
        epoch: 0,
        writer: String::new(),
        event: event.clone(),
    };
    let sequence = event.sequence;
    log.append(&record).map_err(|error| match error {
        AppendError::Failed(error) => {
            Failure::new(Exit::Failed, error.to_string()).hint("The pool is as it was before.")
        }
        AppendError::Moved => Failure::bad_input(format!(
            "change {sequence} of the pool does not follow the last one in its log"
        ))
        .hint("Is it the log of another pool, or was the pool changed without it? Name a new log with --log."),
        error => Failure::new(Exit::Failed, error.to_string())
            .hint("Controllers of a scheduler lead this log: change the pool through them."),
    })
}

fn unusable(error: &LogError) -> Failure {
    Failure::bad_input(error.0.to_string())
}

/// Reads a whole log, or standard input for `-`.
pub(super) fn read(path: &Path) -> Result<Vec<Event>, Failure> {
    let input::Input { name, text } = input::read(path, LONGEST)?;
    parse(&name, &text)
}

pub(crate) fn parse(name: &str, text: &str) -> Result<Vec<Event>, Failure> {
    let whole = text.rfind('\n').and_then(|end| text.get(..end));
    let lines = whole.unwrap_or_default().lines().enumerate();
    lines
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(index, line)| {
            event(line).map_err(|error| {
                let number = index + 1;
                Failure::bad_input(format!(
                    "{name}: line {number}: not a change of a pool: {error}"
                ))
            })
        })
        .collect()
}

fn event(line: &str) -> serde_json::Result<Event> {
    serde_json::from_str(line)
}
