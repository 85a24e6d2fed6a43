//! Files that keep something between calls: a mock node, a pool of VNIs.

mod format;

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use cxi_job::lock::{FileLock, LockError, LockGuard};
use nix::libc::{O_NOFOLLOW, O_NONBLOCK};
use nix::sys::stat::{Mode, fchmod};
use nix::unistd::{Gid, Uid, fchown};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::exit::{Exit, Failure};
use crate::input;

pub(crate) use format::{
    DECISION, Kind, MOCK_NODE, NODE_RECORD, OBSERVATION, RESERVATION, VNI_POOL, parse, text_of,
};

/// Far more than the state of a full node or pool has.
const LONGEST: u64 = 64 << 20;

/// How long to wait for another `cxi`, by default.
pub(crate) const WAIT: Duration = Duration::from_secs(60);

/// A state file that no other `cxi` can change while this exists.
///
/// It is replaced as a whole, so that a reader or a crash never sees half of it.
#[derive(Debug)]
pub(crate) struct StateFile {
    kind: Kind,
    path: PathBuf,
    /// The file that is replaced, if there is one: the new one has its mode and owner.
    before: Option<Metadata>,
    lock: LockGuard,
}

/// A new state that is on the disk, but not yet in place.
#[derive(Debug)]
#[must_use = "it takes effect when it replaces the file"]
pub(crate) struct Staged<'a> {
    file: &'a StateFile,
    path: PathBuf,
}

impl StateFile {
    /// Locks the file, once all that came before are done, and makes sure that it could be
    /// replaced. It need not exist.
    pub(crate) fn lock(kind: Kind, path: &Path, wait: Duration) -> Result<Self, Failure> {
        let path = real_path(kind, path)?;
        replaceable(kind, &path)?;
        let lock = FileLock::new(beside(&path, ".lock")).wait(wait);
        let guard = lock
            .acquire()
            .map_err(|error| of_lock(kind, &path, &error))?;
        // What was there before the wait may have been replaced.
        let file = Self {
            before: replaceable(kind, &path)?,
            kind,
            path,
            lock: guard,
        };
        file.share_lock();
        Ok(file)
    }

    /// Gives access to the lock to everyone who may change the file, and to nobody else.
    fn share_lock(&self) {
        let Some(like) = &self.before else { return };
        let writers = like.mode() & 0o222;
        // Only the owner of the lock file can do this, and only has to do it once.
        let _ = fchmod(&self.lock, Mode::from_bits_truncate(writers | writers << 1));
        let _ = owned_like(&self.lock, like);
    }

    /// Where the file is, with symbolic links resolved.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces the file.
    pub(crate) fn save<T: Serialize>(&self, kept: &T) -> Result<(), Failure> {
        self.stage(kept)?.put_in_force()
    }

    /// Writes a new state beside the file: from here on a full disk does no harm.
    pub(crate) fn stage<T: Serialize>(&self, kept: &T) -> Result<Staged<'_>, Failure> {
        let text = text_of(self.kind, kept)?;
        // Under the lock the name is ours; what a killed command left under it is removed.
        let staged = Staged {
            file: self,
            path: beside(&self.path, ".new"),
        };
        staged
            .write(text.as_bytes())
            .map_err(|error| self.unwritten(&error))?;
        Ok(staged)
    }

    fn unwritten(&self, error: &io::Error) -> Failure {
        Failure::new(
            Exit::Failed,
            format!("{}: cannot be written: {error}", self.path.display()),
        )
        .hint("The file is as it was before; what the command changed is lost.")
    }
}

impl Staged<'_> {
    fn write(&self, text: &[u8]) -> io::Result<()> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .custom_flags(O_NOFOLLOW)
            .open(&self.path)?;
        file.write_all(text)?;
        if let Some(before) = &self.file.before {
            // The owner first: changing it takes the mode's special bits away.
            owned_like(&file, before)?;
            file.set_permissions(before.permissions())?;
        }
        file.sync_all()
    }

    /// Replaces the file as a whole.
    pub(crate) fn put_in_force(self) -> Result<(), Failure> {
        let path = &self.file.path;
        fs::rename(&self.path, path).map_err(|error| self.file.unwritten(&error))?;
        // The new state is in place; only a power failure could bring the old one back.
        let _ = File::open(directory_of(path)).and_then(|directory| directory.sync_all());
        Ok(())
    }
}

