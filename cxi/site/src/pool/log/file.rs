//! A pool in a file: a log with one JSON object per line, numbered by the pool.
//!
//! A line without its newline was being written when its process was killed or the disk was full.
//! Its change was never reported as done, so the line does not count and is cut off.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::{AppendError, EventLog, LogError, Record};
use crate::durable::{
    self, FileLock, LockError, LockGuard, Owner, WaitReport, open_own, open_regular, target_of,
};

/// Number of bytes at the log's end that are read first: usually only the latest changes are
/// needed.
const END: u64 = 1 << 14;

/// A log in a file, for processes of one machine. Writers lock the file `PATH.lock`, and take turns
/// in the order of arrival.
///
/// A change is appended as one line. A record that [is a beginning](Record::is_beginning) replaces
/// the file as a whole, so that it does not grow without bound.
#[derive(Debug)]
pub struct FileLog {
    path: PathBuf,
    lock: FileLock,
    wait: Duration,
    deadline: Option<Instant>,
    held: Option<LockGuard>,
}

impl FileLog {
    /// The log in a file, which need not exist: the first record creates it. A symbolic link of root or
    /// this user is followed; another one is an error of each append.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        // The target of a link is replaced, not the link.
        let path = target_of(path);
        Self {
            lock: FileLock::of(&path),
            path,
            wait: Duration::from_secs(60),
            deadline: None,
            held: None,
        }
    }

    /// Sets how long an append waits for other writers. The default is 60 s.
    #[must_use]
    pub const fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// Sets the function that tells of long waits for other writers. The default is none.
    #[must_use]
    pub fn on_wait(mut self, report: Option<WaitReport>) -> Self {
        self.lock = self.lock.on_wait(report);
        self
    }

    /// Keeps other writers out as long as this exists: for a process that makes one change, and
    /// would otherwise find, while it waits for its turn, that the log has changed since it was read.
    ///
    /// # Errors
    /// [`LockError`].
    pub fn locked(mut self) -> Result<Self, LockError> {
        self.held = Some(self.take_lock(self.wait)?);
        Ok(self)
    }

    fn take_lock(&self, wait: Duration) -> Result<LockGuard, LockError> {
        self.lock.clone().wait(wait).acquire()
    }

    /// The records with a number above `after`, and at least the last `least` ones, read backward
    /// from byte `length` of the file.
    fn after(
        &self,
        file: &File,
        after: u64,
        least: usize,
        length: u64,
    ) -> Result<Vec<Record>, LogError> {
        let name = self.path.display();
        let mut wanted = END;
        loop {
            let start = length.saturating_sub(wanted);
            let text = read(file, start, length).map_err(|error| self.unusable(&error))?;
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

    /// Appends a record. The caller holds the lock.
    fn append_locked(&self, record: &Record) -> Result<(), AppendError> {
        let refused = |error: io::Error| {
            let path = self.path.display();
            AppendError::Failed(format!("{path}: cannot write the pool: {error}").into())
        };
        let mut options = OpenOptions::new();
        let file = match open_own(&self.path, options.read(true).append(true)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            opened => Some(opened.map_err(refused)?),
        };
        let length = file.as_ref().map_or(Ok(0), whole_lines).map_err(refused)?;
        let last = match &file {
            // Epochs never decrease along a log, so the last record has the highest one.
            Some(file) => self.after(file, u64::MAX, 1, length),
            None => Ok(Vec::new()),
        };
        let last = last.map_err(|error| AppendError::Failed(error.0))?;
        let (epoch, last) = last.last().map_or((0, 0), |last| (last.epoch, last.event.sequence));
        // The epoch is compared first: a deposed leader has to stop, whereas a writer that is
        // merely behind tries again.
        if epoch > record.epoch {
            return Err(AppendError::Deposed { epoch });
        }
        if last.checked_add(1) != Some(record.event.sequence) {
            return Err(AppendError::Moved);
        }
        let mut line = serde_json::to_vec(record).map_err(|error| refused(error.into()))?;
        line.push(b'\n');
        match file {
            Some(file) if length > 0 && !record.is_beginning() => {
                append(&file, length, &line, self.patience())
            }
            // The first record is written this way too. A file without a complete line is therefore
            // never a log.
            _ => durable::replace(&self.path, &line, Owner::Kept),
        }
        .map_err(refused)
    }

    /// Returns the time to wait for others who use the file.
    fn patience(&self) -> Duration {
        let left = |end: Instant| end.saturating_duration_since(Instant::now());
        self.deadline.map_or(self.wait, |end| left(end).min(self.wait))
    }

    fn unusable(&self, error: &io::Error) -> LogError {
        let path = self.path.display();
        LogError(format!("{path}: the pool cannot be read: {error}").into())
    }
}

impl EventLog for FileLog {
    fn load(&mut self, after: u64) -> Result<Vec<Record>, LogError> {
        let file = match open_regular(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            opened => opened.map_err(|error| self.unusable(&error))?,
        };
        // A writer may still take back the line that it is writing.
        let turn = take_turn(|| file.try_lock_shared(), self.patience());
        let length = turn.and_then(|()| whole_lines(&file));
        let length = length.map_err(|error| self.unusable(&error))?;
        self.after(&file, after, 0, length)
    }

    fn append(&mut self, record: &Record) -> Result<(), AppendError> {
        let wait = self.patience();
        let turn = self.held.is_none().then(|| self.take_lock(wait)).transpose();
        let _turn = turn.map_err(|error| AppendError::Failed(error.into()))?;
        self.append_locked(record)
    }

    fn within(&mut self, time: Duration) {
        self.deadline = Instant::now().checked_add(time);
    }
}

/// Interval at which a lock on the pool itself is tried. A writer holds it while it writes a line.
const POLL: Duration = Duration::from_millis(5);

/// Takes a lock on the pool itself. Everyone who can read the pool can hold one, and for as long as they
/// like, so it is not waited for without end.
fn take_turn(lock: impl Fn() -> Result<(), TryLockError>, wait: Duration) -> io::Result<()> {
    let end = Instant::now() + wait;
    loop {
        match lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if Instant::now() < end => thread::sleep(POLL),
            Err(TryLockError::WouldBlock) => {
                let message = "another process holds a lock on it (lslocks shows which)";
                return Err(io::Error::new(io::ErrorKind::TimedOut, message));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Writes a line behind the last complete one; on failure the file is as it was.
fn append(mut file: &File, length: u64, line: &[u8], wait: Duration) -> io::Result<()> {
    take_turn(|| file.try_lock(), wait)?;
    let mut write = || {
        durable::may_change()?;
        // Removes the partial line that a killed process left.
        file.set_len(length)?;
        file.write_all(line)?;
        file.sync_data()
    };
    write().inspect_err(|_| {
        // If this fails too, a partial line is left, which does not count.
        let _ = file.set_len(length);
    })
}

fn read(mut file: &File, start: u64, end: u64) -> io::Result<String> {
    let mut text = Vec::new();
    file.seek(SeekFrom::Start(start))?;
    file.take(end - start).read_to_end(&mut text)?;
    // A character may have begun before the start; its line is left out.
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// The length of a file up to the end of its last complete line.
fn whole_lines(mut file: &File) -> io::Result<u64> {
    let mut end = file.metadata()?.len();
    if end == 0 {
        return Ok(0);
    }
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
    // Cutting it off might destroy a file of another kind.
    Err(io::Error::other("expected lines of JSON"))
}
