//! A log in a file: one JSON object per line, numbered by the pool.
//!
//! A line without its newline was being written when its process was killed or the disk was full.
//! Its change was never reported as done, so the line does not count and is cut off.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use super::{AppendError, EventLog, LogError, Record};
use crate::durable::open_regular_with;

/// How much of the log's end is read first: usually only the latest changes are needed.
const END: u64 = 1 << 14;

/// A log in a file, for processes of one machine. Each access holds the file's lock (`flock`). It keeps
/// what is before a beginning, but does not read it.
#[derive(Debug)]
pub struct FileLog {
    file: File,
    path: PathBuf,
    /// Where the last append began.
    before: u64,
    /// The number before that of the first event.
    begins_after: u64,
}

impl FileLog {
    /// Opens a log, or creates an empty one.
    ///
    /// # Errors
    /// [`LogError`]: the file cannot be opened or is not a regular file.
    pub fn open(path: &Path) -> Result<Self, LogError> {
        Self::with(path, OpenOptions::new().append(true).create(true))
    }

    /// Opens an existing log for reading.
    ///
    /// # Errors
    /// As [`FileLog::open`].
    pub fn look(path: &Path) -> Result<Self, LogError> {
        Self::with(path, &mut OpenOptions::new())
    }

    fn with(path: &Path, options: &mut OpenOptions) -> Result<Self, LogError> {
        let opened = open_regular_with(path, options.read(true), 0);
        let length = |file: File| Ok((whole_lines(&file)?, file));
        let (before, file) = opened
            .and_then(length)
            .map_err(|error| unusable(path, &error))?;
        let path = path.to_owned();
        Ok(Self {
            file,
            path,
            before,
            begins_after: 0,
        })
    }

    /// Begins after this event, if the log is empty: a pool may have changed before it got a log.
    #[must_use]
    pub fn begin_after(mut self, sequence: u64) -> Self {
        self.begins_after = sequence;
        self
    }

    /// Takes back what this has appended last. No other process may have appended since: the caller
    /// holds a lock of its own.
    pub fn undo(&self) {
        // If this fails too, the next one to open the log cuts off half a line.
        let _ = self.file.set_len(self.before);
    }

    /// The records behind a number, and at least so many, in so many bytes of the file.
    fn after(&self, after: u64, least: usize, length: u64) -> Result<Vec<Record>, LogError> {
        let name = self.path.display();
        let mut wanted = END;
        loop {
            let start = length.saturating_sub(wanted);
            let text = self.read(start, length);
            let text = text.map_err(|error| unusable(&self.path, &error))?;
            // The first line may be incomplete.
            let whole = match text.find('\n') {
                Some(end) if start > 0 => text.get(end + 1..).unwrap_or_default(),
                _ => &text,
            };
            let mut records = Vec::new();
            let mut reached = start == 0;
            for line in whole.lines().rev().filter(|line| !line.trim().is_empty()) {
                let record: Record = serde_json::from_str(line).map_err(|error| {
                    LogError(format!("{name}: not a change of a pool: {error}").into())
                })?;
                if record.event.sequence <= after && records.len() >= least {
                    reached = true;
                    break;
                }
                let begins = record.is_beginning();
                records.push(record);
                if begins {
                    reached = true;
                    break;
                }
            }
            if reached {
                records.reverse();
                return Ok(records);
            }
            wanted = wanted.saturating_mul(8);
        }
    }

    fn read(&self, start: u64, end: u64) -> io::Result<String> {
        let mut text = Vec::new();
        let mut file = &self.file;
        file.seek(SeekFrom::Start(start))?;
        file.take(end - start).read_to_end(&mut text)?;
        // A character may have begun before the start; its line is left out.
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    fn append_locked(&mut self, record: &Record) -> Result<(), AppendError> {
        let refused = |error: io::Error| {
            let path = self.path.display();
            AppendError::Failed(format!("{path}: cannot write the log: {error}").into())
        };
        let sequence = record.event.sequence;
        let length = whole_lines(&self.file).map_err(refused)?;
        // The last one has the highest epoch.
        let last = self.after(u64::MAX, 1, length);
        let last = last.map_err(|error| AppendError::Failed(error.0))?;
        let (epoch, last) = last.last().map_or((0, self.begins_after), |last| {
            (last.epoch, last.event.sequence)
        });
        if epoch > record.epoch {
            return Err(AppendError::Deposed { epoch });
        }
        if last.checked_add(1) != Some(sequence) {
            return Err(AppendError::Moved);
        }
        let mut line = serde_json::to_vec(record).map_err(|error| refused(error.into()))?;
        line.push(b'\n');
        let write = || {
            // What a killed process left of a line.
            self.file.set_len(length)?;
            (&self.file).write_all(&line)?;
            self.file.sync_data()
        };
        let written = write().map_err(refused);
        self.before = length;
        if written.is_err() {
            self.undo();
        }
        written
    }
}

impl EventLog for FileLog {
    fn load(&mut self, after: u64) -> Result<Vec<Record>, LogError> {
        let locked = || {
            self.file.lock_shared()?;
            whole_lines(&self.file)
        };
        let length = locked().map_err(|error| unusable(&self.path, &error))?;
        let records = self.after(after, 0, length);
        let _ = self.file.unlock();
        records
    }

    fn append(&mut self, record: &Record) -> Result<(), AppendError> {
        let failed = |error: io::Error| AppendError::Failed(unusable(&self.path, &error).0);
        self.file.lock().map_err(failed)?;
        let appended = self.append_locked(record);
        let _ = self.file.unlock();
        appended
    }
}

fn unusable(path: &Path, error: &io::Error) -> LogError {
    LogError(format!("{}: cannot use the log: {error}", path.display()).into())
}

/// The length of a file up to the end of its last complete line.
fn whole_lines(mut file: &File) -> io::Result<u64> {
    let mut end = file.metadata()?.len();
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
