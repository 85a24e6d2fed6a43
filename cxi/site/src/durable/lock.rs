//! A lock file that processes take in the order of arrival.
//!
//! A prolog, an epilog and a cleanup that run at the same time read the list of services, decide,
//! and act on what they read. If another process changed services between reading and acting, an id
//! about to be destroyed might belong to another job by then. A `Node` of `cxi-job` with a lock
//! holds it for each of these operations.
//!
//! ```
//! use cxi_site::FileLock;
//! use std::time::Duration;
//!
//! let directory = tempfile::tempdir()?;
//! // On a node: /run/cxi/node.lock, which only root can open.
//! let lock = FileLock::new(directory.path().join("node.lock")).wait(Duration::from_millis(10));
//! let held = lock.acquire()?;
//! assert!(lock.acquire().unwrap_err().is_busy());
//! drop(held);
//! lock.acquire()?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

use std::fs::{File, OpenOptions, Permissions, TryLockError};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;
use std::{io, thread};

use cxi_ioctl::Errno;
use nix::libc::O_NOFOLLOW;

use super::{
    create_dir, directory_of, give, inherit, new_prefix, open_regular_with, own_file, owned_here,
    remove_abandoned,
};

/// Default time to wait for a lock.
const WAIT: Duration = Duration::from_secs(60);

/// Length of a wait that is not worth telling anyone.
const PATIENCE: Duration = Duration::from_secs(1);

/// A function that is called with the path of a lock that has been waited for longer than a second, so
/// that a program can say why it stands still.
pub type WaitReport = fn(&Path);

/// A file whose lock (`flock`) processes and threads take in turn.
///
/// Any process that can open the file can hold the lock, so the file belongs in a directory that only
/// root can write to.
#[derive(Debug, Clone)]
pub struct FileLock {
    path: PathBuf,
    wait: Duration,
    /// The file whose owner and writers a new lock file gets.
    like: Option<PathBuf>,
    report: Option<WaitReport>,
}

/// A lock, held until this value is dropped or the process ends.
#[derive(Debug)]
#[must_use = "the lock is released when this is dropped"]
pub struct LockGuard {
    file: File,
}

/// Reason for which a lock was not acquired.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// The lock file cannot be opened or created, or what is there is not a lock: a pipe, a directory,
    /// a link, or a file of somebody who owns neither the directory nor this process.
    #[error("{}: cannot open the lock file: {source}", path.display())]
    Open {
        /// The lock file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Another process held the lock for the whole time.
    #[error("{}: locked by another process; waited {waited:?}", path.display())]
    Busy {
        /// The lock file.
        path: PathBuf,
        /// Time that the caller waited.
        waited: Duration,
    },
    /// The file system does not support locks.
    #[error("{}: cannot be locked: {source}", path.display())]
    Lock {
        /// The lock file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl FileLock {
    /// Creates a lock on a file. The file, and directories that are missing, are created when the
    /// lock is acquired.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self { path, wait: WAIT, like: None, report: None }
    }

    /// Creates the lock of those who replace a file: `PATH.lock`. The file itself need not exist.
    /// Every user who may write the file when the lock is first taken may lock it; the owner and the
    /// mode of a lock file that exists are never changed. What a killed process left of
    /// [`replace`](super::replace) is removed.
    #[must_use]
    pub fn of(file: &Path) -> Self {
        let mut name = file.file_name().unwrap_or_default().to_owned();
        name.push(".lock");
        Self { like: Some(file.to_owned()), ..Self::new(file.with_file_name(name)) }
    }

    /// Sets how long to wait for other holders. The default is 60 s.
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// Sets the function that tells of long waits. The default is none.
    #[must_use]
    pub fn on_wait(mut self, report: Option<WaitReport>) -> Self {
        self.report = report;
        self
    }

    /// Waits this much less.
    #[must_use]
    pub fn less(mut self, waited: Duration) -> Self {
        self.wait = self.wait.saturating_sub(waited);
        self
    }

    /// Waits for the lock and takes it. The lock is not reentrant: acquiring it twice in one thread
    /// deadlocks until the wait times out.
    ///
    /// # Errors
    ///
    /// [`LockError`]; [`LockError::Busy`] when the wait times out.
    pub fn acquire(&self) -> Result<LockGuard, LockError> {
        let guard = self.take()?;
        if let Some(file) = &self.like {
            remove_abandoned(directory_of(file), &new_prefix(file));
        }
        Ok(guard)
    }

    fn take(&self) -> Result<LockGuard, LockError> {
        let path = || self.path.clone();
        let refused = |source| LockError::Lock { path: path(), source };
        let busy = || LockError::Busy { path: path(), waited: self.wait };
        let file = self.open().map_err(|source| LockError::Open { path: path(), source })?;
        match file.try_lock() {
            Ok(()) => return Ok(LockGuard { file }),
            Err(TryLockError::WouldBlock) if self.wait.is_zero() => return Err(busy()),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(source)) => return Err(refused(source)),
        }
        // The kernel queues the waiters but has no timeout. A thread that gets the lock too late
        // finds the receiver gone; the failed send drops the file, which releases the lock.
        let (sender, receiver) = mpsc::sync_channel(0);
        let waiting = thread::Builder::new().name("cxi-lock".to_owned());
        let spawned = waiting.spawn(move || {
            let locked = blocking(&file).map(|()| file);
            // The receiver has given up.
            let _ = sender.send(locked);
        });
        spawned.map_err(refused)?;
        let outcome = receiver.recv_timeout(self.wait.min(PATIENCE)).or_else(|_| {
            let rest = self.wait.saturating_sub(PATIENCE);
            if let (Some(report), false) = (self.report, rest.is_zero()) {
                report(&self.path);
            }
            receiver.recv_timeout(rest)
        });
        match outcome {
            Ok(Ok(file)) => Ok(LockGuard { file }),
            Ok(Err(source)) => Err(refused(source)),
            Err(_) => Err(busy()),
        }
    }

    fn open(&self) -> io::Result<File> {
        let directory = directory_of(&self.path);
        let open = |create| {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create_new(create).mode(0o600);
            // A link could lead anywhere.
            open_regular_with(&self.path, &mut options, O_NOFOLLOW)
        };
        let existing = || open(false).and_then(|file| is_lock(&file, directory).map(|()| file));
        let create = || {
            // After a boot /run/cxi does not exist.
            create_dir(directory)?;
            let file = open(true)?;
            match self.like.as_deref().map(|path| own_file(path, directory)) {
                Some(Ok(like)) => {
                    // Other users can lock the file only if they may read and write it.
                    let writers = like.mode() & 0o222;
                    give(&file, Some(like.uid()), Some(like.gid()))?;
                    file.set_permissions(Permissions::from_mode(writers | writers << 1))?;
                }
                Some(Err(_)) | None => inherit(&file, directory)?,
            }
            Ok(file)
        };
        // Another process may create it between the first two.
        existing()
            .or_else(|error| match error.kind() {
                io::ErrorKind::NotFound => create(),
                _ => Err(error),
            })
            .or_else(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => existing(),
                _ => Err(error),
            })
    }
}

