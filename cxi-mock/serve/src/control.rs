//! The socket through which a running node is inspected and changed: the node's end, the end of
//! `ctl` and `enter`, and the answers between them. An order is a line of JSON, and so is an
//! answer, which may come with descriptors.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufRead, BufReader, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use nix::fcntl::OFlag;
use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::stat::{Mode, umask};
use nix::unistd::geteuid;
use rustix::cmsg_space;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde_json::{Value, json};

use super::error::{Doing, ServeError};
use super::launch::DIR_VARIABLE;
use super::namespaces::{Namespaces, Variable};
use super::order::{Order, Request};
use super::watch::Watcher;

/// The socket's name in the directory of a node.
const SOCKET: &str = "control";
/// Bytes of the longest order.
const LONGEST_ORDER: u64 = 1 << 16;
/// Connections at a time: one for each program that was entered, and some for `ctl`.
const CONNECTIONS: usize = 1000;
/// Time for which no connection is accepted after accepting one has failed.
const PAUSE: Duration = Duration::from_millis(10);

/// A directory with the socket of a node.
#[derive(Debug)]
pub(crate) struct Control {
    listener: UnixListener,
    path: PathBuf,
}

impl Control {
    /// Makes the directory and the socket, which only this user can connect to. The directory
    /// belongs to one node at a time.
    pub(crate) fn open(dir: &Path) -> Result<Self, ServeError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir)
            .doing(|| format!("make the directory {}", dir.display()))?;
        let directory = directory(dir)?;
        if UnixStream::connect(socket(&directory)).is_ok() {
            return Err(ServeError::Input(format!(
                "there is already a node in {}: use another directory, or end that node",
                dir.display()
            )));
        }
        let what = || format!("make the socket {}/{SOCKET}", dir.display());
        match fs::remove_file(socket(&directory)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error).doing(what),
            _ => {}
        }
        // The socket has its mode from the start. If the mode were set afterward, anyone could
        // connect in between.
        let others = umask(Mode::S_IXUSR | Mode::S_IRWXG | Mode::S_IRWXO);
        let listener = UnixListener::bind(socket(&directory));
        umask(others);
        let listener = listener.doing(what)?;
        let path = fs::canonicalize(dir).doing(what)?.join(SOCKET);
        Ok(Self { listener, path })
    }

    /// The directory, as an absolute path.
    pub(crate) fn dir(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    /// The variable in which programs find the directory.
    pub(crate) fn variable(&self) -> Variable {
        (DIR_VARIABLE.into(), self.dir().into())
    }

    /// Starts to answer.
    pub(crate) fn serve(self, served: Arc<dyn Served>) -> Result<ControlGuard, ServeError> {
        let guard = ControlGuard { path: self.path };
        thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || {
                let taken = Arc::new(AtomicUsize::new(0));
                for connection in self.listener.incoming() {
                    let Ok(connection) = connection else {
                        // The process is out of descriptors, for example. Other connections will
                        // close.
                        thread::sleep(PAUSE);
                        continue;
                    };
                    let (served, seat) = (Arc::clone(&served), Seat::take(&taken));
                    let _ =
                        thread::Builder::new().name("control".to_owned()).spawn(
                            move || match admit(&connection, seat.as_ref()) {
                                Ok(()) => answer_all(&*served, &connection),
                                Err(error) => drop(send(&connection, &Err(error), &[])),
                            },
                        );
                }
            })
            .doing(|| "start the control socket".to_owned())?;
        Ok(guard)
    }
}

/// One of the connections that a node may have, until it is dropped.
struct Seat(Arc<AtomicUsize>);