impl Drop for Staged<'_> {
    fn drop(&mut self) {
        // Gone already if it replaced the file.
        let _ = fs::remove_file(&self.path);
    }
}

/// Gives a file to the owner of another one, so that its user can read what root wrote.
fn owned_like(file: &impl std::os::fd::AsFd, like: &Metadata) -> io::Result<()> {
    let now = nix::sys::stat::fstat(file)?;
    if (now.st_uid, now.st_gid) == (like.uid(), like.gid()) {
        return Ok(());
    }
    let owner = Uid::from_raw(like.uid());
    match fchown(file, Some(owner), Some(Gid::from_raw(like.gid()))) {
        // Whoever may write another user's file in a directory of their own replaces it with their
        // own file.
        Err(nix::Error::EPERM) => Ok(()),
        result => Ok(result?),
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    path.with_file_name(name)
}

fn of_lock(kind: Kind, path: &Path, error: &LockError) -> Failure {
    let name = kind.name;
    match error {
        LockError::Busy { waited, .. } => Failure::new(
            Exit::Busy,
            format!(
                "{}: another cxi has been using the {name} for {}",
                path.display(),
                humantime::format_duration(*waited)
            ),
        ),
        LockError::Open { .. } => Failure::bad_input(error.to_string()).hint(format!(
            "The {name} is replaced as a whole, and the lock file is beside it: both take the \
             right to write the directory."
        )),
        LockError::NotAFile { .. } => Failure::bad_input(error.to_string()),
        _ => Failure::new(Exit::Failed, error.to_string()),
    }
}

/// Reads a state file; `None` if there is none.
pub(crate) fn load<T: DeserializeOwned>(kind: Kind, path: &Path) -> Result<Option<T>, Failure> {
    // Opening a pipe must not wait for a writer.
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(O_NONBLOCK)
        .open(path)
        .and_then(|file| Ok((file.metadata()?.is_file(), file)));
    let text = opened.and_then(|(regular, file)| {
        let bounded = || input::bounded(file, kind.holds, LONGEST);
        regular.then(bounded).transpose()
    });
    let text = match text {
        Ok(Some(text)) => text,
        Ok(None) => return Err(no_regular_file(kind, path)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(Failure::bad_input(format!(
                "{}: the {} cannot be read: {error}",
                path.display(),
                kind.name
            )));
        }
    };
    parse(kind, &text).map(Some).map_err(|what| {
        Failure::bad_input(format!("{}: {what}", path.display()))
            .hint("The file was left as it is. Name another one, or remove it to start over.")
    })
}

/// Resolves symbolic links, so that the file behind a link is replaced and not the link.
fn real_path(kind: Kind, path: &Path) -> Result<PathBuf, Failure> {
    let cannot = |error: io::Error| {
        Failure::bad_input(format!(
            "{}: cannot be used as {}: {error}",
            path.display(),
            kind.name
        ))
    };
    match fs::canonicalize(path) {
        Ok(path) => Ok(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let Some(name) = path.file_name() else {
                return Err(cannot(error));
            };
            let directory = fs::canonicalize(directory_of(path)).map_err(cannot)?;
            Ok(directory.join(name))
        }
        Err(error) => Err(cannot(error)),
    }
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        _ => Path::new("."),
    }
}

/// Refuses what a rename would happily replace: a file marked read-only, or no file at all.
fn replaceable(kind: Kind, path: &Path) -> Result<Option<Metadata>, Failure> {
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => Err(no_regular_file(kind, path)),
        Ok(metadata) if metadata.permissions().readonly() => Err(Failure::bad_input(format!(
            "{}: the {} is read-only, and this command changes the state",
            path.display(),
            kind.name
        ))
        .hint("Make it writable, or name another file.")),
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::bad_input(format!(
            "{}: the {} cannot be read: {error}",
            path.display(),
            kind.name
        ))),
    }
}

fn no_regular_file(kind: Kind, path: &Path) -> Failure {
    Failure::bad_input(format!(
        "{}: cannot be used as {}: it is not a regular file",
        path.display(),
        kind.name
    ))
}