/// Returns whether an open file can be a lock: one with a single name, of the caller, of root or of
/// whoever owns the directory. Anything else was put there by somebody else, for instance as a link
/// to a file that is not theirs.
fn is_lock(file: &File, directory: &Path) -> io::Result<()> {
    owned_here(&file.metadata()?, directory).map_err(|why| {
        let message = format!("not a lock: {why}; if no program needs it, remove it");
        io::Error::new(io::ErrorKind::InvalidInput, message)
    })
}

impl LockGuard {
    /// The lock file.
    #[must_use]
    pub const fn file(&self) -> &File {
        &self.file
    }
}

fn blocking(file: &File) -> io::Result<()> {
    loop {
        match file.lock() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

impl LockError {
    /// Returns whether another process held the lock, so that trying again may help.
    #[must_use]
    pub const fn is_busy(&self) -> bool {
        matches!(self, Self::Busy { .. })
    }

    /// The error as an errno: EAGAIN if another process held the lock.
    #[must_use]
    pub fn errno(&self) -> Errno {
        match self {
            Self::Busy { .. } => Errno::EAGAIN,
            Self::Open { source, .. } | Self::Lock { source, .. } => {
                source.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn a_pipe_a_directory_or_a_link_is_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let link = directory.path().join("link");
        std::os::unix::fs::symlink("elsewhere", &link).unwrap();
        for path in [&pipe, directory.path()] {
            let error = FileLock::new(path).acquire().unwrap_err();
            assert!(matches!(error, LockError::Open { .. }), "{error}");
        }
        let error = FileLock::new(&link).acquire().unwrap_err();
        assert!(matches!(error, LockError::Open { .. }), "{error}");
        assert!(!directory.path().join("elsewhere").exists());
        let below_a_pipe = pipe.join("lock");
        let error = FileLock::new(&below_a_pipe).acquire().unwrap_err();
        assert_eq!(error.errno(), Errno::ENOTDIR);
    }

    /// The error for a directory that cannot be made is that one: not that the file is not there.
    #[test]
    fn a_directory_that_cannot_be_made_is_why() {
        let error = FileLock::new("/sys/no-directory/lock").acquire().unwrap_err();
        assert_ne!(error.errno(), Errno::ENOENT, "{error}");
    }

    #[test]
    fn one_at_a_time_and_none_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let lock = FileLock::new(directory.path().join("run/lock"));
        let inside = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        let held = lock.acquire().unwrap();
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        assert_eq!(inside.fetch_sub(1, Ordering::SeqCst), 1);
                        drop(held);
                    }
                });
            }
        });
    }

    #[test]
    fn who_gave_up_does_not_keep_it() {
        let directory = tempfile::tempdir().unwrap();
        let lock = FileLock::new(directory.path().join("lock")).wait(Duration::from_millis(1));
        let held = lock.acquire().unwrap();
        for _ in 0..8 {
            assert_eq!(lock.acquire().unwrap_err().errno(), Errno::EAGAIN);
        }
        drop(held);
        let _held = lock.wait(Duration::from_secs(30)).acquire().unwrap();
    }
}
