//! An open NIC behind a socket.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use super::link::{Asked, Link};
use super::windows::Windows;
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
    windows: Windows,
    reachable: Reachable,
}

impl SocketFile {
    pub(super) fn open(path: &Path, number: u32) -> io::Result<Self> {
        let link = Link::open(path.to_owned(), number)?;
        Ok(Self { windows: Windows { link }, reachable: Reachable::default() })
    }

    /// A duplicate of the descriptor of the connection, which keeps the NIC open. Nothing can be done
    /// with it but to close it.
    ///
    /// # Errors
    ///
    /// EMFILE; those of connecting again, after a fork.
    pub fn connection(&self) -> io::Result<OwnedFd> {
        self.windows.link.duplicate()
    }

    /// The windows of the NIC.
    #[must_use]
    pub fn windows(&self) -> &Windows {
        &self.windows
    }

    fn command(&self, request: &mut Request<'_>) -> Result<usize, Errno> {
        let (command, reads_response) = (request.command(), reads_response(request));
        let length = u32::try_from(command.len()).map_err(|_| Errno::EINVAL)?;
        let (response, list) = request.buffers();
        let contents = if reads_response { response.to_vec() } else { Vec::new() };
        let parts = [command, contents.as_slice()];
        let asked = Asked { question: Question::Command, number: length, parts, descriptor: None };
        let answer = self.windows.link.ask(asked, response, list);
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
        self.windows.map(offset, len)
    }
}
