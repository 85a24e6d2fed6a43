//! The seam: what carries a command to a driver, real or mock.

#![allow(unsafe_code, reason = "raw requests are unsafe to make")]

use std::fmt;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use crate::{DeviceMemory, Errno, Mapping, Opcode};

/// Positions in a command, in bytes from its start, at which the driver looks for buffer addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pointers {
    /// Address of the response buffer.
    pub response: Option<usize>,
    /// Address of the list buffer.
    pub list: Option<usize>,
    /// Address of the list buffer, but in the response buffer, which the driver reads first.
    pub list_in_response: Option<usize>,
}

impl Pointers {
    /// The driver looks for no addresses.
    pub const NONE: Self = Self { response: None, list: None, list_in_response: None };
}

/// One command on its way to a driver: its bytes, and buffers for the answer.
///
/// Only this crate makes requests, so a transport to a real driver can rely on three things: the
/// command contains no address except where [`pointers`](Self::pointers) says and in the memory
/// that accompanies it; the driver writes no more to the buffers than there is room for; and the
/// opcode is that of the command. A transport around another one passes requests on, and may read
/// and change the bytes of the buffers.
#[derive(Debug)]
pub struct Request<'a> {
    opcode: Opcode,
    command: &'a [u8],
    pointers: Pointers,
    response: &'a mut [u8],
    list: &'a mut [u8],
    memory: Option<&'a Arc<DeviceMemory>>,
}

impl<'a> Request<'a> {
    /// Makes a request from unchecked bytes; use [`execute_unchecked`](crate::execute_unchecked)
    /// for typed commands.
    ///
    /// # Safety
    ///
    /// `opcode` is what `command` starts with. A driver that receives the command writes at most
    /// `response.len()` bytes to its response and `list.len()` bytes to its list. It uses no other
    /// address in the command than these two, at the offsets of `pointers`, and addresses that stay
    /// valid for as long as the driver and the NIC may use them.
    #[must_use]
    pub unsafe fn from_raw(
        opcode: Opcode,
        command: &'a [u8],
        pointers: Pointers,
        response: &'a mut [u8],
        list: &'a mut [u8],
    ) -> Self {
        Self { opcode, command, pointers, response, list, memory: None }
    }

    /// Adds memory of which the request gives the NIC an address.
    pub(crate) fn with_memory(self, memory: Option<&'a Arc<DeviceMemory>>) -> Self {
        Self { memory, ..self }
    }

    /// The opcode; also the first four bytes of the command.
    #[must_use]
    pub fn opcode(&self) -> Opcode {
        self.opcode
    }

    /// The command, of exactly the length that the driver expects, with arbitrary bytes where
    /// [`pointers`](Self::pointers) points.
    #[must_use]
    pub fn command(&self) -> &'a [u8] {
        self.command
    }

    /// Returns the positions of the two buffers' addresses.
    #[must_use]
    pub fn pointers(&self) -> Pointers {
        self.pointers
    }

    /// The buffer for the response, with headroom: a driver writes as many bytes as its release
    /// has. Empty for a command without a response.
    pub fn response(&mut self) -> &mut [u8] {
        self.response
    }

    /// The buffer for a list.
    pub fn list(&mut self) -> &mut [u8] {
        self.list
    }

    /// Both buffers at once.
    pub fn buffers(&mut self) -> (&mut [u8], &mut [u8]) {
        (self.response, self.list)
    }

    /// The memory that the NIC may use from this command on, until a command that takes it away has
    /// succeeded. Whoever passes the command to a driver must keep it that long.
    #[must_use]
    pub fn memory(&self) -> Option<&'a Arc<DeviceMemory>> {
        self.memory
    }

    /// Borrows the request with the same buffers, for a transport around another one that examines
    /// the buffers afterward.
    #[must_use]
    pub fn reborrow(&mut self) -> Request<'_> {
        Request {
            opcode: self.opcode,
            command: self.command,
            pointers: self.pointers,
            response: self.response,
            list: self.list,
            memory: self.memory,
        }
    }
}

/// A way to a driver: a character device, a mock, or a decorator around another transport.
///
/// The trait is object safe. Commands may be submitted from several threads at once.
pub trait Transport: Send + Sync + fmt::Debug {
    /// Carries one command to the driver and returns when the driver has answered.
    ///
    /// # Errors
    ///
    /// The driver's errno. Even then the response contains what the driver wrote: SVC_ALLOC
    /// explains a refusal there.
    fn submit(&self, request: Request<'_>) -> Result<(), Errno>;

    /// Maps a window of device memory: command queue, event queue registers, counter doorbell.
    ///
    /// `offset` and `len` are those of an [`Mminfo`](crate::abi::memory::Mminfo) in a response.
    ///
    /// # Errors
    ///
    /// The errno of `mmap(2)`; `ENODEV` if the transport does not map memory, which is the default.
    /// A decorator must pass this on.
    fn map(&self, offset: u64, len: usize) -> Result<Mapping, Errno> {
        let _ = (offset, len);
        Err(Errno::ENODEV)
    }

    /// The open file behind it, if any.
    fn file(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

impl<T: Transport + ?Sized> Transport for Arc<T> {
    fn submit(&self, request: Request<'_>) -> Result<(), Errno> {
        (**self).submit(request)
    }

    fn map(&self, offset: u64, len: usize) -> Result<Mapping, Errno> {
        (**self).map(offset, len)
    }

    fn file(&self) -> Option<BorrowedFd<'_>> {
        (**self).file()
    }
}
