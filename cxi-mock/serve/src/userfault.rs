//! Stores of another process that wait until this one lets them through: userfaultfd in its mode for
//! write protection.

#![allow(unsafe_code, reason = "the requests of userfaultfd have no safe wrapper")]

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::thread;

use cxi_ioctl::Errno;

const API: u64 = 0xaa;
/// Write protection, and that of shared memory: Linux 5.19.
const FEATURES: u64 = 1 << 0 | 1 << 12;
const REGISTER_WRITE_PROTECTION: u64 = 1 << 1;
const PROTECT: u64 = 1 << 0;
const EVENT_PAGE_FAULT: u8 = 0x12;
const MESSAGE: usize = 32;
/// Times that a request is repeated because the memory is being changed, which takes microseconds.
const TRIES: u32 = 1000;

#[repr(C)]
struct Api {
    version: u64,
    features: u64,
    ioctls: u64,
}

#[repr(C)]
struct Register {
    start: u64,
    len: u64,
    mode: u64,
    ioctls: u64,
}

#[repr(C)]
struct WriteProtect {
    start: u64,
    len: u64,
    mode: u64,
}

nix::ioctl_readwrite!(request_api, 0xaa, 0x3f, Api);
nix::ioctl_readwrite!(request_register, 0xaa, 0x00, Register);
nix::ioctl_readwrite!(request_write_protect, 0xaa, 0x06, WriteProtect);

/// Memory of a process, as a number: nothing here is mapped in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) start: u64,
    pub(crate) len: u64,
}

/// A userfaultfd that a process has made for itself and passed. It reaches the memory of that process
/// only.
#[derive(Debug)]
pub(crate) struct Userfault(OwnedFd);

impl Userfault {
    /// Takes what a process has passed: a new userfaultfd that does not block.
    pub(crate) fn accept(file: OwnedFd) -> Result<Self, Errno> {
        let path = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
        if !path.is_ok_and(|path| path.as_os_str() == "anon_inode:[userfaultfd]") {
            return Err(Errno::EINVAL);
        }
        rustix::io::ioctl_fionbio(&file, true).map_err(|error| Errno::from_io(&error.into()))?;
        let mut api = Api { version: API, features: FEATURES, ioctls: 0 };
        // SAFETY: the descriptor is open, and the request reads and writes the three words of `api`.
        unsafe { request_api(file.as_raw_fd(), &raw mut api) }.map_err(Errno::from)?;
        Ok(Self(file))
    }

    /// Takes over memory whose pages can be protected.
    pub(crate) fn register(&self, Range { start, len }: Range) -> Result<(), Errno> {
        let mut range = Register { start, len, mode: REGISTER_WRITE_PROTECTION, ioctls: 0 };
        // SAFETY: the descriptor is open, and the request reads and writes the four words of `range`.
        // The addresses in it are those of the process that has made the descriptor.
        unsafe { request_register(self.0.as_raw_fd(), &raw mut range) }.map_err(Errno::from)?;
        Ok(())
    }

    /// Lets stores to memory wait, or go on. When this returns, none is under way. EAGAIN if the program
    /// changes its memory all the time.
    pub(crate) fn protect(&self, Range { start, len }: Range, protect: bool) -> Result<(), Errno> {
        let mut range = WriteProtect { start, len, mode: if protect { PROTECT } else { 0 } };
        while_changing(|| {
            // SAFETY: as in `register`, with three words.
            unsafe { request_write_protect(self.0.as_raw_fd(), &raw mut range) }.map(drop)
        })
    }

    /// Takes the news. Returns whether a store waits.
    pub(crate) fn take(&self) -> bool {
        let mut messages = [[0; MESSAGE]; 8];
        let read = rustix::io::read(&self.0, messages.as_flattened_mut());
        let count = read.map_err(io::Error::from).unwrap_or_default() / MESSAGE;
        messages.iter().take(count).any(|message| message[0] == EVENT_PAGE_FAULT)
    }
}

/// Repeats a request that the kernel refuses while the memory is being changed, but not for long.
fn while_changing(mut request: impl FnMut() -> nix::Result<()>) -> Result<(), Errno> {
    let mut left = TRIES;
    loop {
        match request() {
            Err(nix::errno::Errno::EAGAIN) if left > 0 => {
                left -= 1;
                thread::yield_now();
            }
            result => return result.map_err(Errno::from),
        }
    }
}

impl AsFd for Userfault {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_changes_all_the_time_is_given_up() {
        let changing = Err(nix::errno::Errno::EAGAIN);
        assert_eq!(while_changing(|| changing), Err(Errno::EAGAIN));
        let mut answers = [changing, changing, Ok(())].into_iter();
        assert_eq!(while_changing(|| answers.next().unwrap()), Ok(()));
        let gone = Err(nix::errno::Errno::ENOENT);
        assert_eq!(while_changing(|| gone), Err(Errno::ENOENT));
    }
}
