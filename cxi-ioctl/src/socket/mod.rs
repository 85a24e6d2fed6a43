//! A node behind a socket: NICs and their files in sysfs for programs that use this project's
//! libraries, without device nodes, mounts or privileges.
//!
//! A program connects once for each open NIC, and once for files of sysfs. The server has to be the
//! program's user or root. It knows the calling process from the kernel. The bytes of responses
//! and lists are part of its answers; for memory that commands hand to the NIC, the program passes a
//! descriptor of its own address space.

mod file;
mod link;
mod userfault;
mod windows;
pub mod wire;

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::net::{RecvFlags, recv};

pub use file::SocketFile;
pub use windows::{Beside, Window, Windows};

use crate::Errno;
use link::{Answer, Asked, Link};
use wire::Question;

/// Room for what sysfs answers: a NIC's directory of telemetry has more than a thousand names.
const SYSFS_ROOM: usize = 1 << 20;

/// A node behind a socket. A clone shares the connection for files of sysfs.
///
/// ```no_run
/// use cxi_ioctl::socket::NodeSocket;
///
/// let node = NodeSocket::at("/run/user/1000/cxi/node.sock");
/// let nic = node.open(0)?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct NodeSocket {
    sysfs: Arc<Link>,
}

impl NodeSocket {
    /// The node that is served at a path. Nothing is connected yet.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { sysfs: Arc::new(Link::new(path.into())) }
    }

    /// The path of the socket.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.sysfs.path()
    }

    /// Opens the NIC `/dev/cxiN` of the node.
    ///
    /// # Errors
    ///
    /// Those of `connect(2)`, ENOENT for a socket or NIC that is not there among them;
    /// [`io::ErrorKind::PermissionDenied`] if another user serves the node; EIO if the NIC has been
    /// removed.
    pub fn open(&self, number: u32) -> io::Result<SocketFile> {
        SocketFile::open(self.path(), number)
    }

    /// Reads a file of sysfs by its path on the node, such as `/sys/class/net/hsn0/address`.
    ///
    /// # Errors
    ///
    /// That of reading the file; those of `connect(2)`, as for [`open`](Self::open).
    pub fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.list_of(Question::Read, path)
    }

    /// The names in a directory of sysfs.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read); ENOTDIR.
    pub fn names(&self, path: &Path) -> io::Result<Vec<OsString>> {
        let list = self.list_of(Question::List, path)?;
        let names = list.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Ok(names.map(|name| OsString::from_vec(name.to_vec())).collect())
    }

    /// The target of a link of sysfs.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read); EINVAL for what is not a link.
    pub fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        self.list_of(Question::Link, path).map(|target| OsString::from_vec(target).into())
    }

    /// The length of a file of sysfs, as `stat(2)` shows it.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn length(&self, path: &Path) -> io::Result<u64> {
        let mut length = [0; size_of::<u64>()];
        self.ask(Question::Length, 0, [path.as_os_str().as_bytes(), &[]], &mut length, &mut [])?;
        Ok(u64::from_ne_bytes(length))
    }

    /// Writes a file of sysfs.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read); EACCES without the right to write it.
    pub fn write(&self, path: &Path, contents: &[u8]) -> io::Result<()> {
        let path = path.as_os_str().as_bytes();
        let number = u32::try_from(path.len()).map_err(|_| io::Error::from(Errno::EINVAL))?;
        self.ask(Question::Write, number, [path, contents], &mut [], &mut []).map(drop)
    }

    /// Watches a wait object by its file in sysfs. The descriptor reports POLLPRI when the object is
    /// woken, until [`rearm`] is called.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read); EINVAL for another file.
    pub fn watch(&self, path: &Path) -> io::Result<OwnedFd> {
        let parts = [path.as_os_str().as_bytes(), &[]];
        let answer = self.ask(Question::Watch, 0, parts, &mut [], &mut [])?;
        answer.descriptor.ok_or_else(|| Errno::EPROTO.into())
    }

    fn list_of(&self, question: Question, path: &Path) -> io::Result<Vec<u8>> {
        let mut list = vec![0; SYSFS_ROOM];
        let answer =
            self.ask(question, 0, [path.as_os_str().as_bytes(), &[]], &mut [], &mut list)?;
        list.truncate(answer.list);
        Ok(list)
    }

    fn ask(
        &self,
        question: Question,
        number: u32,
        parts: [&[u8]; 2],
        response: &mut [u8],
        list: &mut [u8],
    ) -> io::Result<Answer> {
        let asked = Asked { question, number, parts, descriptor: None };
        Ok(self.sysfs.ask(asked, response, list)??)
    }
}

/// Takes what a descriptor of [`NodeSocket::watch`] has reported, so that it reports only what is newer.
pub fn rearm(interrupt: impl AsFd) {
    let mut bytes = [0; 64];
    // There may be nothing to take.
    let _ = recv(&interrupt, &mut bytes, RecvFlags::OOB | RecvFlags::DONTWAIT);
    while recv(&interrupt, &mut bytes, RecvFlags::DONTWAIT).is_ok_and(|(length, _)| length > 0) {}
}

/// Two nodes are the same if their sockets have the same path.
impl PartialEq for NodeSocket {
    fn eq(&self, other: &Self) -> bool {
        self.path() == other.path()
    }
}

impl Eq for NodeSocket {}
