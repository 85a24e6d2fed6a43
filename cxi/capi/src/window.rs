//! Windows of device memory, mapped for C.

#![allow(unsafe_code, reason = "memory that C and the NIC work on")]
#![allow(clippy::cast_ptr_alignment, reason = "registers are read whole where they are aligned")]

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use cxi_ioctl::Errno;
use cxi_ioctl::abi::memory::Mminfo;
use cxi_ioctl::socket::Windows;

use crate::device::Dev;
use crate::failure::{Failure, Result};

/// Length of a register.
pub(crate) const REGISTER: usize = size_of::<u64>();

/// A mapping that exists until it is explicitly unmapped. C uses its address, so dropping this does not
/// unmap it.
#[derive(Debug, Default)]
pub(crate) struct Window {
    address: AtomicPtr<u8>,
    len: AtomicUsize,
}

impl Window {
    /// An empty window.
    pub(crate) const fn new() -> Self {
        Self { address: AtomicPtr::new(null_mut()), len: AtomicUsize::new(0) }
    }

    /// Maps what a response names.
    pub(crate) fn of(dev: &Dev, place: Mminfo) -> Result<Self> {
        let window = Self::new();
        window.map(dev, place)?;
        Ok(window)
    }

    /// Maps what a response names. Nothing may be mapped here yet.
    pub(crate) fn map(&self, dev: &Dev, place: Mminfo) -> Result<()> {
        let len = usize::try_from(place.size).map_err(|_| Errno::EINVAL)?;
        let address = if let Some(file) = dev.socket() {
            passed(file.windows(), place.offset, len)?
        } else {
            let fd = dev.descriptor().ok_or(Errno::EBADF)?;
            // SAFETY: as in `open_file`: the block owns the descriptor, which stays open meanwhile.
            let file = unsafe { BorrowedFd::borrow_raw(fd) };
            match map(file, place.offset, len) {
                Err(errno) if errno == Errno::ENODEV => {
                    let beside = dev.beside().ok_or(errno)?;
                    passed(beside.windows(file)?, place.offset, len)?
                }
                mapped => mapped?,
            }
        };
        self.len.store(len, Ordering::Relaxed);
        self.address.store(address, Ordering::Release);
        Ok(())
    }

    /// Unmaps it, if it is mapped. After an error it is still mapped.
    pub(crate) fn unmap(&self) -> Result<()> {
        let address = self.address();
        if address.is_null() {
            return Ok(());
        }
        // SAFETY: the mapping was made by `map` and not unmapped yet. By ending the handle, C
        // promises not to use it anymore.
        if unsafe { libc::munmap(address.cast(), self.len()) } != 0 {
            return Err(std::io::Error::last_os_error().into());
        }
        self.address.store(null_mut(), Ordering::Release);
        Ok(())
    }

    /// Its address; NULL if nothing is mapped.
    pub(crate) fn address(&self) -> *mut u8 {
        self.address.load(Ordering::Acquire)
    }

    /// Length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    /// Reads the 64-bit register at an offset; EINVAL if it is not inside the window.
    pub(crate) fn register(&self, offset: usize) -> Result<u64> {
        let at = self.place(offset, REGISTER)?;
        if at.cast::<u64>().is_aligned() {
            // SAFETY: mapped for reading, inside the window, aligned; the device may change it at
            // any time, so the access is volatile.
            return Ok(unsafe { at.cast::<u64>().read_volatile() });
        }
        // SAFETY: as above, byte by byte.
        let byte = |index| unsafe { at.wrapping_add(index).read_volatile() };
        Ok(u64::from_ne_bytes(std::array::from_fn(byte)))
    }

    /// Writes the 64-bit register at an offset; EINVAL if it is not inside the window.
    pub(crate) fn set_register(&self, offset: usize, value: u64) -> Result<()> {
        let at = self.place(offset, REGISTER)?;
        if at.cast::<u64>().is_aligned() {
            // SAFETY: mapped for writing, inside the window, aligned.
            unsafe { at.cast::<u64>().write_volatile(value) };
            return Ok(());
        }
        for (index, byte) in value.to_ne_bytes().into_iter().enumerate() {
            self.set_byte(offset + index, byte)?;
        }
        Ok(())
    }

    /// Writes one byte; EINVAL if it is not inside the window.
    pub(crate) fn set_byte(&self, offset: usize, value: u8) -> Result<()> {
        let at = self.place(offset, 1)?;
        // SAFETY: mapped for writing, inside the window.
        unsafe { at.write_volatile(value) };
        Ok(())
    }

    /// The address of `len` bytes at an offset; EINVAL if they are not inside the window.
    pub(crate) fn place(&self, offset: usize, len: usize) -> Result<*mut u8> {
        let end = offset.checked_add(len);
        let inside = offset < self.len() && end.is_some_and(|end| end <= self.len());
        if self.address().is_null() || !inside {
            return Err(Failure::argument());
        }
        Ok(self.address().wrapping_add(offset))
    }
}

/// Maps a part of a file.
fn map(file: BorrowedFd<'_>, offset: u64, len: usize) -> std::result::Result<*mut u8, Errno> {
    let offset = i64::try_from(offset).map_err(|_| Errno::EINVAL)?;
    let (access, fd) = (libc::PROT_READ | libc::PROT_WRITE, file.as_raw_fd());
    // SAFETY: a new mapping at an address that the kernel chooses touches no other memory.
    let address = unsafe { libc::mmap(null_mut(), len, access, libc::MAP_SHARED, fd, offset) };
    if address == libc::MAP_FAILED {
        return Err(Errno::from_io(&std::io::Error::last_os_error()));
    }
    Ok(address.cast())
}

/// Maps a window whose memory comes through a socket.
fn passed(windows: &Windows, offset: u64, len: usize) -> std::result::Result<*mut u8, Errno> {
    let window = windows.window(offset, len)?;
    let address = map(window.memory.as_fd(), offset, len)?;
    if window.is_doorbell {
        windows.trap(offset, address.expose_provenance() as u64, len);
    }
    Ok(address)
}
