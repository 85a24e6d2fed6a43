//! Windows of an open NIC, as memory that whoever serves the node passes.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::link::{Asked, Link};
use super::userfault::userfault;
use super::wire::{Question, Token};
use crate::{Errno, Mapping};

/// The memory of a window, which a node behind a socket has passed.
#[derive(Debug)]
#[non_exhaustive]
pub struct Window {
    /// The memory, to be mapped at the offset of the window.
    pub memory: OwnedFd,
    /// Stores to the window ring a doorbell. Once it is mapped, [`Windows::trap`] should be called.
    pub is_doorbell: bool,
}

/// The windows of an open NIC. They work until this is dropped.
#[derive(Debug)]
pub struct Windows {
    pub(super) link: Link,
}

impl Windows {
    /// Those of an open file of a node that also answers at a socket.
    fn of_file(file: BorrowedFd<'_>, socket: &Path) -> io::Result<Self> {
        let mut token = Token::default();
        // A driver refuses to be read.
        if rustix::io::read(file, &mut token)? != token.len() {
            return Err(Errno::EPROTO.into());
        }
        Ok(Self { link: Link::join(socket.to_owned(), token)? })
    }

    /// The memory of a window, to be mapped at the same offset. It does not shrink.
    ///
    /// # Errors
    ///
    /// EINVAL if the file has no such window, EIO if the NIC or the server is gone.
    pub fn window(&self, offset: u64, len: usize) -> Result<Window, Errno> {
        let parts = [&offset.to_ne_bytes()[..], &(len as u64).to_ne_bytes()[..]];
        let asked = Asked { question: Question::Map, number: 0, parts, descriptor: None };
        let answer = self.link.ask(asked, &mut [], &mut []);
        let answer = answer.map_err(|error| Errno::from_io(&error))??;
        let memory = answer.descriptor.ok_or(Errno::ENODEV)?;
        Ok(Window { memory, is_doorbell: answer.number == 1 })
    }

    /// Lets the server wait for stores to a [doorbell](Window::is_doorbell) that was mapped, so that it
    /// need not poll it. Nothing changes for the program: if that is not possible, the doorbell is polled.
    pub fn trap(&self, offset: u64, address: u64, len: usize) {
        let Some(userfault) = userfault() else { return };
        let words = [offset, address, len as u64].map(u64::to_ne_bytes);
        let parts = [words.as_flattened(), &[]];
        let descriptor = Some(userfault.as_fd());
        let asked = Asked { question: Question::Trap, number: 0, parts, descriptor };
        // A server that is gone is an error of what comes next.
        let _ = self.link.ask(asked, &mut [], &mut []);
    }

    /// Maps a window.
    ///
    /// # Errors
    ///
    /// As [`window`](Self::window); the errno of `mmap(2)`.
    pub fn map(&self, offset: u64, len: usize) -> Result<Mapping, Errno> {
        let window = self.window(offset, len)?;
        let mapping = Mapping::from_file(&window.memory, offset, len)?;
        if window.is_doorbell {
            self.trap(offset, mapping.address(), len);
        }
        Ok(mapping)
    }
}

/// A socket at which the server of a device file passes what `mmap(2)` of the file refuses.
///
/// It is the same open file: the socket only adds a way to its windows.
pub struct Beside {
    socket: PathBuf,
    windows: OnceLock<Windows>,
}

impl Beside {
    /// The socket at a path. Nothing is connected before a window is needed.
    #[must_use]
    pub fn new(socket: impl Into<PathBuf>) -> Self {
        Self { socket: socket.into(), windows: OnceLock::new() }
    }

    /// The windows of an open file, always the same one.
    ///
    /// # Errors
    ///
    /// ENODEV, as of mapping the file, if nobody at the socket knows it.
    pub fn windows(&self, file: impl AsFd) -> Result<&Windows, Errno> {
        if let Some(windows) = self.windows.get() {
            return Ok(windows);
        }
        let windows = Windows::of_file(file.as_fd(), &self.socket).map_err(|_| Errno::ENODEV)?;
        Ok(self.windows.get_or_init(|| windows))
    }
}

impl fmt::Debug for Beside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Beside").field("socket", &self.socket).finish_non_exhaustive()
    }
}
