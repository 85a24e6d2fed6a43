//! A connection to whoever serves a node.

use std::fmt;
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use rustix::cmsg_space;
use rustix::io::retry_on_intr;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
    connect, recvmsg, sendmsg, socket_with,
};
use rustix::process::{Pid, getegid, geteuid, getpid};
use zerocopy::IntoBytes;

use super::wire::{Head, PACKET, Question, Token};
use crate::Errno;

/// Longest time that an answer may take. Commands of a driver take milliseconds.
const PATIENCE: Duration = Duration::from_secs(60);
const ECONNRESET: Errno = Errno::from_raw(nix::libc::ECONNRESET);
/// The longest path of a socket, with its null byte.
const SOCKET_PATH: usize = 108;

/// A process as a server sees it: the server knows the process and the user that have connected, and
/// reaches the memory of that process only.
type Who = (Pid, u32, u32);

fn who() -> Who {
    (getpid(), geteuid().as_raw(), getegid().as_raw())
}

/// A question.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) question: Question,
    pub(super) number: u32,
    pub(super) parts: [&'a [u8]; 2],
    pub(super) descriptor: Option<BorrowedFd<'a>>,
}

/// An answer, apart from its bytes.
#[derive(Debug)]
pub(super) struct Answer {
    /// Depends on the question.
    pub(super) number: u32,
    /// Number of bytes of the response buffer that are of the answer.
    pub(super) response: usize,
    /// Number of bytes of the list buffer that are of the answer.
    pub(super) list: usize,
    pub(super) descriptor: Option<OwnedFd>,
}

/// A connection, which is made when it is needed: at the first question, and after a fork or a change of
/// the user.
///
/// One question is asked at a time. A child process that is made while another thread asks, and then
/// goes on without executing a program, cannot ask.
pub(super) struct Link {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The NIC that the connection has open; any number with a token from the start, which says what it is.
    device: Option<u32>,
    token: Option<Token>,
    connection: Option<Connection>,
    /// An answer is missing, so that the next one could be taken for it.
    broken: bool,
}

#[derive(Debug)]
struct Connection {
    socket: OwnedFd,
    who: Who,
}

impl Link {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, state: Mutex::default() }
    }

    /// A connection that has a NIC open.
    pub(super) fn open(path: PathBuf, device: u32) -> io::Result<Self> {
        let state = State { device: Some(device), ..State::default() };
        let link = Self { path, state: Mutex::new(state) };
        link.with(|_| Ok(()))?;
        Ok(link)
    }

    /// A connection that has a file open which is also open elsewhere.
    pub(super) fn join(path: PathBuf, token: Token) -> io::Result<Self> {
        let state = State { device: Some(0), token: Some(token), ..State::default() };
        let link = Self { path, state: Mutex::new(state) };
        link.with(|_| Ok(()))?;
        Ok(link)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Asks; the answer's bytes go to the buffers. With an error, too: some commands explain one.
    pub(super) fn ask(
        &self,
        asked: Asked<'_>,
        response: &mut [u8],
        list: &mut [u8],
    ) -> io::Result<Result<Answer, Errno>> {
        self.with(|socket| exchange(socket, asked, response, list))
    }

    /// A duplicate of the connection's descriptor.
    pub(super) fn duplicate(&self) -> io::Result<OwnedFd> {
        self.with(|socket| socket.try_clone_to_owned())
    }

    fn with<T>(&self, act: impl FnOnce(BorrowedFd<'_>) -> io::Result<T>) -> io::Result<T> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.broken {
            return Err(Errno::EIO.into());
        }
        let who = who();
        let current = state.connection.take().filter(|connection| connection.who == who);
        let connection = match current {
            Some(connection) => connection,
            None => Connection { socket: state.connect(&self.path)?, who },
        };
        let result = act(connection.socket.as_fd());
        match &result {
            Ok(_) => state.connection = Some(connection),
            // Without an open file, another connection is as good.
            Err(_) => state.broken = state.device.is_some(),
        }
        result.map_err(|error| match Errno::from_io(&error) {
            // The server is gone, as a NIC that was removed.
            Errno::EPIPE | Errno::ENOTCONN | ECONNRESET => Errno::EIO.into(),
            Errno::EAGAIN => Errno::ETIMEDOUT.into(),
            _ => error,
        })
    }
}

