//! What `ptrace` does that has no safe wrapper.

#![allow(
    unsafe_code,
    reason = "ptrace requests with any signal, and the address of a fault, have no safe wrapper"
)]

use std::ptr::null_mut;

use nix::errno::Errno;
use nix::libc::{self, BUS_ADRERR, SIGBUS};
use nix::sys::ptrace;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::unistd::Pid;

/// Lets a stopped thread go on, with a signal unless it is 0.
pub(super) fn go_on(thread: Pid, signal: i32) -> nix::Result<()> {
    request(libc::PTRACE_CONT, thread, signal)
}

/// Leaves a thread stopped as job control wants it; its continuation is reported.
pub(super) fn leave_stopped(thread: Pid) -> nix::Result<()> {
    request(libc::PTRACE_LISTEN, thread, 0)
}

fn request(request: libc::c_uint, thread: Pid, signal: i32) -> nix::Result<()> {
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

/// Lets a stopped thread go on at another instruction.
pub(super) fn jump(thread: Pid, to: u64) -> nix::Result<()> {
    let rip = std::mem::offset_of!(libc::user_regs_struct, rip);
    ptrace::write_user(
        thread,
        null_mut::<libc::c_void>().wrapping_byte_add(rip),
        to.cast_signed(),
    )
}

/// The address that a thread could not reach, if that is why it was stopped.
pub(super) fn unreachable_address(thread: Pid) -> Option<u64> {
    let info = ptrace::getsiginfo(thread).ok()?;
    // SAFETY: with this signal and code the kernel has filled in the address.
    (info.si_signo == SIGBUS && info.si_code == BUS_ADRERR)
        .then(|| unsafe { info.si_addr() } as u64)
}

/// Keeps the kernel from telling this process of each stop, other than the thread that waits.
pub(super) fn hush_stops() {
    let action = SigAction::new(SigHandler::SigDfl, SaFlags::SA_NOCLDSTOP, SigSet::empty());
    // SAFETY: the default handler runs no code of this process.
    let _ = unsafe { sigaction(Signal::SIGCHLD, &action) };
}
