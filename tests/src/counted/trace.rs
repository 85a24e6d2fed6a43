//! Counts the system calls of a child with ptrace(2).

use std::io::Write;
use std::os::unix::process::parent_id;
use std::process::{Child, Command, Stdio};
use std::{fmt, fs};

use nix::libc;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;

/// A system call, by number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Call(i64);

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = [
            (libc::SYS_openat, "openat"),
            (libc::SYS_close, "close"),
            (libc::SYS_read, "read"),
            (libc::SYS_write, "write"),
            (libc::SYS_readlinkat, "readlinkat"),
            (libc::SYS_statx, "statx"),
            (libc::SYS_mmap, "mmap"),
            (libc::SYS_munmap, "munmap"),
            (libc::SYS_brk, "brk"),
        ];
        match named.iter().find(|(number, _)| *number == self.0) {
            Some((_, name)) => f.write_str(name),
            None => write!(f, "system call {}", self.0),
        }
    }
}

/// Reasons why system calls were not counted.
#[derive(Clone, Debug)]
pub enum Uncounted {
    /// This machine does not allow a process to trace its child.
    Refused(String),
    /// The child failed.
    Failed(String),
}

impl fmt::Display for Uncounted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(why) => write!(f, "ptrace(2) is not possible here: {why}"),
            Self::Failed(why) => f.write_str(why),
        }
    }
}

/// Marks where counting begins or ends. Nothing else in the program queries the parent's ID.
pub(super) fn mark() {
    let _ = parent_id();
}

/// Waits until the parent traces this process.
pub(super) fn wait_for_parent() -> Result<(), String> {
    let mut line = String::new();
    let read = std::io::stdin().read_line(&mut line);
    read.map_err(|error| error.to_string())?;
    Ok(())
}

/// The system calls of a child between each pair of marks.
pub(super) fn between_marks(program: &mut Command) -> Result<Vec<Vec<Call>>, Uncounted> {
    let failed =
        |what: &str, error: &dyn fmt::Display| Uncounted::Failed(format!("{what}: {error}"));
    let child = program.stdin(Stdio::piped()).spawn();
    let mut child = Traced(child.map_err(|error| failed("start the child", &error))?);
    let pid = child.pid();
    // The child is stopped while it waits for the line, and reads it when it continues.
    ptrace::seize(pid, Options::PTRACE_O_EXITKILL | Options::PTRACE_O_TRACESYSGOOD)
        .and_then(|()| ptrace::interrupt(pid))
        .and_then(|()| waitpid(pid, None))
        .map_err(|errno| Uncounted::Refused(errno.to_string()))?;
    if let Some(input) = &mut child.0.stdin {
        input.write_all(b"go\n").map_err(|error| failed("wake the child", &error))?;
    }
    let mut stops = Vec::new();
    let mut signal = None;
    loop {
        let status = ptrace::syscall(pid, signal).and_then(|()| waitpid(pid, None));
        signal = None;
        match status.map_err(|errno| failed("trace the child", &errno))? {
            WaitStatus::PtraceSyscall(_) => stops.push(system_call(pid)?),
            WaitStatus::Stopped(_, Signal::SIGTRAP) | WaitStatus::PtraceEvent(..) => {}
            WaitStatus::Stopped(_, other) => signal = Some(other),
            WaitStatus::Exited(_, 0) => break,
            ended => return Err(Uncounted::Failed(format!("the child ended: {ended:?}"))),
        }
    }
    Ok(intervals(&stops))
}

/// A call stops its process twice, at entry and at exit; so does a mark.
fn intervals(stops: &[Call]) -> Vec<Vec<Call>> {
    let mark = Call(libc::SYS_getppid);
    let between: Vec<&[Call]> = stops.split(|call| *call == mark).step_by(2).collect();
    // Calls before the first mark and after the last one do not count.
    let inner = between.get(1..between.len().saturating_sub(1));
    inner
        .unwrap_or_default()
        .iter()
        .map(|stops| {
            let calls = stops.iter().copied().step_by(2);
            calls.filter(|call| !is_assertion(*call)).collect()
        })
        .collect()
}

/// Returns whether this is the call with which the standard library, in a build with assertions,
/// checks before closing a file that it is open.
fn is_assertion(call: Call) -> bool {
    cfg!(debug_assertions) && call.0 == libc::SYS_fcntl
}

/// The system call in which a process is stopped.
fn system_call(pid: Pid) -> Result<Call, Uncounted> {
    let path = format!("/proc/{pid}/syscall");
    let text = fs::read_to_string(&path);
    let text = text.map_err(|error| Uncounted::Refused(format!("{path}: {error}")))?;
    let number = text.split_whitespace().next().and_then(|word| word.parse().ok());
    let number = number.ok_or_else(|| Uncounted::Failed(format!("{path} says '{text}'")))?;
    Ok(Call(number))
}

/// A child that is killed when this is dropped.
struct Traced(Child);

impl Traced {
    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.0.id()).unwrap_or_default())
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
