//! The socket by which programs on this project's libraries reach a node, without its mounts.
//!
//! Each connection has a thread, so that no program waits for another one's answers.

use std::collections::{HashMap, VecDeque};
use std::fs::{self, DirBuilder};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Once, OnceLock, Weak};
use std::thread;
use std::time::Duration;

use cxi::environment::{NODE_VARIABLE, WINDOWS_VARIABLE};
use cxi_ioctl::Errno;
use cxi_ioctl::socket::wire::{
    Head, LONGEST_LIST, LONGEST_QUESTION, LONGEST_RESPONSE, PACKET, Question, Token,
};
use cxi_mock::serve::Windows;
use fuser::INodeNo;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::stat::{Mode, umask};
use nix::unistd::{Pid, geteuid};
use parking_lot::{Condvar, Mutex};
use rustix::cmsg_space;
use rustix::io::retry_on_intr;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType,
    accept_with, bind, connect, listen, recvmsg, sendmsg, shutdown, socket_with,
};
use zerocopy::{FromBytes as _, IntoBytes as _};

use super::bells::Bells;
use super::budget::Share;
use super::device::{Call, Caller};
use super::error::{Doing, ServeError, say};
use super::memory::ProcessMemory;
use super::messages::MessageBuffers;
use super::namespaces::{Variable, number_outside, user_outside};
use super::paths::Paths;
use super::server::{OpenFile, Server};
use super::userfault::{Range, Userfault};
use super::view::View;

/// The socket's name in the directory of a node.
const SOCKET: &str = "node.sock";
/// Connections that have not been accepted yet.
const BACKLOG: i32 = 128;
/// Refused connections that are kept open, because their programs may not have read the answer yet.
const REFUSALS: usize = 16;
/// The stack of a thread that answers.
const STACK: usize = 256 << 10;
/// Time in which no connection is accepted after accepting one has failed.
const PAUSE: Duration = Duration::from_millis(10);
/// Longest time that a connection waits for files to be closed that were closed before.
const CLOSING: Duration = Duration::from_secs(1);

/// A socket that nobody answers yet.
#[derive(Debug)]
pub(crate) struct Door {
    listener: Arc<OwnedFd>,
    guard: DoorGuard,
}

impl Door {
    /// Makes the socket of a node: in its directory, or where nobody has named one. Programs that see files
    /// can do without, as where the path is too long for an address.
    pub(crate) fn of_node(
        view: &View,
        directory: Option<&Path>,
    ) -> Result<Option<Self>, ServeError> {
        match directory.map_or_else(Self::somewhere, Self::in_directory) {
            Err(error) if !view.is_behind_socket() => {
                static SAID: Once = Once::new();
                // Once for all nodes of a cluster.
                SAID.call_once(|| {
                    say(format_args!(
                        "{error}; programs have only the files of the node, also where the kernel maps no \
                         windows of them"
                    ));
                });
                Ok(None)
            }
            door => door.map(Some),
        }
    }

    fn in_directory(directory: &Path) -> Result<Self, ServeError> {
        let directory = fs::canonicalize(directory)
            .doing(|| format!("find the directory {}", directory.display()))?;
        Self::at(directory.join(SOCKET))
    }

    /// Those of nodes that were killed are removed.
    fn somewhere() -> Result<Self, ServeError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let directory = own_directory()?;
        remove_dead(&directory);
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = directory.join(format!("{}-{count}.sock", std::process::id()));
            // In another PID namespace, which shares the directory, a process may have the same number.
            if !path.exists() {
                return Self::at(path);
            }
        }
    }

    fn at(path: PathBuf) -> Result<Self, ServeError> {
        let what = || format!("make the socket {}", path.display());
        let address = SocketAddrUnix::new(&path).doing(what)?;
        let listener = seqpacket().doing(what)?;
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error).doing(what),
            _ => {}
        }
        // Programs of other users may be on root's node, as they may open its devices.
        let others =
            if user_outside().is_root() { Mode::empty() } else { Mode::S_IRWXG | Mode::S_IRWXO };
        let before = umask(others);
        let bound = bind(&listener, &address);
        umask(before);
        bound.doing(what)?;
        listen(&listener, BACKLOG).doing(what)?;
        let inode = fs::metadata(&path).doing(what)?.ino();
        let listener = Arc::new(listener);
        let guard = DoorGuard { path, inode, listener: Some(Arc::clone(&listener)) };
        Ok(Self { listener, guard })
    }

    /// The variable by which libraries find it, on a node that is behind it or has files.
    pub(crate) fn variable(&self, view: &View) -> Variable {
        let name = if view.is_behind_socket() { NODE_VARIABLE } else { WINDOWS_VARIABLE };
        (name.into(), self.guard.path.clone().into())
    }

    /// Starts to answer.
    pub(crate) fn serve(self, server: &Arc<Server>) -> Result<DoorGuard, ServeError> {
        let Self { listener, guard } = self;
        let opened = Arc::new(Opened {
            paths: Paths::new(Arc::clone(server)),
            server: Arc::clone(server),
            files: Mutex::default(),
            connections: Mutex::default(),
            closed: Condvar::new(),
        });
        thread::Builder::new()
            .name("door".to_owned())
            .spawn(move || accept_all(&listener, &opened))
            .doing(|| "start to answer at the socket".to_owned())?;
        Ok(guard)
    }
}

