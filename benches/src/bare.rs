//! The least that something can cost: no typed command, no check, no decoding.

use std::os::fd::AsFd;

use cxi_ioctl::{Command, Errno, Mapping, Request, Transport};

/// One `write(2)` of a command's bytes, nothing around it.
///
/// # Errors
///
/// What `write(2)` says.
pub fn write<C: Command>(file: impl AsFd, command: &C) -> nix::Result<usize> {
    nix::unistd::write(file, command.as_bytes())
}

/// A command's bytes handed to a transport, with buffers that are there already.
///
/// # Errors
///
/// The driver's.
#[inline]
pub fn submit<C: Command>(
    transport: &dyn Transport,
    command: &C,
    response: &mut [u8],
    list: &mut [u8],
) -> Result<(), Errno> {
    transport.submit(Request {
        opcode: C::OPCODE,
        command: command.as_bytes(),
        pointers: C::POINTERS,
        response,
        list,
    })
}

/// A device that gives one list to whoever has room for it, and does nothing else.
#[derive(Debug)]
pub struct Listing {
    list: Vec<u8>,
    count: u32,
}

impl Listing {
    /// Gives `count` entries, as a driver wrote them.
    #[must_use]
    pub fn new(list: Vec<u8>, count: u32) -> Self {
        Self { list, count }
    }
}

impl Transport for Listing {
    fn submit(&self, request: Request<'_>) -> Result<(), Errno> {
        if let Some(list) = request.list.get_mut(..self.list.len()) {
            list.copy_from_slice(&self.list);
        }
        let count = request.response.first_chunk_mut().ok_or(Errno::EFAULT)?;
        *count = self.count.to_ne_bytes();
        Ok(())
    }

    fn map(&self, _offset: u64, _len: usize) -> Result<Mapping, Errno> {
        Err(Errno::ENODEV)
    }
}
