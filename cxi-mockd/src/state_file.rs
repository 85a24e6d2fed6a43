//! A file that keeps a node's services.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use nix::fcntl::{Flock, FlockArg};

use super::error::{Doing, ServeError};
use cxi_mock::{MockNode, NodeSnapshot, SnapshotHeader};

/// The file of a served node, which no other node may use in the meantime.
#[derive(Debug)]
pub(crate) struct StateFile {
    path: PathBuf,
    _lock: Flock<File>,
}

impl StateFile {
    /// Takes the file. The lock is a file beside it, as the file itself is replaced as a whole.
    pub(crate) fn take(path: &Path) -> Result<Self, ServeError> {
        let beside = beside(path, "lock");
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&beside)
            .doing(|| format!("open the lock {}", beside.display()))?;
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => Ok(Self {
                path: path.to_owned(),
                _lock: lock,
            }),
            Err((_, nix::errno::Errno::EAGAIN)) => Err(ServeError::Input(format!(
                "another node has its state in {}: end it, or take another file",
                path.display()
            ))),
            Err((_, errno)) => Err(errno).doing(|| format!("lock {}", beside.display())),
        }
    }

    /// Reads the node of the file, if there is such a file.
    pub(crate) fn read(&self) -> Result<Option<MockNode>, ServeError> {
        read(&self.path)
    }
}

/// Writes the state of a node whenever it has changed.
#[derive(Debug)]
pub(crate) struct Saver {
    file: StateFile,
    node: MockNode,
    written: Mutex<Vec<u8>>,
}

impl Saver {
    /// Keeps the state of a node in a file from now on.
    pub(crate) fn new(file: StateFile, node: &MockNode) -> Self {
        Self {
            file,
            node: MockNode::from_nics(node.nics().to_vec()),
            written: Mutex::default(),
        }
    }

    /// Writes the file if the state has changed: all of it or nothing.
    pub(crate) fn save(&self) -> Result<(), ServeError> {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let what = || format!("write {}", self.file.path.display());
        let mut text = serde_json::to_vec_pretty(&self.node.snapshot())
            .map_err(io::Error::from)
            .doing(what)?;
        text.push(b'\n');
        if text != *written {
            replace(&self.file.path, &text).doing(what)?;
            *written = text;
        }
        Ok(())
    }
}

/// Replaces a file, which stays its owner's. What a killed writer left behind is overwritten.
fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let part = beside(path, "new");
    let mut file = File::create(&part)?;
    if let Ok(before) = fs::metadata(path) {
        file.set_permissions(before.permissions())?;
        // Only root may give a file away, and nobody else replaces one of another user.
        let _ = fchown(&file, Some(before.uid()), Some(before.gid()));
    }
    let written = file
        .write_all(text)
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&part, path));
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
    written
}

fn beside(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{extension}"));
    path.with_file_name(name)
}

/// Reads the node of a file, if there is such a file.
fn read(path: &Path) -> Result<Option<MockNode>, ServeError> {
    let text = match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.doing(|| format!("read {}", path.display()))?,
    };
    let bad = |error: &dyn std::fmt::Display| {
        ServeError::Input(format!(
            "{} does not hold the state of a node: {error}",
            path.display()
        ))
    };
    let header: SnapshotHeader = serde_json::from_slice(&text).map_err(|error| bad(&error))?;
    header.check().map_err(|error| bad(&error))?;
    let snapshot: NodeSnapshot = serde_json::from_slice(&text).map_err(|error| bad(&error))?;
    let node = MockNode::restore(&snapshot).map_err(|error| bad(&error))?;
    Ok(Some(node))
}
