//! The log of a pool's changes: one JSON object per line, numbered by the pool.
//!
//! A line without its newline was being written when its `cxi` was killed or the disk was full. Its
//! change was never reported as done, so the line does not count and is cut off.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use cxi_job::pool::Event;
use nix::libc::O_NONBLOCK;

use crate::exit::{Exit, Failure};
use crate::input;

/// Several million changes.
const LONGEST: u64 = 1 << 30;
/// How much of the log's end is read first: usually only the latest change is needed.
const END: u64 = 1 << 14;

/// A log to which changes are appended, under the lock of its pool.
#[derive(Debug)]
pub(super) struct Log {
    file: File,
    path: PathBuf,
    /// Its length, without an incomplete last line.
    length: u64,
}

impl Log {
    /// Opens a log, or creates an empty one.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        Self::with(path, OpenOptions::new().append(true).create(true))
    }

    /// Opens an existing log for reading.
    pub(super) fn look(path: &Path) -> Result<Self, Failure> {
        Self::with(path, &mut OpenOptions::new())
    }

    fn with(path: &Path, options: &mut OpenOptions) -> Result<Self, Failure> {
        let mut open = || {
            // Opening a pipe would wait for its other end.
            let file = options.read(true).custom_flags(O_NONBLOCK).open(path)?;
            let length = whole_lines(&file)?;
            Ok((file, length))
        };
        let (file, length) = open().map_err(|error| unusable(path, &error))?;
        let path = path.to_owned();
        Ok(Self { file, path, length })
    }

    /// The changes after this number.
    pub(super) fn after(&self, sequence: u64) -> Result<Vec<Event>, Failure> {
        let name = self.path.display().to_string();
        let mut wanted = END;
        loop {
            let start = self.length.saturating_sub(wanted);
            let text = self
                .read(start)
                .map_err(|error| unusable(&self.path, &error))?;
            // The first line may be incomplete.
            let whole = match text.find('\n') {
                Some(end) if start > 0 => text.get(end + 1..).unwrap_or_default(),
                _ => &text,
            };
            let mut events = Vec::new();
            for line in whole.lines().rev().filter(|line| !line.trim().is_empty()) {
                let event = event(line).map_err(|error| {
                    Failure::bad_input(format!("{name}: not a change of a pool: {error}"))
                })?;
                if event.sequence <= sequence {
                    events.reverse();
                    return Ok(events);
                }
                events.push(event);
            }
            if start == 0 {
                events.reverse();
                return Ok(events);
            }
            wanted = wanted.saturating_mul(8);
        }
    }

    fn read(&self, start: u64) -> io::Result<String> {
        let mut text = Vec::new();
        let mut file = &self.file;
        file.seek(SeekFrom::Start(start))?;
        file.take(self.length - start).read_to_end(&mut text)?;
        // The start may be in the middle of a character; its line is skipped.
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Appends a change, and returns only when it is on disk. On failure the log is unchanged.
    pub(super) fn append(&mut self, event: &Event) -> Result<(), Failure> {
        let mut line = serde_json::to_vec(event).map_err(|error| self.refused(&error.into()))?;
        line.push(b'\n');
        let write = || {
            // What a killed command left of a line.
            self.file.set_len(self.length)?;
            (&self.file).write_all(&line)?;
            self.file.sync_data()
        };
        if let Err(error) = write() {
            self.undo();
            return Err(self.refused(&error));
        }
        Ok(())
    }

    /// Removes what was appended.
    pub(super) fn undo(&self) {
        // If this fails too, the next command to open the log cuts off the incomplete line.
        let _ = self.file.set_len(self.length);
    }

    fn refused(&self, error: &io::Error) -> Failure {
        let path = self.path.display();
        Failure::new(
            Exit::Failed,
            format!("{path}: cannot write the log: {error}"),
        )
        .hint("The pool is as it was before.")
    }
}

fn unusable(path: &Path, error: &io::Error) -> Failure {
    Failure::bad_input(format!("{}: cannot use the log: {error}", path.display()))
}

/// The length of a file up to the end of its last complete line.
fn whole_lines(mut file: &File) -> io::Result<u64> {
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("expected a regular file"));
    }
    let mut end = metadata.len();
    let mut block = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(END);
        block.clear();
        file.seek(SeekFrom::Start(start))?;
        file.take(end - start).read_to_end(&mut block)?;
        if let Some(last) = block.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + last as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// Reads a whole log, or standard input for `-`.
pub(super) fn read(path: &Path) -> Result<Vec<Event>, Failure> {
    let input::Input { name, text } = input::read(path, "a log", LONGEST)?;
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
