//! Pinned memory and fork(2).
//!
//! After a fork, the child may end up with the original of a pinned page, and the parent with
//! a copy that the NIC does not use. Kernels that copy pinned pages at once have no such
//! problem; for others, and only if `CXI_FORK_SAFE` is set when a device is opened, children get
//! no pinned memory at all.

#![allow(unsafe_code, reason = "advice about memory of the caller")]

use std::env;
use std::ffi::c_int;
use std::io::Write as _;
use std::ops::Range;
use std::ptr::{null_mut, with_exposed_provenance_mut};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cxi_ioctl::Errno;

use crate::failure::Result;
use crate::ranges::Ranges;
use crate::{netlink, smaps};

static STATE: Mutex<State> = Mutex::new(State {
    copy_on_fork: None,
    protection: Protection::Unasked,
    ranges: Ranges::new(),
});

/// The state that this library keeps for a process.
#[derive(Debug)]
struct State {
    /// The kernel's answer, once it has been asked.
    copy_on_fork: Option<bool>,
    protection: Protection,
    ranges: Ranges,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protection {
    Unasked,
    /// Memory has been pinned already: it is too late to begin.
    TooLate,
    On {
        huge_pages: bool,
    },
}

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the kernel copies pinned pages at a fork; asked once.
pub(crate) fn copy_on_fork() -> bool {
    state().copy_on_fork()
}

impl State {
    fn copy_on_fork(&mut self) -> bool {
        *self.copy_on_fork.get_or_insert_with(netlink::copy_on_fork)
    }
}

/// Begins to protect pinned memory if the environment asks for it.
pub(crate) fn init() -> Result<()> {
    if env::var_os("CXI_FORK_SAFE").is_none() {
        return Ok(());
    }
    let mut state = state();
    if state.copy_on_fork() {
        return Ok(());
    }
    match state.protection {
        Protection::On { .. } => Ok(()),
        Protection::TooLate => Err(Errno::EINVAL.into()),
        Protection::Unasked => {
            let huge_pages = env::var_os("CXI_FORK_SAFE_HP").is_some();
            try_advice(huge_pages)?;
            state.protection = Protection::On { huge_pages };
            Ok(())
        }
    }
}

/// Whether this kernel takes the advice: ENOSYS if not.
fn try_advice(huge_pages: bool) -> Result<()> {
    let len = rustix::param::page_size();
    let (access, kind) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
    );
    // SAFETY: a new mapping at an address that the kernel chooses touches no other memory.
    let page = unsafe { libc::mmap(null_mut(), len, access, kind, -1, 0) };
    if page == libc::MAP_FAILED {
        return Err(Errno::ENOMEM.into());
    }
    let start = page.expose_provenance();
    if huge_pages {
        smaps::page_size(start);
    }
    let taken = advise(&(start..start + len), libc::MADV_DONTFORK)
        && advise(&(start..start + len), libc::MADV_DOFORK);
    // SAFETY: the page was mapped above, and nothing refers to it.
    unsafe { libc::munmap(page, len) };
    if taken {
        Ok(())
    } else {
        Err(Errno::ENOSYS.into())
    }
}

/// Keeps memory that is about to be pinned from children.
pub(crate) fn protect(address: u64, len: u64) -> Result<()> {
    let mut state = state();
    let Protection::On { huge_pages } = state.protection else {
        state.protection = Protection::TooLate;
        return Ok(());
    };
    let Some(range) = pages(address, len, huge_pages) else {
        return Ok(());
    };
    let fresh = state.ranges.pin(&range);
    for (done, part) in fresh.iter().enumerate() {
        if !advise(part, libc::MADV_DONTFORK) {
            for part in &fresh[..done] {
                advise(part, libc::MADV_DOFORK);
            }
            state.ranges.unpin(&range);
            return Err(Errno::EFAULT.into());
        }
    }
    Ok(())
}

/// Gives memory that is no longer pinned to children again.
pub(crate) fn unprotect(address: u64, len: u64) {
    let mut state = state();
    let Protection::On { huge_pages } = state.protection else {
        return;
    };
    let Some(range) = pages(address, len, huge_pages) else {
        return;
    };
    for part in state.ranges.unpin(&range) {
        if advise(&part, libc::MADV_DOFORK) {
            continue;
        }
        // A hole in it, perhaps: what is left is taken page by page.
        let page = rustix::param::page_size();
        for start in part.clone().step_by(page) {
            advise(&(start..start + page), libc::MADV_DOFORK);
        }
    }
}

/// The whole pages that hold a range; none if it is empty or at NULL.
fn pages(address: u64, len: u64, huge_pages: bool) -> Option<Range<usize>> {
    let (address, len) = (usize::try_from(address).ok()?, usize::try_from(len).ok()?);
    if address == 0 || len == 0 {
        return None;
    }
    let page = if huge_pages {
        smaps::page_size(address)
    } else {
        rustix::param::page_size()
    };
    let end = address.checked_add(len)?.checked_next_multiple_of(page)?;
    Some(address - address % page..end)
}

fn advise(range: &Range<usize>, advice: c_int) -> bool {
    let address = with_exposed_provenance_mut(range.start);
    // SAFETY: DONTFORK and DOFORK change nothing in this process, whatever is at the address.
    unsafe { libc::madvise(address, range.len(), advice) == 0 }
}

/// The line that libcxi prints if the requested protection is not available.
pub(crate) fn complain(errno: Errno) {
    // Standard error may be closed: nothing could be done about that.
    let _ = writeln!(
        std::io::stderr(),
        "cxil_fork_init() failed: {}",
        errno.raw()
    );
}