/// Removes the socket when the node ends.
#[derive(Debug)]
pub(crate) struct DoorGuard {
    path: PathBuf,
    inode: u64,
    /// `None` for one whose node was killed.
    listener: Option<Arc<OwnedFd>>,
}

impl Drop for DoorGuard {
    fn drop(&mut self) {
        if let Some(listener) = &self.listener {
            // This ends the thread that accepts.
            let _ = shutdown(listener, Shutdown::Both);
        }
        // Another node may have taken its place.
        if fs::metadata(&self.path).is_ok_and(|found| found.ino() == self.inode) {
            let _ = fs::remove_file(&self.path);
        }
        let mut records = self.path.file_name().unwrap_or_default().to_owned();
        records.push(".d");
        let _ = fs::remove_dir_all(self.path.with_file_name(records));
    }
}

fn seqpacket() -> rustix::io::Result<OwnedFd> {
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
}

/// A directory that belongs to this user, whom others could otherwise lead to sockets of theirs.
fn own_directory() -> Result<PathBuf, ServeError> {
    let (user, inside) = (user_outside(), geteuid());
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let above = runtime.filter(|above| above.is_absolute() && above.is_dir());
    let directory = match above {
        Some(above) => above.join("cxi-mock"),
        // Another user namespace, which shares the directory, may have a user of the same number.
        None => std::env::temp_dir().join(format!("cxi-mock-{}", number_outside(user))),
    };
    let what = || format!("make the directory {}", directory.display());
    let mode = if user.is_root() { 0o711 } else { 0o700 };
    match DirBuilder::new().mode(mode).create(&directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(error).doing(what);
        }
        _ => {}
    }
    let found = fs::symlink_metadata(&directory).doing(what)?;
    if !found.is_dir() || found.uid() != inside.as_raw() || found.mode() & 0o022 != 0 {
        return Err(ServeError::Input(format!(
            "{} is not a directory that only user {user} can write: remove it, or choose a directory \
             with --dir",
            directory.display()
        )));
    }
    Ok(directory)
}

fn remove_dead(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "sock") && is_dead(&path) {
            let inode = fs::metadata(&path).map_or(0, |found| found.ino());
            drop(DoorGuard { inode, path, listener: None });
        }
    }
}

fn is_dead(path: &Path) -> bool {
    let Ok(address) = SocketAddrUnix::new(path) else { return false };
    let refused = |socket| connect(&socket, &address) == Err(rustix::io::Errno::CONNREFUSED);
    seqpacket().is_ok_and(refused)
}

/// State that all connections of a node have in common.
#[derive(Debug)]
struct Opened {
    server: Arc<Server>,
    paths: Paths,
    files: Mutex<Vec<Weak<DoorFile>>>,
    connections: Mutex<Connections>,
    closed: Condvar,
}

#[derive(Debug, Default)]
struct Connections {
    next: u64,
    /// The sockets.
    live: HashMap<u64, Arc<OwnedFd>>,
}

/// A NIC that one or more connections have open.
#[derive(Debug)]
struct DoorFile {
    file: Arc<OpenFile>,
    server: Arc<Server>,
}

impl Drop for DoorFile {
    fn drop(&mut self) {
        self.server.interrupts.forget(self.file.function, self.file.client.number());
    }
}

/// An open file of a connection.
enum Opening {
    /// One that is closed with its last connection.
    Own(Arc<DoorFile>),
    /// A device file, which is closed with its last descriptor.
    File(Weak<OpenFile>),
}

