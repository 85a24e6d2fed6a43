//! The seam: what carries a command to a driver, real or not.

use std::fmt;

use crate::{Errno, Mapping, Opcode};

/// Where in a command, in bytes from its start, the driver looks for buffer addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Pointers {
    /// Address of the response buffer.
    pub response: Option<usize>,
    /// Address of the list buffer.
    pub list: Option<usize>,
    /// Address of the list buffer, but in the response buffer, which the driver reads first.
    pub list_in_response: Option<usize>,
}

/// One command on its way to a driver: bytes, no addresses.
#[derive(Debug)]
pub struct Request<'a> {
    /// What it is; also the first four bytes of `command`.
    pub opcode: Opcode,
    /// The command, of exactly the length the driver expects, with zeros where `pointers` points.
    pub command: &'a [u8],
    /// Where the addresses of the two buffers belong.
    pub pointers: Pointers,
    /// Where the driver puts its answer. The driver writes as many bytes as its release thinks
    /// right: leave headroom.
    pub response: &'a mut [u8],
    /// Where the driver puts a list.
    pub list: &'a mut [u8],
}

impl Request<'_> {
    /// The same request with the same buffers, for a transport around another one that looks at
    /// the buffers afterwards.
    #[must_use]
    pub fn reborrow(&mut self) -> Request<'_> {
        Request {
            opcode: self.opcode,
            command: self.command,
            pointers: self.pointers,
            response: &mut *self.response,
            list: &mut *self.list,
        }
    }
}

/// A way to a driver: a character device, a mock, or something around another transport.
///
/// The trait is object safe. Commands may be submitted from several threads at once.
pub trait Transport: Send + Sync + fmt::Debug {
    /// Carries one command to the driver and returns when the driver has answered.
    ///
    /// # Errors
    ///
    /// The driver's errno. What the driver wrote stands in `response` then too: SVC_ALLOC
    /// explains a refusal there.
    fn submit(&self, request: Request<'_>) -> Result<(), Errno>;

    /// Maps a window of device memory: command queue, event queue registers, counter doorbell.
    ///
    /// `offset` and `len` are those of an [`Mminfo`](crate::abi::memory::Mminfo) in a response.
    ///
    /// # Errors
    ///
    /// The errno of `mmap(2)`.
    fn map(&self, offset: u64, len: usize) -> Result<Mapping, Errno>;
}

impl<T: Transport + ?Sized> Transport for std::sync::Arc<T> {
    fn submit(&self, request: Request<'_>) -> Result<(), Errno> {
        (**self).submit(request)
    }

    fn map(&self, offset: u64, len: usize) -> Result<Mapping, Errno> {
        (**self).map(offset, len)
    }
}
