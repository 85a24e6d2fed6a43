//! Files that keep something between calls, such as a mock node.

mod format;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cxi_job::durable::{self, LockError, LockGuard, Owner, directory_of, open_regular};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::exit::{Exit, Failure};
use crate::input;

pub(crate) use cxi_job::site::store::Format as Kind;
pub(crate) use format::{MOCK_NODE, OBSERVATION, parse, text_of};

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
    _lock: LockGuard,
}

impl StateFile {
    /// Locks the file, once all that came before are done, and makes sure that it could be
    /// replaced. It need not exist.
    pub(crate) fn lock(kind: Kind, path: &Path, wait: Duration) -> Result<Self, Failure> {
        let path = real_path(kind, path)?;
        replaceable(kind, &path)?;
        let lock = durable::lock(&path, wait).map_err(|error| of_lock(kind, &path, &error))?;
        // What was there before the wait may have been replaced.
        replaceable(kind, &path)?;
        Ok(Self {
            kind,
            path,
            _lock: lock,
        })
    }

    /// Where the file is, with symbolic links resolved.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces the file, which keeps its owner and mode.
    pub(crate) fn save<T: Serialize>(&self, kept: &T) -> Result<(), Failure> {
        let text = text_of(self.kind, kept)?;
        durable::replace(&self.path, text.as_bytes(), Owner::Kept).map_err(|error| {
            Failure::new(
                Exit::Failed,
                format!("{}: cannot be written: {error}", self.path.display()),
            )
            .hint("The file is as it was before; what the command changed is lost.")
        })
    }
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
            "The {name} is replaced as a whole, and the lock file is in its directory: both take \
             the right to write there."
        )),
        _ => Failure::new(Exit::Failed, error.to_string()),
    }
}

/// Reads a state file; `None` if there is none.
pub(crate) fn load<T: DeserializeOwned>(kind: Kind, path: &Path) -> Result<Option<T>, Failure> {
    let text = open_regular(path).and_then(|file| input::bounded(file, LONGEST));
    let text = match text {
        Ok(text) => text,
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

/// Refuses what a rename would happily replace: a file marked read-only, or no file at all.
fn replaceable(kind: Kind, path: &Path) -> Result<(), Failure> {
    let unreadable = |error: &dyn std::fmt::Display| {
        Err(Failure::bad_input(format!(
            "{}: the {} cannot be read: {error}",
            path.display(),
            kind.name
        )))
    };
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => unreadable(&"not a regular file"),
        Ok(metadata) if metadata.permissions().readonly() => Err(Failure::bad_input(format!(
            "{}: the {} is read-only, and this command changes the state",
            path.display(),
            kind.name
        ))
        .hint("Make it writable, or name another file.")),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => unreadable(&error),
    }
}