impl Opening {
    fn file(&self) -> Result<Arc<OpenFile>, Errno> {
        match self {
            Self::Own(file) => Ok(Arc::clone(&file.file)),
            Self::File(file) => file.upgrade().ok_or(Errno::EBADF),
        }
    }
}

/// A connection.
struct Connection {
    number: u64,
    socket: Arc<OwnedFd>,
    caller: Caller,
    opened: Arc<Opened>,
    open: Option<(Opening, Option<Arc<ProcessMemory>>)>,
    /// The doorbells that the process has mapped.
    bells: Option<Bells>,
    /// Its place among those of its user.
    _share: Share,
}

impl Drop for Connection {
    fn drop(&mut self) {
        // The file is closed before a later connection goes on.
        self.bells = None;
        self.open = None;
        self.opened.connections.lock().live.remove(&self.number);
        self.opened.closed.notify_all();
    }
}

fn accept_all(listener: &OwnedFd, opened: &Arc<Opened>) {
    let mut refused = VecDeque::new();
    loop {
        let socket = match accept_with(listener, SocketFlags::CLOEXEC) {
            Ok(socket) => socket,
            // The node has ended.
            Err(rustix::io::Errno::INVAL) => return,
            Err(_) => {
                // The process is out of descriptors, for example. Other connections will close.
                thread::sleep(PAUSE);
                continue;
            }
        };
        let Ok(peer) = getsockopt(&socket, PeerCredentials) else { continue };
        let caller = Caller { pid: Pid::from_raw(peer.pid()), uid: peer.uid(), gid: peer.gid() };
        let Some(share) = opened.server.budgets.file(caller.uid) else {
            refuse(&mut refused, socket);
            continue;
        };
        let socket = Arc::new(socket);
        let mut connections = opened.connections.lock();
        connections.next += 1;
        let number = connections.next;
        connections.live.insert(number, Arc::clone(&socket));
        drop(connections);
        let opened = Arc::clone(opened);
        let (open, bells) = (None, None);
        let connection = Connection { number, socket, caller, opened, open, bells, _share: share };
        let thread = thread::Builder::new().name("answer".to_owned()).stack_size(STACK);
        let _ = thread.spawn(move || connection.run());
    }
}

/// Answers the first question of a connection in advance: there are too many. That takes no thread, and
/// few descriptors, however often a program connects.
fn refuse(refused: &mut VecDeque<OwnedFd>, socket: OwnedFd) {
    // Nothing was sent before, so this does not wait.
    let _ = send(&socket, &Answer::of(Err(Errno::EMFILE)));
    if refused.len() == REFUSALS {
        refused.pop_front();
    }
    refused.push_back(socket);
}

fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// A question with what came with it.
struct Asked {
    head: Head,
    bytes: Vec<u8>,
    descriptor: Option<OwnedFd>,
}

/// An answer.
#[derive(Default)]
struct Answer {
    errno: Option<Errno>,
    number: u32,
    response: Vec<u8>,
    list: Vec<u8>,
    descriptor: Option<Arc<OwnedFd>>,
}

impl Answer {
    fn of(result: Result<Self, Errno>) -> Self {
        result.unwrap_or_else(|errno| Self { errno: Some(errno), ..Self::default() })
    }

    fn response(response: &[u8]) -> Self {
        Self { response: response.to_vec(), ..Self::default() }
    }

    fn list(list: impl Into<Vec<u8>>) -> Self {
        Self { list: list.into(), ..Self::default() }
    }
}

impl Connection {
    fn run(mut self) {
        self.opened.await_closed(self.number);
        while let Some(asked) = receive(&self.socket) {
            let room = (index(asked.head.response), index(asked.head.list));
            let mut answer = match Question::of(asked.head.kind) {
                Some(Question::Command) => self.command(&asked),
                Some(question) => Answer::of(self.answer(question, asked)),
                None => Answer::of(Err(Errno::EPROTONOSUPPORT)),
            };
            if answer.response.len() > room.0 || answer.list.len() > room.1 {
                answer = Answer::of(Err(Errno::EOVERFLOW));
            }
            if send(&self.socket, &answer).is_err() {
                return;
            }
        }
    }

