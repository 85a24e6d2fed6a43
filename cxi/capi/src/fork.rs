//! Pinned memory and fork(2).
//!
//! After a fork, the child may end up with the original of a pinned page, and the parent with
//! a copy that the NIC does not use. Kernels that copy pinned pages immediately do not have this
//! problem. With other kernels, child processes do not inherit pinned memory if `CXI_FORK_SAFE` is
//! set when a device is opened.

#![allow(unsafe_code, reason = "advice about memory of the caller")]

use cxi::environment::var_os;
use std::ffi::c_int;
use std::io::Write as _;
use std::ops::Range;
use std::ptr::{null_mut, with_exposed_provenance_mut};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use cxi_ioctl::Errno;

use crate::failure::Result;
use crate::ranges::Ranges;
use crate::{netlink, smaps};

/// Result of asking the kernel whether it copies pinned pages, once that is known.
static COPY_ON_FORK: OnceLock<bool> = OnceLock::new();

/// State of the protection of pinned memory. It is not behind the lock, so that programs without
/// protection take no lock when they map memory.
static PROTECTION: AtomicU8 = AtomicU8::new(UNASKED);
const UNASKED: u8 = 0;
/// Memory has already been pinned: it is too late to begin.
const TOO_LATE: u8 = 1;
const PAGES: u8 = 2;
const HUGE_PAGES: u8 = 3;

static PINNED: Mutex<Ranges> = Mutex::new(Ranges::new());

fn pinned() -> MutexGuard<'static, Ranges> {
    PINNED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Changes the protection if it has not been decided yet; returns what it is.
fn decide(protection: u8) -> u8 {
    let decided = PROTECTION.load(Ordering::Relaxed);
    if decided != UNASKED {
        return decided;
    }
    let relaxed = Ordering::Relaxed;
    match PROTECTION.compare_exchange(UNASKED, protection, relaxed, relaxed) {
        Ok(_) => protection,
        Err(decided) => decided,
    }
}

/// Returns whether the kernel copies pinned pages at a fork. This is determined once.
pub(crate) fn copy_on_fork() -> bool {
    *COPY_ON_FORK.get_or_init(netlink::copy_on_fork)
}

/// Begins to protect pinned memory if the environment asks for it.
pub(crate) fn init() -> Result<()> {
    if var_os("CXI_FORK_SAFE").is_none() {
        return Ok(());
    }
    if copy_on_fork() {
        return Ok(());
    }
    let mut protection = PROTECTION.load(Ordering::Relaxed);
    if protection == UNASKED {
        let huge_pages = var_os("CXI_FORK_SAFE_HP").is_some();
        try_advice(huge_pages)?;
        protection = decide(if huge_pages { HUGE_PAGES } else { PAGES });
    }
    match protection {
        TOO_LATE => Err(Errno::EINVAL.into()),
        _ => Ok(()),
    }
}

/// Returns whether this kernel supports the advice; ENOSYS if not.
fn try_advice(huge_pages: bool) -> Result<()> {
    let len = rustix::param::page_size();
    let (access, kind) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
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
    if taken { Ok(()) } else { Err(Errno::ENOSYS.into()) }
}

/// Makes child processes not inherit memory that is about to be pinned.
#[inline]
pub(crate) fn protect(address: u64, len: u64) -> Result<()> {
    match decide(TOO_LATE) {
        TOO_LATE => Ok(()),
        protection => keep(address, len, protection),
    }
}

#[cold]
fn keep(address: u64, len: u64, protection: u8) -> Result<()> {
    let Some(range) = pages(address, len, protection == HUGE_PAGES) else { return Ok(()) };
    let mut ranges = pinned();
    let fresh = ranges.pin(&range);
    for (done, part) in fresh.iter().enumerate() {
        if !advise(part, libc::MADV_DONTFORK) {
            for part in &fresh[..done] {
                advise(part, libc::MADV_DOFORK);
            }
            ranges.unpin(&range);
            return Err(Errno::EFAULT.into());
        }
    }
    Ok(())
}

/// Makes child processes inherit memory again that is no longer pinned.
#[inline]
pub(crate) fn unprotect(address: u64, len: u64) {
    let protection = PROTECTION.load(Ordering::Relaxed);
    if protection != TOO_LATE {
        give(address, len, protection);
    }
}

#[cold]
fn give(address: u64, len: u64, protection: u8) {
    let Some(range) = pages(address, len, protection == HUGE_PAGES) else { return };
    for part in pinned().unpin(&range) {
        if advise(&part, libc::MADV_DOFORK) {
            continue;
        }
        // There may be a hole in it: advise page by page, and skip what is not mapped.
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
    let page = if huge_pages { smaps::page_size(address) } else { rustix::param::page_size() };
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
    // If standard error is closed, there is no way to report that.
    let _ = writeln!(std::io::stderr(), "cxil_fork_init() failed: {}", errno.raw());
}
