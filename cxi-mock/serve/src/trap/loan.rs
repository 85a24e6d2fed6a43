//! Copies that a program makes while it is stopped at a doorbell.
//!
//! The server copies from one process to another through its own memory, twice. A stopped program
//! copies once, from its own memory or into it, if it is made to execute `process_vm_writev(2)` or
//! `process_vm_readv(2)` before it goes on.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use nix::errno::Errno;
use nix::libc::{PTRACE_EVENT_EXIT, SIGTRAP};
use nix::libc::{SYS_process_vm_readv, SYS_process_vm_writev, user_regs_struct};
use nix::sys::ptrace;
use nix::unistd::Pid;
use rustix::process::WaitStatus;

use super::super::memory;
use super::super::process::{RemoteAddress, process_of};
use super::tracee;

/// Bytes below the stack pointer that a function may use without a signal handler in between.
const RED_ZONE: u64 = 128;
/// The signal of a stop at a system call.
const AT_CALL: i32 = SIGTRAP | 0x80;
/// The instruction that makes a system call.
const SYSCALL: [u8; 2] = [0x0f, 0x05];
/// What the process is told about its vDSO, whose code makes system calls.
const AT_SYSINFO_EHDR: u64 = 33;
const VDSO_BYTES: usize = 4096;

thread_local! {
    static LOANS: RefCell<Loans> = RefCell::default();
}

/// What this thread knows of those that it traces.
#[derive(Default)]
struct Loans {
    /// `None` for one that cannot copy.
    threads: HashMap<Pid, Option<Lender>>,
    /// The one that is stopped at a doorbell.
    stopped: Option<(Pid, user_regs_struct)>,
    /// Why it has stopped since, or ended.
    since: Option<WaitStatus>,
}

/// A thread that can copy.
struct Lender {
    process: Pid,
    /// Where its process makes a system call.
    syscall: u64,
    /// What the kernel says about it.
    status: File,
}

/// Lets a thread that is stopped at a doorbell copy while something runs. Returns also why it has
/// stopped since, or ended.
pub(super) fn lend<T>(
    thread: Pid,
    registers: user_regs_struct,
    run: impl FnOnce() -> T,
) -> (T, Option<WaitStatus>) {
    LOANS.with_borrow_mut(|loans| loans.stopped = Some((thread, registers)));
    let result = run();
    let since = LOANS.with_borrow_mut(|loans| {
        loans.stopped = None;
        loans.since.take()
    });
    (result, since)
}

/// A thread has ended, or executes another program.
pub(super) fn forget(thread: Pid) {
    LOANS.with_borrow_mut(|loans| loans.threads.remove(&thread));
}

/// Copies from one process to another if a thread of one of them is stopped for this one. Says
/// whether it has; else some may have been copied.
pub(crate) fn copy(from: RemoteAddress, to: RemoteAddress, len: usize) -> bool {
    if from.namespace != to.namespace {
        return false;
    }
    LOANS.with_borrow_mut(|loans| {
        let Some((thread, registers)) = loans.stopped.filter(|_| loans.since.is_none()) else {
            return false;
        };
        let lender = loans.threads.entry(thread);
        let lender = lender.or_insert_with(|| Lender::of(thread));
        let Some(known) = lender.as_ref().filter(|it| is_unfiltered(&it.status)) else {
            return false;
        };
        let (call, other, own) = if known.process == from.process {
            (SYS_process_vm_writev, to, from)
        } else if known.process == to.process {
            (SYS_process_vm_readv, from, to)
        } else {
            return false;
        };
        let vectors = registers.rsp.wrapping_sub(RED_ZONE + 32) & !15;
        let parts: Vec<u8> = [own.va, len as u64, other.va, len as u64]
            .into_iter()
            .flat_map(u64::to_ne_bytes)
            .collect();
        if memory::write(thread, &[(vectors, &parts)]).is_err() {
            return false;
        }
        let changed = user_regs_struct {
            rip: known.syscall,
            rax: call.cast_unsigned(),
            rdi: u64::from(other.number.cast_unsigned()),
            rsi: vectors,
            rdx: 1,
            r10: vectors + 16,
            r8: 1,
            r9: 0,
            ..registers
        };
        match execute(thread, registers, changed) {
            Ok(done) => {
                // It may not, and will not be allowed to later.
                if done == -i64::from(Errno::EPERM as i32) {
                    *lender = None;
                }
                usize::try_from(done) == Ok(len)
            }
            Err(since) => {
                loans.since = since;
                false
            }
        }
    })
}