    fn answer(&mut self, question: Question, asked: Asked) -> Result<Answer, Errno> {
        let paths = &self.opened.paths;
        let text = || str::from_utf8(&asked.bytes).map_err(|_| Errno::ENOENT);
        Ok(match question {
            Question::Open => {
                let number = u16::try_from(asked.head.number).map_err(|_| Errno::ENOENT)?;
                let (token, file) = self.opened.open(number)?;
                self.join(Opening::Own(file), asked.descriptor);
                Answer::response(&token)
            }
            Question::Join => {
                let token: Token = asked.bytes.first_chunk().copied().ok_or(Errno::EPROTO)?;
                let own = self.opened.file_of(&token);
                let with_descriptor = || {
                    let file = self.opened.server.file_of(&token)?;
                    Some(Opening::File(Arc::downgrade(&file)))
                };
                let opening = own.map(Opening::Own).or_else(with_descriptor);
                self.join(opening.ok_or(Errno::EBADF)?, asked.descriptor);
                Answer::response(&token)
            }
            Question::Read => Answer::list(paths.read(text()?)?),
            Question::List => Answer::list(paths.names(text()?)?),
            Question::Link => Answer::list(paths.link(text()?)?),
            Question::Length => Answer::response(&paths.length(text()?)?.to_ne_bytes()),
            Question::Write => {
                let length = index(asked.head.number);
                let (path, contents) = asked.bytes.split_at_checked(length).ok_or(Errno::EPROTO)?;
                let path = str::from_utf8(path).map_err(|_| Errno::ENOENT)?;
                if !self.opened.server.authority.may_write(self.caller.uid) {
                    return Err(Errno::EACCES);
                }
                paths.write(path, contents)?;
                self.opened.server.stale.store(true, Ordering::Relaxed);
                Answer::default()
            }
            Question::Watch => {
                let wait = paths.wait_object(text()?)?;
                let server = &self.opened.server;
                let share = || server.budgets.file(self.caller.uid);
                let end = server.interrupts.watch(wait, share)?;
                Answer { descriptor: Some(Arc::new(end)), ..Answer::default() }
            }
            Question::Map => {
                let (file, _) = self.open.as_ref().ok_or(Errno::EBADF)?;
                let words = <[u64; 2]>::read_from_bytes(&asked.bytes).map_err(|_| Errno::EPROTO)?;
                let [offset, length] = words;
                let length = usize::try_from(length).map_err(|_| Errno::EINVAL)?;
                let window = Windows::of(&file.file()?.client).share(offset, length)?;
                let number = window.is_doorbell.into();
                Answer { number, descriptor: Some(window.memory), ..Answer::default() }
            }
            Question::Trap => {
                let words = <[u64; 3]>::read_from_bytes(&asked.bytes).map_err(|_| Errno::EPROTO)?;
                let [offset, start, len] = words;
                self.trap(asked.descriptor.ok_or(Errno::EPROTO)?, Range { start, len }, offset)?;
                Answer::default()
            }
            _ => return Err(Errno::EPROTONOSUPPORT),
        })
    }

    /// Executes a command. Even if it is refused, there may be a response.
    fn command(&self, asked: &Asked) -> Answer {
        let Some((open, memory)) = &self.open else { return Answer::of(Err(Errno::EBADF)) };
        let Some((command, contents)) = asked.bytes.split_at_checked(index(asked.head.number))
        else {
            return Answer::of(Err(Errno::EPROTO));
        };
        let room = (
            index(asked.head.response).min(LONGEST_RESPONSE),
            index(asked.head.list).min(LONGEST_LIST),
        );
        let mut buffers = MessageBuffers {
            process: self.caller.pid,
            memory: memory.clone(),
            contents: contents.to_vec(),
            room,
            response: Vec::new(),
            list: Vec::new(),
            list_address: None,
        };
        let file = match open.file() {
            Ok(file) => file,
            Err(errno) => return Answer::of(Err(errno)),
        };
        let call = Call { file, caller: self.caller, command: command.to_vec() };
        let errno = call.execute(&self.opened.server, Some(&mut buffers)).err();
        Answer { errno, response: buffers.response, list: buffers.list, ..Answer::default() }
    }

    /// Waits for stores to a doorbell instead of polling it.
    fn trap(&mut self, userfault: OwnedFd, range: Range, offset: u64) -> Result<(), Errno> {
        let (open, _) = self.open.as_ref().ok_or(Errno::EBADF)?;
        // Each userfaultfd reaches all memory of the process, so the first one will do.
        let bells = if let Some(bells) = &self.bells {
            bells
        } else {
            let bells = Bells::new(Userfault::accept(userfault)?, &open.file()?);
            self.bells.insert(bells.map_err(|error| Errno::from_io(&error))?)
        };
        bells.add(range, offset)
    }