impl State {
    fn connect(&mut self, path: &Path) -> io::Result<OwnedFd> {
        let socket = connect_to(path)?;
        let Some(device) = self.device else { return Ok(socket) };
        let (question, part) = match &self.token {
            Some(token) => (Question::Join, token.as_slice()),
            None => (Question::Open, [].as_slice()),
        };
        let memory = File::options().read(true).write(true).open("/proc/self/mem").ok();
        let descriptor = memory.as_ref().map(AsFd::as_fd);
        let asked = Asked { question, number: device, parts: [part, &[]], descriptor };
        let mut token = Token::default();
        send(socket.as_fd(), asked, (token.len(), 0))?;
        receive(socket.as_fd(), &mut token, &mut [])??;
        self.token.get_or_insert(token);
        Ok(socket)
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Connects to a server of this user or of root; others could make this process believe anything.
fn connect_to(path: &Path) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    // A socket's address has no room for a long path.
    let long = path.as_os_str().as_bytes().len() >= SOCKET_PATH;
    let directory = match (long, path.parent()) {
        (true, Some(parent)) => Some(File::open(parent)?),
        _ => None,
    };
    let short = directory.as_ref().zip(path.file_name()).map(|(directory, name)| {
        Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string()).join(name)
    });
    connect(&socket, &SocketAddrUnix::new(short.as_deref().unwrap_or(path))?)?;
    // A server in another PID namespace has no number here, which rustix could not express.
    let (server, user) = (getsockopt(&socket, PeerCredentials)?.uid(), geteuid().as_raw());
    if server != user && server != 0 {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "the node at {} is served by user {server}: expected user {user} or root",
                path.display()
            ),
        ));
    }
    for timeout in [Timeout::Recv, Timeout::Send] {
        set_socket_timeout(&socket, timeout, Some(PATIENCE))?;
    }
    Ok(socket)
}

fn exchange(
    socket: BorrowedFd<'_>,
    asked: Asked<'_>,
    response: &mut [u8],
    list: &mut [u8],
) -> io::Result<Result<Answer, Errno>> {
    send(socket, asked, (response.len(), list.len()))?;
    receive(socket, response, list)
}

fn send(
    socket: BorrowedFd<'_>,
    asked: Asked<'_>,
    (response, list): (usize, usize),
) -> io::Result<()> {
    let head = Head {
        kind: asked.question.code(),
        number: asked.number,
        response: u32::try_from(response).unwrap_or(u32::MAX),
        list: u32::try_from(list).unwrap_or(u32::MAX),
    };
    let [first, second] = asked.parts;
    let parts = [IoSlice::new(head.as_bytes()), IoSlice::new(first), IoSlice::new(second)];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if let Some(descriptor) = &asked.descriptor {
        control.push(SendAncillaryMessage::ScmRights(std::slice::from_ref(descriptor)));
    }
    retry_on_intr(|| sendmsg(socket, &parts, &mut control, SendFlags::NOSIGNAL))?;
    Ok(())
}

fn receive(
    socket: BorrowedFd<'_>,
    response: &mut [u8],
    list: &mut [u8],
) -> io::Result<Result<Answer, Errno>> {
    let mut head = Head::default();
    let (length, descriptor) = packet(socket, head.as_mut_bytes(), response)?;
    let answered = Answer {
        number: head.number,
        response: usize::try_from(head.response).map_err(io::Error::other)?,
        list: usize::try_from(head.list).map_err(io::Error::other)?,
        descriptor,
    };
    if length != size_of::<Head>() + answered.response || answered.list > list.len() {
        return Err(Errno::EPROTO.into());
    }
    for part in list[..answered.list].chunks_mut(PACKET) {
        let (length, _) = packet(socket, part, &mut [])?;
        if length != part.len() {
            return Err(Errno::EPROTO.into());
        }
    }
    let errno = i32::try_from(head.kind).unwrap_or(nix::libc::EPROTO);
    Ok(if errno == 0 { Ok(answered) } else { Err(Errno::from_raw(errno)) })
}

/// Receives a packet, and a descriptor that comes with it. A server that is gone is EIO, as for a NIC
/// that was removed.
fn packet(
    socket: BorrowedFd<'_>,
    first: &mut [u8],
    second: &mut [u8],
) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(first), IoSliceMut::new(second)];
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = retry_on_intr(|| recvmsg(socket, &mut parts, &mut control, flags))?;
    let descriptors = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let descriptor = descriptors.flatten().next();
    if received.bytes == 0 {
        return Err(Errno::EIO.into());
    }
    if received.flags.contains(ReturnFlags::TRUNC) {
        return Err(Errno::EPROTO.into());
    }
    Ok((received.bytes, descriptor))
}
