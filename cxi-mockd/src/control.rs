//! The socket through which a node is looked at and changed while it runs.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use nix::fcntl::OFlag;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::{Doing, ServeError};
use super::node::Node;

/// The socket's name in the directory of a node.
const SOCKET: &str = "control";

/// Something that a node is asked to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Order {
    /// Show the process whose namespaces are the node's.
    Process,
    /// Show what is there and in use.
    State,
    /// The hardware has commands in flight in a transmit queue.
    Txq {
        nic: u16,
        index: u32,
        in_flight: u32,
    },
    /// The hardware has commands in flight in a target queue.
    Tgq {
        nic: u16,
        index: u32,
        in_flight: u32,
    },
    /// The hardware has TLEs of a pool in use.
    Tles { nic: u16, pool: u32, in_use: u16 },
    /// The hardware has LEs of a pool allocated.
    Les {
        nic: u16,
        element: u32,
        pool: u32,
        allocated: u16,
    },
    /// Something goes wrong from now on.
    Fault { fault: String },
    /// Nothing goes wrong any more.
    ClearFaults,
    /// The driver's periodic cleanup runs now.
    Tick { nic: u16 },
    /// A wait object's interrupt comes.
    Wake { nic: u16, client: u32, wait: u32 },
    /// Take a NIC out.
    Unplug { nic: u16 },
    /// Put it back in.
    Plug { nic: u16 },
    /// The link comes or goes.
    Link { nic: u16, up: bool },
}

/// A directory with the socket of a node.
#[derive(Debug)]
pub(crate) struct Control {
    listener: UnixListener,
    path: PathBuf,
}

impl Control {
    /// Makes the directory and the socket. The directory belongs to one node at a time.
    pub(crate) fn open(dir: &Path) -> Result<Self, ServeError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir)
            .doing(|| format!("make the directory {}", dir.display()))?;
        let directory = directory(dir)?;
        if UnixStream::connect(socket(&directory)).is_ok() {
            return Err(ServeError::Input(format!(
                "there is a node in {} already: take another directory, or end that node",
                dir.display()
            )));
        }
        let what = || format!("make the socket {}/{SOCKET}", dir.display());
        match fs::remove_file(socket(&directory)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error).doing(what),
            _ => {}
        }
        let listener = UnixListener::bind(socket(&directory)).doing(what)?;
        let path = fs::canonicalize(dir).doing(what)?.join(SOCKET);
        Ok(Self { listener, path })
    }

    /// The directory, wherever a program stands.
    pub(crate) fn dir(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    /// Answers from now on.
    pub(crate) fn serve(self, node: Arc<Node>) -> Result<ControlGuard, ServeError> {
        let guard = ControlGuard { path: self.path };
        thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || {
                for connection in self.listener.incoming().flatten() {
                    let node = Arc::clone(&node);
                    let _ = thread::Builder::new()
                        .name("control".to_owned())
                        .spawn(move || answer(&node, connection));
                }
            })
            .doing(|| "start the control socket".to_owned())?;
        Ok(guard)
    }
}

/// Removes the socket when the node ends.
#[derive(Debug)]
pub(crate) struct ControlGuard {
    path: PathBuf,
}

impl Drop for ControlGuard {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// One order a line, one answer a line.
fn answer(node: &Node, connection: UnixStream) {
    let Ok(mut reply) = connection.try_clone() else {
        return;
    };
    for line in BufReader::new(connection).lines().map_while(Result::ok) {
        let answer: Result<Value, String> = serde_json::from_str(&line)
            .map_err(|error| format!("no order: {error}"))
            .and_then(|order| node.obey(&order));
        let Ok(mut answer) = serde_json::to_vec(&answer) else {
            return;
        };
        answer.push(b'\n');
        if reply.write_all(&answer).is_err() {
            return;
        }
    }
}

/// A connection to the node of a directory.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: UnixStream,
}

impl Connection {
    /// Connects to the node.
    pub(crate) fn open(dir: &Path) -> Result<Self, ServeError> {
        let nobody = |error: io::Error| {
            ServeError::Input(format!(
                "there is no node in {} ({error}): start one with cxi-mock serve --dir {}",
                dir.display(),
                dir.display()
            ))
        };
        let directory = OpenOptions::new()
            .read(true)
            .custom_flags((OFlag::O_DIRECTORY | OFlag::O_CLOEXEC).bits())
            .open(dir)
            .map_err(nobody)?;
        let stream = UnixStream::connect(socket(&directory)).map_err(nobody)?;
        Ok(Self { stream })
    }

    /// Sends an order and returns the answer.
    pub(crate) fn send(&self, order: &Order) -> Result<Value, ServeError> {
        let what = || "talk to the node".to_owned();
        let mut line = serde_json::to_vec(order).doing(what)?;
        line.push(b'\n');
        (&self.stream).write_all(&line).doing(what)?;
        let mut answer = String::new();
        BufReader::new(&self.stream)
            .read_line(&mut answer)
            .doing(what)?;
        let answer: Result<Value, String> = serde_json::from_str(&answer).doing(what)?;
        answer.map_err(ServeError::Input)
    }

    /// Readable when the node is gone.
    pub(crate) fn lifeline(&self) -> &UnixStream {
        &self.stream
    }
}

fn directory(dir: &Path) -> Result<File, ServeError> {
    OpenOptions::new()
        .read(true)
        .custom_flags((OFlag::O_DIRECTORY | OFlag::O_CLOEXEC).bits())
        .open(dir)
        .doing(|| format!("open the directory {}", dir.display()))
}

/// The socket's path by descriptor: a long path does not fit into a socket's address.
fn socket(directory: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{SOCKET}", directory.as_raw_fd()))
}