    fn join(&mut self, file: Opening, memory: Option<OwnedFd>) {
        let memory = memory.and_then(|memory| ProcessMemory::passed(memory, self.caller.pid));
        self.open = Some((file, memory));
    }
}

impl Opened {
    /// Opens a NIC; returns the open file, and what identifies it.
    fn open(&self, number: u16) -> Result<(Token, Arc<DoorFile>), Errno> {
        let function = self.server.function(number).ok_or(Errno::ENOENT)?;
        if function.nic.faults().is_unplugged() {
            return Err(Errno::ENOENT);
        }
        let client = function.open()?;
        self.server.stale.store(true, Ordering::Relaxed);
        Windows::of(&client).share_all();
        let file = OpenFile {
            client,
            function: number,
            inode: INodeNo(0),
            backing: None,
            lni_forms: AtomicU8::new(0),
            said_differs: Arc::clone(&function.said_differs),
            token: OnceLock::new(),
            _share: None,
        };
        let file = Arc::new(DoorFile { file: Arc::new(file), server: Arc::clone(&self.server) });
        let token = file.file.token()?;
        let mut files = self.files.lock();
        files.retain(|file| file.strong_count() > 0);
        files.push(Arc::downgrade(&file));
        drop(files);
        Ok((token, file))
    }

    /// The file of connections that a token identifies.
    fn file_of(&self, token: &Token) -> Option<Arc<DoorFile>> {
        let files = self.files.lock();
        files.iter().filter_map(Weak::upgrade).find(|file| file.file.is_identified_by(token))
    }

    /// Waits until the files are closed whose programs have closed them, so that no program overtakes
    /// what it or its parent did before.
    fn await_closed(&self, number: u64) {
        let live = self.connections.lock();
        let earlier: Vec<_> = live
            .live
            .iter()
            .filter(|(other, _)| **other < number)
            .map(|(other, socket)| (*other, Arc::clone(socket)))
            .collect();
        drop(live);
        let mut ends: Vec<_> =
            earlier.iter().map(|(_, end)| PollFd::new(end.as_fd(), PollFlags::empty())).collect();
        if poll(&mut ends, PollTimeout::ZERO).is_err() {
            return;
        }
        let left = earlier.iter().zip(&ends).filter(|(_, end)| end.any() == Some(true));
        let left: Vec<u64> = left.map(|((other, _), _)| *other).collect();
        let mut connections = self.connections.lock();
        let is_left = |connections: &mut Connections| {
            left.iter().any(|other| connections.live.contains_key(other))
        };
        self.closed.wait_while_for(&mut connections, is_left, CLOSING);
    }
}

/// Receives a question; `None` at the end of the connection, or if it is none.
fn receive(socket: &OwnedFd) -> Option<Asked> {
    let mut head = Head::default();
    let mut bytes = vec![0; LONGEST_QUESTION];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(head.as_mut_bytes()), IoSliceMut::new(&mut bytes)];
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = retry_on_intr(|| recvmsg(socket, &mut parts, &mut control, flags)).ok()?;
    let descriptors = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let descriptor = descriptors.flatten().next();
    bytes.truncate(received.bytes.checked_sub(size_of::<Head>())?);
    Some(Asked { head, bytes, descriptor })
}

fn send(socket: &OwnedFd, answer: &Answer) -> rustix::io::Result<()> {
    let Answer { errno, number, response, list, descriptor } = answer;
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let head = Head {
        kind: errno.map_or(0, |errno| errno.raw().cast_unsigned()),
        number: *number,
        response: length(response),
        list: length(list),
    };
    let descriptors = descriptor.as_ref().map(AsFd::as_fd);
    packet(socket, [head.as_bytes(), response], descriptors)?;
    list.chunks(PACKET).try_for_each(|part| packet(socket, [part, &[]], None))
}

fn packet(
    socket: &OwnedFd,
    parts: [&[u8]; 2],
    descriptor: Option<BorrowedFd<'_>>,
) -> rustix::io::Result<()> {
    let parts = parts.map(IoSlice::new);
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if let Some(descriptor) = &descriptor {
        control.push(SendAncillaryMessage::ScmRights(std::slice::from_ref(descriptor)));
    }
    retry_on_intr(|| sendmsg(socket, &parts, &mut control, SendFlags::NOSIGNAL)).map(drop)
}
