//! The real transport: `/dev/cxiN`.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use crate::reachable::Reachable;
use crate::socket::Beside;
use crate::{Errno, Mapping, Request, Transport};

/// Drivers of the development branch always read this many bytes from the address of a command,
/// whatever its length.
const MIN_READABLE: usize = 16;

/// The longest command with a fixed layout.
const COMMAND_ROOM: usize = 96;

/// Room for most commands, which are short: no more than this is cleared for them.
const SHORT_ROOM: usize = 32;

/// An open character device of the CXI driver.
///
/// Closing it frees the LNIs that were allocated through it and everything below them.
///
/// It keeps a [`DeviceMemory`](crate::DeviceMemory) whose address a command gave to the NIC until a
/// command that takes it away has succeeded. Memory that the NIC may still reach when the `CharDev`
/// is dropped is leaked on purpose: a duplicate of the file may keep it open.
#[derive(Debug)]
pub struct CharDev {
    file: OwnedFd,
    reachable: Reachable,
    beside: Option<Box<Beside>>,
}

impl CharDev {
    /// Opens a device node for reading and writing, close-on-exec.
    ///
    /// # Errors
    ///
    /// The errno of `open(2)`: ENOENT if there is no such device, EACCES without permission, EIO if
    /// the device has been removed.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        Ok(Self::from(file))
    }

    /// Maps its windows through the socket of whoever serves it, where the file itself cannot be mapped. A
    /// socket of somebody else changes nothing.
    #[must_use]
    pub fn beside(self, socket: impl Into<PathBuf>) -> Self {
        Self { beside: Some(Box::new(Beside::new(socket))), ..self }
    }
}

impl From<File> for CharDev {
    /// Wraps an open file that speaks the driver's protocol.
    fn from(file: File) -> Self {
        Self::from(OwnedFd::from(file))
    }
}

impl From<OwnedFd> for CharDev {
    fn from(file: OwnedFd) -> Self {
        Self { file, reachable: Reachable::default(), beside: None }
    }
}

impl From<CharDev> for OwnedFd {
    /// The open file; memory that the NIC may still reach is leaked, as when the device is dropped.
    fn from(device: CharDev) -> Self {
        device.file
    }
}

impl AsFd for CharDev {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Transport for CharDev {
    /// One `write(2)`. A partial write is EIO, and a command longer than any with a fixed layout
    /// (96 bytes) is EINVAL. EINTR and EAGAIN are not retried.
    ///
    /// The write goes through libc's function. Being opaque to the compiler, that must be assumed
    /// to read and write all memory whose address was exposed. An inlined system call that promises
    /// to leave memory alone would let the compiler fold the response to the buffer's previous
    /// contents. Callers may inline this function, so a test in release mode watches for such a
    /// fold.
    #[inline(always)]
    #[allow(
        clippy::inline_always,
        reason = "with the layout of a command known, a tenth of this is left"
    )]
    fn submit(&self, request: Request<'_>) -> Result<(), Errno> {
        if request.command().len() <= SHORT_ROOM {
            self.write::<SHORT_ROOM>(request)
        } else {
            self.write::<COMMAND_ROOM>(request)
        }
    }

    fn map(&self, offset: u64, len: usize) -> Result<Mapping, Errno> {
        let mapping = Mapping::from_file(&self.file, offset, len);
        match (&mapping, &self.beside) {
            (Err(Errno::ENODEV), Some(beside)) => beside.windows(&self.file)?.map(offset, len),
            _ => mapping,
        }
    }

    fn file(&self) -> Option<BorrowedFd<'_>> {
        Some(self.file.as_fd())
    }
}

impl CharDev {
    /// Writes a command from a copy of it with the addresses of its buffers.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "as for `submit`")]
    fn write<const ROOM: usize>(&self, mut request: Request<'_>) -> Result<(), Errno> {
        let mut room = [0; ROOM];
        const { assert!(ROOM >= MIN_READABLE) };
        let command = request.command();
        let bytes = room.get_mut(..command.len()).ok_or(Errno::EINVAL)?;
        bytes.copy_from_slice(command);

        let pointers = request.pointers();
        let (response, list) = request.buffers();
        if let Some(offset) = pointers.list_in_response {
            put_address(response, offset, address(list))?;
        }
        if let Some(offset) = pointers.list {
            put_address(bytes, offset, address(list))?;
        }
        if let Some(offset) = pointers.response {
            put_address(bytes, offset, address(response))?;
        }

        let write = || nix::unistd::write(&self.file, bytes).map_err(Errno::from);
        let written = if self.reachable.concerns(&request) {
            self.reachable.follow(request, |_| write())
        } else {
            write()
        };
        if written? == bytes.len() { Ok(()) } else { Err(Errno::EIO) }
    }
}

/// The address of a buffer; null for an empty one, not a dangling address.
fn address(buffer: &mut [u8]) -> usize {
    if buffer.is_empty() { 0 } else { buffer.as_mut_ptr().expose_provenance() }
}

fn put_address(bytes: &mut [u8], offset: usize, address: usize) -> Result<(), Errno> {
    let place = bytes.get_mut(offset..).and_then(<[u8]>::first_chunk_mut).ok_or(Errno::EINVAL)?;
    *place = (address as u64).to_ne_bytes();
    Ok(())
}
