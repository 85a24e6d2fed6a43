//! What the kernel does with the threads that this one traces, and what it reports of them.

#![allow(
    unsafe_code,
    reason = "ptrace requests with any signal, and the address of a fault, have no safe wrapper"
)]

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ptr::null_mut;

use nix::errno::Errno;
use nix::libc::{self, __WALL, __WNOTHREAD, BUS_ADRERR, PTRACE_EVENT_EXEC, SIGBUS};
use nix::sys::ptrace;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::unistd::Pid;
use rustix::io::retry_on_intr;
use rustix::process::{WaitOptions, WaitStatus, wait};

use super::super::process::ProcessMemory;

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

thread_local! {
    /// Reports that came while one of another thread was waited for.
    static EARLIER: RefCell<VecDeque<(Pid, WaitStatus)>> = RefCell::default();
}

/// The next report of any thread. `None` once no thread is traced any more.
pub(super) fn next() -> Option<(Pid, WaitStatus)> {
    let earlier = EARLIER.with_borrow_mut(VecDeque::pop_front);
    earlier.or_else(wait_for_any)
}

/// The next report of a thread that goes on; those of others are kept.
///
/// Waits for all threads: where the end of a thread-group leader is not announced
/// (`PTRACE_EVENT_EXIT`), the kernel reports it only after the other threads have been reaped.
pub(super) fn next_of(thread: Pid) -> Option<WaitStatus> {
    loop {
        let (reported, status) = wait_for_any()?;
        if reported == thread {
            return Some(status);
        }
        EARLIER.with_borrow_mut(|earlier| {
            // It was not continued in between, so the earlier report no longer counts.
            earlier.retain(|(before, _)| *before != reported);
            earlier.push_back((reported, status));
        });
    }
}

/// Whether a thread has executed another program: its registers are the new program's.
pub(super) fn is_another_program(status: WaitStatus) -> bool {
    status.as_raw() >> 16 == PTRACE_EVENT_EXEC
}

fn wait_for_any() -> Option<(Pid, WaitStatus)> {
    let of_this_thread = WaitOptions::from_bits_retain((__WALL | __WNOTHREAD).cast_unsigned());
    let (thread, status) = retry_on_intr(|| wait(of_this_thread)).ok()??;
    let thread = Pid::from_raw(thread.as_raw_pid());
    if is_another_program(status) {
        ProcessMemory::replaced(thread);
    }
    Some((thread, status))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use nix::sys::ptrace;

    use super::*;

    #[test]
    fn a_program_that_is_executed_has_other_memory() {
        let mut shell = Command::new("sh");
        let shell = shell.args(["-c", "read line; exec sleep 60"]);
        let mut child = shell.stdin(Stdio::piped()).spawn().unwrap();
        let pid = Pid::from_raw(child.id().try_into().unwrap());
        ptrace::seize(pid, super::super::tracer::OPTIONS).unwrap();
        let before = ProcessMemory::of(pid);
        let reached = before.address(4096).is_some();
        writeln!(child.stdin.take().unwrap()).unwrap();
        let (thread, status) = next().unwrap();
        let places = [before, ProcessMemory::of(pid)].map(|memory| memory.address(4096).is_some());
        ptrace::detach(pid, None).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(reached && thread == pid && is_another_program(status));
        assert_eq!(places, [false, true]);
    }
}
