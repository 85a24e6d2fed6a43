//! The processes below this one.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpid};

use super::procfs;

/// Longest time that killed processes may take to disappear.
const PATIENCE: Duration = Duration::from_secs(10);

/// `true` if threads of this process trace others.
pub(crate) static TRACES: AtomicBool = AtomicBool::new(false);

/// Collects every child that has ended; returns which, and their exit status.
pub(crate) fn reap() -> Vec<(Pid, u8)> {
    let mut ended = Vec::new();
    if TRACES.load(Ordering::Acquire) {
        // To wait for any child would take the stops of traced processes from their tracers.
        for child in of_this_process().filter(|child| is_zombie(*child)) {
            let status = waitpid(child, Some(WaitPidFlag::WNOHANG));
            ended.extend(status.ok().and_then(end));
        }
        return ended;
    }
    loop {
        match waitpid(None::<Pid>, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => return ended,
            Ok(status) => ended.extend(end(status)),
            Err(Errno::EINTR) => {}
            Err(_) => return ended,
        }
    }
}

/// Returns the process that a status says has ended, and its exit status.
fn end(status: WaitStatus) -> Option<(Pid, u8)> {
    match status {
        WaitStatus::Exited(pid, code) => Some((pid, u8::try_from(code).unwrap_or(u8::MAX))),
        WaitStatus::Signaled(pid, signal, _) => Some((pid, killed_by(signal))),
        _ => None,
    }
}

/// The exit status by which shells report death by a signal.
pub(crate) fn killed_by(signal: Signal) -> u8 {
    u8::try_from(128 + signal as i32).unwrap_or(u8::MAX)
}

/// Kills everything below this process, which must be a child subreaper: a process that loses its
/// parent becomes a child of it and is found in the next round.
pub(crate) fn kill_all() {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        for child in of_this_process() {
            let _ = kill(child, Signal::SIGKILL);
        }
        loop {
            match waitpid(None::<Pid>, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) => break,
                Err(Errno::ECHILD) => return,
                Ok(_) | Err(_) => {}
            }
        }
        sleep(Duration::from_millis(1));
    }
}

fn of_this_process() -> impl Iterator<Item = Pid> {
    let processes = fs::read_dir("/proc").into_iter().flatten();
    processes
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .map(Pid::from_raw)
        .filter(|pid| parent_of(*pid) == Some(getpid().as_raw()))
}

fn is_zombie(pid: Pid) -> bool {
    let stat = procfs::text(pid, "stat").unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('Z'))
}

fn parent_of(pid: Pid) -> Option<i32> {
    parent_in(&procfs::text(pid, "stat")?)
}

/// The parent in a `/proc/PID/stat`. The name before it may contain anything, even parentheses.
fn parent_in(stat: &str) -> Option<i32> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_stands_behind_any_name() {
        assert_eq!(parent_in("12 (sh) S 7 12 12 0"), Some(7));
        assert_eq!(parent_in("12 (a) S 9 (b) R 8 12"), Some(8));
        assert_eq!(parent_in("12 (sh"), None);
        assert_eq!(parent_in(""), None);
    }

    #[test]
    fn the_own_parent_is_found() {
        let own = parent_of(getpid());
        assert_eq!(own, Some(nix::unistd::getppid().as_raw()));
    }

    #[test]
    fn a_signal_shows_as_in_a_shell() {
        assert_eq!(killed_by(Signal::SIGKILL), 137);
        assert_eq!(killed_by(Signal::SIGTERM), 143);
    }
}
