//! A file that keeps the services of nodes.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use cxi_job::durable::{self, LockError, LockGuard, Owner, open_regular};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::{Doing, ServeError};
use super::input;
use cxi_mock::{MockCluster, MockNode, NodeSnapshot};

/// The file of a served node, which no other node may use in the meantime.
#[derive(Debug)]
pub(crate) struct StateFile {
    path: PathBuf,
    _lock: LockGuard,
}

impl StateFile {
    /// Takes the file, or refuses one that another node has.
    pub(crate) fn take(path: &Path) -> Result<Self, ServeError> {
        let directory = path.parent().unwrap_or(path);
        // The lock would make one, and a mistyped path would go unnoticed.
        if !directory.as_os_str().is_empty() && !directory.is_dir() {
            return Err(ServeError::Input(format!(
                "cannot keep the state in {}: there is no directory {}",
                path.display(),
                directory.display()
            )));
        }
        match durable::lock(path, Duration::ZERO) {
            Ok(lock) => Ok(Self {
                path: path.to_owned(),
                _lock: lock,
            }),
            Err(LockError::Busy { .. }) => Err(ServeError::Input(format!(
                "another node has its state in {}: end it, or take another file",
                path.display()
            ))),
            Err(error) => Err(ServeError::Input(error.to_string())),
        }
    }

    /// Reads the node of the file, if there is such a file.
    pub(crate) fn read_node(&self) -> Result<Option<MockNode>, ServeError> {
        self.read("a node", |text| {
            if is_list(text) {
                return Err("it holds that of a cluster".to_owned());
            }
            let node: NodeSnapshot = parse(text)?;
            MockNode::restore(&node).map_err(|error| error.to_string())
        })
    }

    /// Reads the cluster of the file, if there is such a file.
    pub(crate) fn read_cluster(&self) -> Result<Option<MockCluster>, ServeError> {
        self.read("a cluster", |text| {
            if !is_list(text) {
                return Err("expected a list of nodes".to_owned());
            }
            let nodes: Vec<NodeSnapshot> = parse(text)?;
            MockCluster::restore(&nodes).map_err(|error| error.to_string())
        })
    }

    fn read<T>(
        &self,
        what: &str,
        restore: impl FnOnce(&[u8]) -> Result<T, String>,
    ) -> Result<Option<T>, ServeError> {
        let path = self.path.display();
        let text = match open_regular(&self.path).and_then(input::bounded) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other.doing(|| format!("read {path}"))?,
        };
        restore(&text).map(Some).map_err(|error| {
            ServeError::Input(format!("{path} does not hold the state of {what}: {error}"))
        })
    }
}

fn is_list(text: &[u8]) -> bool {
    text.trim_ascii_start().starts_with(b"[")
}

fn parse<T: DeserializeOwned>(text: &[u8]) -> Result<T, String> {
    serde_json::from_slice(text).map_err(|error| error.to_string())
}

/// Writes the state of nodes whenever it has changed.
pub(crate) struct Saver {
    file: StateFile,
    render: Box<dyn Fn() -> serde_json::Result<Vec<u8>> + Send + Sync>,
    written: Mutex<Vec<u8>>,
}

impl Saver {
    /// Keeps a state in a file from now on.
    pub(crate) fn new<S: Serialize>(
        file: StateFile,
        snapshot: impl Fn() -> S + Send + Sync + 'static,
    ) -> Self {
        Self {
            file,
            render: Box::new(move || serde_json::to_vec_pretty(&snapshot())),
            written: Mutex::default(),
        }
    }

    /// Writes the file if the state has changed: all of it or nothing.
    pub(crate) fn save(&self) -> Result<(), ServeError> {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let what = || format!("write {}", self.file.path.display());
        let mut text = (self.render)().map_err(io::Error::from).doing(what)?;
        text.push(b'\n');
        if text != *written {
            durable::replace(&self.file.path, &text, Owner::Kept).doing(what)?;
            *written = text;
        }
        Ok(())
    }
}

impl fmt::Debug for Saver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Saver")
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

/// The error where arguments contradict the file.
pub(crate) fn another_configuration(what: &str) -> ServeError {
    ServeError::Input(format!(
        "the state file holds {what} of another configuration: leave out --nodes, --nics, \
         --config, --release and --set, or take another file"
    ))
}
