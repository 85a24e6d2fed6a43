//! An open NIC behind a socket.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use super::link::{Asked, Link};
use super::userfault::userfault;
use super::wire::Question;
use crate::reachable::Reachable;
use crate::{Errno, Mapping, Opcode, Request, Transport};

/// An open NIC of a node behind a socket.
///
/// Dropping it closes the NIC, unless a child process that was made by fork still has it: the LNIs
/// that were allocated through it are freed, with everything below them. Memory is kept as by
/// [`CharDev`](crate::CharDev).
///
/// The caller of a command is the process that sends it, as with a character device. In a child process
/// that has executed no program, memory that commands hand to the NIC is that of the child.
#[derive(Debug)]
pub struct SocketFile {
    link: Link,
    reachable: Reachable,
}

impl SocketFile {
    pub(super) fn open(path: &Path, number: u32) -> io::Result<Self> {
        let link = Link::open(path.to_owned(), number)?;
        Ok(Self { link, reachable: Reachable::default() })
    }

    /// A duplicate of the descriptor of the connection, which keeps the NIC open. Nothing can be done
    /// with it but to close it.
    ///
    /// # Errors
    ///
    /// EMFILE; those of connecting again, after a fork.
    pub fn connection(&self) -> io::Result<OwnedFd> {
        self.link.duplicate()
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

    fn command(&self, request: &mut Request<'_>) -> Result<usize, Errno> {
        let (command, reads_response) = (request.command(), reads_response(request));
        let length = u32::try_from(command.len()).map_err(|_| Errno::EINVAL)?;
        let (response, list) = request.buffers();
        let contents = if reads_response { response.to_vec() } else { Vec::new() };
        let parts = [command, contents.as_slice()];
        let asked = Asked { question: Question::Command, number: length, parts, descriptor: None };
        let answer = self.link.ask(asked, response, list);
        answer.map_err(|error| Errno::from_io(&error))?.map(|_| command.len())
    }
}

/// Returns whether the driver reads what is in the buffer for the response.
fn reads_response(request: &Request<'_>) -> bool {
    request.opcode() == Opcode::PTE_STATUS || request.pointers().list_in_response.is_some()
}

impl Transport for SocketFile {
    /// One question and its answer, in turn with other threads. A response or list that is longer than
    /// its buffer is EFAULT, and the command was executed. EIO if the server is gone.
    fn submit(&self, mut request: Request<'_>) -> Result<(), Errno> {
        if self.reachable.concerns(&request) {
            self.reachable.follow(request, |request| self.command(request))
        } else {
            self.command(&mut request)
        }
        .map(drop)
    }

    fn map(&self, offset: u64, len: usize) -> Result<Mapping, Errno> {
        let window = self.window(offset, len)?;
        let mapping = Mapping::from_file(&window.memory, offset, len)?;
        if window.is_doorbell {
            self.trap(offset, mapping.address(), len);
        }
        Ok(mapping)
    }
}

/// The memory of a window of a [`SocketFile`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Window {
    /// The memory, to be mapped at the offset of the window.
    pub memory: OwnedFd,
    /// Stores to the window ring a doorbell. Once it is mapped, [`SocketFile::trap`] should be called.
    pub is_doorbell: bool,
}
