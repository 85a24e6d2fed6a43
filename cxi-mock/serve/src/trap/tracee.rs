//! The requests to the kernel about traced threads, and the kernel's reports of them.

#![allow(unsafe_code, reason = "ptrace requests with any signal have no safe wrapper")]

use std::ptr::null_mut;

use nix::errno::Errno;
use nix::libc::{self, __WALL, __WNOTHREAD};
use nix::sys::ptrace;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::unistd::Pid;
use rustix::io::retry_on_intr;
use rustix::process::{WaitOptions, WaitStatus, wait};

/// Lets a stopped thread continue, with a signal unless it is 0.
pub(super) fn go_on(thread: Pid, signal: i32) -> nix::Result<()> {
    request(i64::from(libc::PTRACE_CONT), thread, signal)
}

/// Leaves a thread stopped as job control demands. Its continuation is reported.
pub(super) fn leave_stopped(thread: Pid) -> nix::Result<()> {
    request(i64::from(libc::PTRACE_LISTEN), thread, 0)
}

/// Makes a request; its type differs between C libraries.
fn request(request: i64, thread: Pid, signal: i32) -> nix::Result<()> {
    let request = request.try_into().map_err(|_| Errno::EINVAL)?;
    // SAFETY: both requests take a thread and an integer, and touch no memory of this process.
    let done = unsafe {
        libc::ptrace(
            request,
            thread.as_raw(),
            null_mut::<libc::c_void>(),
            libc::c_long::from(signal),
        )
    };
    Errno::result(done).map(drop)
}

/// Lets a stopped thread continue at another instruction.
pub(super) fn jump(thread: Pid, to: u64) -> nix::Result<()> {
    let rip = std::mem::offset_of!(libc::user_regs_struct, rip);
    ptrace::write_user(thread, null_mut::<libc::c_void>().wrapping_byte_add(rip), to.cast_signed())
}

/// Keeps the kernel from sending this process a signal for each stop. Only the thread that waits
/// needs to know.
pub(super) fn hush_stops() {
    let action = SigAction::new(SigHandler::SigDfl, SaFlags::SA_NOCLDSTOP, SigSet::empty());
    // SAFETY: the default handler runs no code of this process.
    let _ = unsafe { sigaction(Signal::SIGCHLD, &action) };
}

/// The next report of a thread that this one traces; `None` once there is none.
pub(super) fn next() -> Option<(Pid, WaitStatus)> {
    let of_this_thread = WaitOptions::from_bits_retain((__WALL | __WNOTHREAD).cast_unsigned());
    let (thread, status) = retry_on_intr(|| wait(of_this_thread)).ok()??;
    Some((Pid::from_raw(thread.as_raw_pid()), status))
}