/// Makes a stopped thread execute a system call, and restores its registers. An error is what has
/// happened to the thread instead, if something has.
fn execute(
    thread: Pid,
    registers: user_regs_struct,
    changed: user_regs_struct,
) -> Result<i64, Option<WaitStatus>> {
    // One that was killed since is at its last stop, from which it must not go on unseen.
    let stop = ptrace::getsiginfo(thread).map_err(|_| None)?;
    if stop.si_code >> 8 == PTRACE_EVENT_EXIT {
        return Err(None);
    }
    ptrace::setregs(thread, changed).map_err(|_| None)?;
    // In front of the call, and behind it.
    for _ in 0..2 {
        ptrace::syscall(thread, None).map_err(|_| None)?;
        let status = tracee::next_of(thread).ok_or(None)?;
        if status.stopping_signal() != Some(AT_CALL) {
            if !tracee::is_another_program(status) {
                let _ = ptrace::setregs(thread, registers);
            }
            return Err(Some(status));
        }
    }
    let result = ptrace::getregs(thread).map_err(|_| None)?.rax;
    ptrace::setregs(thread, registers).map_err(|_| None)?;
    Ok(result.cast_signed())
}

impl Lender {
    fn of(thread: Pid) -> Option<Self> {
        let told = fs::read(format!("/proc/{thread}/auxv")).ok()?;
        let word = |bytes: &[u8; 8]| u64::from_ne_bytes(*bytes);
        let words: Vec<u64> = told.as_chunks().0.iter().map(word).collect();
        let (pairs, _) = words.as_chunks();
        let [_, vdso] = *pairs.iter().find(|[key, _]| *key == AT_SYSINFO_EHDR)?;
        let mut code = [0; VDSO_BYTES];
        memory::read(thread, vdso, &mut code).ok()?;
        let at = code.windows(2).position(|bytes| bytes == SYSCALL)?;
        Some(Self {
            process: process_of(thread)?,
            syscall: vdso + at as u64,
            status: File::open(format!("/proc/{thread}/status")).ok()?,
        })
    }
}

/// Whether a thread with that status may make any system call: a filter may end the process.
fn is_unfiltered(status: &File) -> bool {
    let mut text = [0; 4096];
    let len = status.read_at(&mut text, 0).unwrap_or(0);
    let free = b"\nSeccomp:\t0\n";
    text[..len].windows(free.len()).any(|line| line == free)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::Command;

    use nix::sys::memfd::{MFdFlags, memfd_create};

    use super::super::super::process::ProcessMemory;
    use super::*;

    #[test]
    fn a_stopped_process_copies_and_goes_on() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = Pid::from_raw(child.id().try_into().unwrap());
        ptrace::seize(pid, super::super::tracer::OPTIONS).unwrap();
        ptrace::interrupt(pid).unwrap();
        tracee::next_of(pid).unwrap();
        let registers = ptrace::getregs(pid).unwrap();
        let (mut there, mut here) = ([0; 64], [0_u8; 64]);
        memory::read(pid, registers.rsp, &mut there).unwrap();
        let to = here.as_mut_ptr().expose_provenance() as u64;
        let [from, to] = [(pid, registers.rsp), (Pid::this(), to)]
            .map(|(process, va)| ProcessMemory::of(process).address(va).unwrap());

        assert!(!copy(from, to, 64), "no thread is stopped at a doorbell");
        let (copied, since) = lend(pid, registers, || copy(from, to, 64));
        assert!(since.is_none());
        // Where only ancestors may reach into a process, the server copies.
        let restricted = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
        if copied || restricted.is_ok_and(|scope| scope.trim() == "0") {
            assert_eq!(std::hint::black_box(here), there);
        }
        assert_eq!(ptrace::getregs(pid).unwrap(), registers);
        ptrace::detach(pid, None).unwrap();
        assert!(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_filter_is_seen() {
        for (line, unfiltered) in [("Seccomp:\t0", true), ("Seccomp:\t2", false), ("", false)] {
            let memory = memfd_create("status", MFdFlags::empty()).unwrap();
            let mut status = File::from(memory);
            write!(status, "Name:\tx\n{line}\nThreads:\t1\n").unwrap();
            assert_eq!(is_unfiltered(&status), unfiltered, "{line}");
        }
    }
}
