//! A way for a server to wait for stores of this process to memory that both share.

#![allow(unsafe_code, reason = "whoever has the descriptor can make this process wait")]

use std::os::fd::OwnedFd;

use rustix::mm::{UserfaultfdFlags, userfaultfd};

/// Faults of this process itself only, for which no privilege is needed: UFFD_USER_MODE_ONLY, Linux 5.11.
const USER_MODE_ONLY: u32 = 1;

/// A userfaultfd for a server of this user or of root; `None` if the kernel has none for this process.
///
/// This process must not keep it: if the server ends, nobody else may have it, or a store that waits would
/// do so for ever.
pub(super) fn userfault() -> Option<OwnedFd> {
    let flags = UserfaultfdFlags::CLOEXEC
        | UserfaultfdFlags::NONBLOCK
        | UserfaultfdFlags::from_bits_retain(USER_MODE_ONLY);
    // SAFETY: nothing in this process uses the descriptor, and it registers no memory. Whoever gets it can
    // delay stores to memory, and could fill pages that are registered as missing; a server that may
    // be trusted with commands writes the memory of this process anyway, through /proc/self/mem.
    unsafe { userfaultfd(flags) }.ok()
}
