//! A file that keeps the services of nodes.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cxi_ioctl::Errno;
use cxi_site::durable::{self, FileLock, LockError, LockGuard, Owner, open_regular};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;

use super::error::{Doing, ServeError, say};
use super::input;
use cxi_mock::{MockCluster, MockNode, NodeSnapshot};

/// The file of a served node, which no other node may use in the meantime.
#[derive(Debug)]
pub(crate) struct StateFile {
    path: PathBuf,
    _lock: LockGuard,
}

impl StateFile {
    /// Takes the file, or refuses if another node uses it.
    pub(crate) fn take(path: &Path) -> Result<Self, ServeError> {
        let directory = path.parent().unwrap_or(path);
        // The lock would create the directory, and a mistyped path would go unnoticed.
        if !directory.as_os_str().is_empty() && !directory.is_dir() {
            return Err(ServeError::Input(format!(
                "cannot keep the state in {}: there is no directory {}",
                path.display(),
                directory.display()
            )));
        }
        match FileLock::of(path).wait(Duration::ZERO).acquire() {
            Ok(lock) => Ok(Self { path: path.to_owned(), _lock: lock }),
            Err(LockError::Busy { .. }) => Err(ServeError::Input(format!(
                "another node keeps its state in {}: end it, or use another file",
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

/// Writes the state of nodes before a change of it is answered.
#[derive(Debug)]
pub(crate) struct Saver {
    file: StateFile,
    nodes: Mutex<Vec<NodeSnapshot>>,
    /// A cluster is a list, however many nodes it has.
    is_cluster: bool,
}

impl Saver {
    /// Keeps a node in a file.
    pub(crate) fn of_node(file: StateFile, node: &MockNode) -> Arc<Self> {
        Arc::new(Self { file, nodes: Mutex::new(vec![node.snapshot()]), is_cluster: false })
    }

    /// Keeps a cluster in a file.
    pub(crate) fn of_cluster(file: StateFile, cluster: &MockCluster) -> Arc<Self> {
        Arc::new(Self { file, nodes: Mutex::new(cluster.snapshot()), is_cluster: true })
    }

    /// Keeps the state of a node's NICs from now on. A change that cannot be written fails with
    /// EIO, and not with ENOSPC, which would mean that the NIC is short of something.
    pub(crate) fn watch(
        self: &Arc<Self>,
        number: usize,
        node: &MockNode,
    ) -> Result<(), ServeError> {
        for (index, nic) in node.nics().iter().enumerate() {
            let saver = Arc::clone(self);
            let kept = nic.keep(move |snapshot| {
                saver.change(number, |node| node.nics[index] = snapshot).map_err(|error| {
                    say(format_args!("{error}"));
                    Errno::EIO
                })
            });
            kept.map_err(|errno| ServeError::Input(errno.to_string()))?;
        }
        Ok(())
    }

    /// Changes the recorded state of a node, and writes it.
    pub(crate) fn change(
        &self,
        number: usize,
        change: impl FnOnce(&mut NodeSnapshot),
    ) -> Result<(), ServeError> {
        // A NIC is locked before this list is, so nothing here may use a NIC.
        let mut nodes = self.nodes.lock();
        let before = nodes[number].clone();
        change(&mut nodes[number]);
        if nodes[number] == before {
            return Ok(());
        }
        self.write(&nodes).inspect_err(|_| nodes[number] = before)
    }

    /// Writes the file: all of it or nothing.
    pub(crate) fn save(&self) -> Result<(), ServeError> {
        self.write(&self.nodes.lock())
    }

    fn write(&self, nodes: &[NodeSnapshot]) -> Result<(), ServeError> {
        let what = || format!("write {}", self.file.path.display());
        let text = match nodes {
            [node] if !self.is_cluster => serde_json::to_vec_pretty(node),
            nodes => serde_json::to_vec_pretty(nodes),
        };
        let mut text = text.map_err(io::Error::from).doing(what)?;
        text.push(b'\n');
        durable::replace(&self.file.path, &text, Owner::Kept).doing(what)
    }
}

/// The error where arguments contradict the file.
pub(crate) fn another_configuration(what: &str) -> ServeError {
    ServeError::Input(format!(
        "the state file holds {what} of another configuration: leave out --nodes, --nics, \
         --config, --release and --set, or use another file"
    ))
}
