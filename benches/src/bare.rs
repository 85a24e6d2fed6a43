//! Lower bounds: no typed command, no check, no decoding.

#![allow(unsafe_code, reason = "raw requests are unsafe to make")]

use std::os::fd::AsFd;

use cxi_ioctl::{Command, Errno, LIST_HEADROOM, ListCommand, Request, SafeCommand, Transport};

/// One `write(2)` of a command's bytes, nothing around it.
///
/// # Errors
///
/// Returns the result of `write(2)`.
pub fn write<C: Command>(file: impl AsFd, command: &C) -> nix::Result<usize> {
    nix::unistd::write(file, command.as_bytes())
}

/// More than any response has, with what a driver of another version may write behind it.
pub const RESPONSE_ROOM: usize = 256;

/// A command's bytes handed to a transport, with a buffer that is there already.
///
/// # Errors
///
/// The driver's.
#[inline]
pub fn submit<C: SafeCommand>(
    transport: &dyn Transport,
    command: &C,
    response: &mut [u8; RESPONSE_ROOM],
) -> Result<(), Errno> {
    fill(transport, command, response, &mut [])
}

/// A command with a list, with a buffer for it that is there already.
///
/// # Errors
///
/// The driver's.
///
/// # Panics
///
/// If the buffer is shorter than `count` entries with the room behind them.
#[inline]
pub fn submit_list<C: ListCommand>(
    transport: &dyn Transport,
    count: u32,
    response: &mut [u8; RESPONSE_ROOM],
    list: &mut [u8],
) -> Result<(), Errno> {
    assert!(list.len() >= count as usize * LIST_HEADROOM * size_of::<C::Item>());
    fill(transport, &C::with_count(count), response, list)
}

fn fill<C: SafeCommand>(
    transport: &dyn Transport,
    command: &C,
    response: &mut [u8; RESPONSE_ROOM],
    list: &mut [u8],
) -> Result<(), Errno> {
    let (opcode, bytes, pointers) = (C::OPCODE, command.as_bytes(), C::POINTERS);
    // SAFETY: a `SafeCommand` gives no other address away, its response has room, and the list
    // is empty or has the room that a `ListCommand` asks for.
    let request = unsafe { Request::from_raw(opcode, bytes, pointers, response, list) };
    transport.submit(request)
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
    fn submit(&self, mut request: Request<'_>) -> Result<(), Errno> {
        if let Some(list) = request.list().get_mut(..self.list.len()) {
            list.copy_from_slice(&self.list);
        }
        let count = request.response().first_chunk_mut().ok_or(Errno::EFAULT)?;
        *count = self.count.to_ne_bytes();
        Ok(())
    }
}