impl Seat {
    fn take(taken: &Arc<AtomicUsize>) -> Option<Self> {
        let seat = Self(Arc::clone(taken));
        (taken.fetch_add(1, Ordering::Relaxed) < CONNECTIONS).then_some(seat)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Admits a connection of the user who serves the node, a limited number of times.
fn admit(connection: &UnixStream, seat: Option<&Seat>) -> Result<(), String> {
    if peer(connection).map_err(|error| error.to_string())? != geteuid().as_raw() {
        return Err("the node belongs to another user".to_owned());
    }
    seat.map(|_| ())
        .ok_or_else(|| format!("the node has {CONNECTIONS} connections: end some programs"))
}

/// The user at the other end.
pub(crate) fn peer(connection: &UnixStream) -> io::Result<u32> {
    Ok(getsockopt(connection, PeerCredentials)?.uid())
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

/// A job that ends when this is dropped.
pub(crate) trait Job: Send {
    /// Returns the variables of its programs.
    fn variables(&self) -> &[Variable];
}

/// Purpose of a connection.
pub(crate) trait Served: Send + Sync {
    /// Executes an order for one node or for all. An error is a message for people.
    fn execute(&self, node: Option<&str>, order: &Order) -> Result<Value, String>;

    /// The namespaces of a node.
    fn namespaces(&self, node: Option<&str>) -> Result<Arc<Namespaces>, String>;

    /// A socket to process 1 of a node, which starts programs.
    fn shell(&self, node: Option<&str>) -> Result<OwnedFd, String>;

    /// Starts a job that ends when the returned value is dropped, if jobs need anything here.
    fn start_job(&self) -> Result<Option<Box<dyn Job>>, String>;

    /// A client that watches the packets of a node.
    fn watcher(&self, node: Option<&str>) -> Result<Watcher, String>;
}

/// Reads one order per line, and answers each with one line.
fn answer_all(served: &dyn Served, connection: &UnixStream) {
    let mut orders = BufReader::new(connection);
    let (mut watcher, mut job) = (None, None);
    loop {
        let mut line = String::new();
        match (&mut orders).take(LONGEST_ORDER).read_line(&mut line) {
            Ok(length) if length > 0 => {}
            _ => return,
        }
        let sent = match serde_json::from_str(&line) {
            Ok(Request { node, order }) => {
                let node = node.as_deref();
                match order {
                    Order::Namespaces => hand_over(connection, served.namespaces(node)),
                    Order::Shell => match served.shell(node) {
                        Ok(shell) => send(connection, &Ok(Value::Null), &[shell.as_fd()]),
                        Err(error) => send(connection, &Err(error), &[]),
                    },
                    Order::Packets { .. } => {
                        send(connection, &news(served, node, &mut watcher), &[])
                    }
                    Order::Job => {
                        let started = served.start_job();
                        let variables = started.map(|started| {
                            job = started;
                            json!(job.as_ref().map(|job| job.variables()).unwrap_or_default())
                        });
                        send(connection, &variables, &[])
                    }
                    order => send(connection, &served.execute(node, &order), &[]),
                }
            }
            Err(error) => send(connection, &Err(format!("invalid order: {error}")), &[]),
        };
        if sent.is_err() || !line.ends_with('\n') {
            return;
        }
    }
}

/// The operations that have ended since the connection last asked. A connection watches one node.
fn news(
    served: &dyn Served,
    node: Option<&str>,
    watcher: &mut Option<Watcher>,
) -> Result<Value, String> {
    if watcher.is_none() {
        *watcher = Some(served.watcher(node)?);
    }
    Ok(watcher.as_mut().map_or(Value::Null, Watcher::news))
}

fn hand_over(to: &UnixStream, namespaces: Result<Arc<Namespaces>, String>) -> io::Result<()> {
    let namespaces = match namespaces {
        Ok(namespaces) => namespaces,
        Err(error) => return send(to, &Err(error), &[]),
    };
    let (handover, fds) = namespaces.handover();
    send(to, &Ok(serde_json::to_value(handover)?), &fds)
}

/// Opens the directory of a node. Its contents are not trusted, because another user may be able to
/// write there.
pub(crate) fn directory(dir: &Path) -> Result<File, ServeError> {
    let what = || format!("open the directory {}", dir.display());
    let directory = OpenOptions::new()
        .read(true)
        .custom_flags((OFlag::O_DIRECTORY | OFlag::O_CLOEXEC).bits())
        .open(dir)
        .doing(what)?;
    let (owner, user) = (directory.metadata().doing(what)?.uid(), geteuid());
    if owner == user.as_raw() {
        return Ok(directory);
    }
    Err(ServeError::Input(format!(
        "the directory {} belongs to user {owner}, and you are user {user}: a node is served, \
         entered and inspected by one user, and never by root for another",
        dir.display()
    )))
}

/// The socket's path by way of a descriptor, because a socket's address has no room for a long
/// path.
pub(crate) fn socket(directory: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{SOCKET}", directory.as_raw_fd()))
}

/// A connection to the node of a directory.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: UnixStream,
}

impl Connection {
    /// Connects to the node, which must be of this user.
    pub(crate) fn open(dir: &Path) -> Result<Self, ServeError> {
        let no_node = |error: io::Error| {
            let dir = dir.display();
            ServeError::Input(format!(
                "there is no node in {dir} ({error}): start one with cxi-mock serve --dir {dir}"
            ))
        };
        if !dir.is_dir() {
            return Err(no_node(io::ErrorKind::NotFound.into()));
        }
        let stream = UnixStream::connect(socket(&directory(dir)?)).map_err(no_node)?;
        let server = peer(&stream).doing(|| "find out who serves the node".to_owned())?;
        let user = geteuid();
        if server != user.as_raw() {
            return Err(ServeError::Input(format!(
                "the node in {} is served by user {server}, and you are user {user}: enter it as \
                 that user",
                dir.display()
            )));
        }
        Ok(Self { stream })
    }

    /// Sends an order for a node, or for all, and returns the answer.
    pub(crate) fn send(&self, node: Option<&str>, order: Order) -> Result<Value, ServeError> {
        self.exchange(node, order).map(|(answer, _)| answer)
    }

    /// The namespaces of a node.
    pub(crate) fn namespaces(&self, node: Option<&str>) -> Result<Namespaces, ServeError> {
        let (handover, fds) = self.exchange(node, Order::Namespaces)?;
        let namespaces = serde_json::from_value(handover)
            .ok()
            .and_then(|handover| Namespaces::of_node(handover, fds));
        namespaces.ok_or_else(|| {
            ServeError::Input("the node did not hand over its namespaces".to_owned())
        })
    }

    /// A socket to process 1 of a node.
    pub(crate) fn shell(&self, node: &str) -> Result<OwnedFd, ServeError> {
        let (_, fds) = self.exchange(Some(node), Order::Shell)?;
        let shell = fds.into_iter().next();
        shell.ok_or_else(|| ServeError::Input("the node did not hand over a socket".to_owned()))
    }

    fn exchange(
        &self,
        node: Option<&str>,
        order: Order,
    ) -> Result<(Value, Vec<OwnedFd>), ServeError> {
        let what = || "talk to the node".to_owned();
        let node = node.map(str::to_owned);
        let mut line = serde_json::to_vec(&Request { node, order }).doing(what)?;
        line.push(b'\n');
        (&self.stream).write_all(&line).doing(what)?;
        let (answer, fds) = receive(&self.stream).doing(what)?;
        Ok((answer.map_err(ServeError::Input)?, fds))
    }

    /// Readable when the node is gone.
    pub(crate) fn lifeline(&self) -> &UnixStream {
        &self.stream
    }
}

/// The answer, or the reason why there is none.
pub(crate) type Answer = Result<Value, String>;

/// Sends an answer.
pub(crate) fn send(to: &UnixStream, answer: &Answer, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(6))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut rest = line.as_slice();
    while !rest.is_empty() {
        let sent = sendmsg(to, &[IoSlice::new(rest)], &mut control, SendFlags::NOSIGNAL)?;
        control.clear();
        rest = rest.get(sent..).unwrap_or_default();
    }
    Ok(())
}

/// Receives an answer and the descriptors that came with it.
pub(crate) fn receive(from: &UnixStream) -> io::Result<(Answer, Vec<OwnedFd>)> {
    let (mut line, mut fds) = (Vec::new(), Vec::new());
    while line.last() != Some(&b'\n') {
        let mut bytes = [0; 4096];
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(6))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let into = &mut [IoSliceMut::new(&mut bytes)];
        let length = recvmsg(from, into, &mut control, RecvFlags::CMSG_CLOEXEC)?.bytes;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = message {
                fds.extend(received);
            }
        }
        let received = bytes.get(..length).filter(|received| !received.is_empty());
        line.extend_from_slice(received.ok_or(io::ErrorKind::UnexpectedEof)?);
    }
    Ok((serde_json::from_slice(&line)?, fds))
}
