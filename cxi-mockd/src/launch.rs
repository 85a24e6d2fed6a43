//! Runs a program and everything that it starts, and leaves none of it behind.
//!
//! Two processes watch over the program. The launcher is what the user started. The guard is its
//! child, and the program is the guard's. Whichever of the two is killed, the other one ends the
//! program and all its descendants.

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl::{set_child_subreaper, set_pdeathsig};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpid, getppid};

use super::children;
use super::error::{Doing, ServeError};
use super::signals::{Arrived, Signals, release};

/// Exit status of something that was killed with its node.
const EXIT_KILLED: u8 = 137;
/// Exit status when the program is there but cannot be run.
const EXIT_CANNOT_RUN: u8 = 126;
/// Exit status when there is no such program.
const EXIT_NOT_FOUND: u8 = 127;

/// This program, also where its file has been replaced or covered.
const SELF: &str = "/proc/self/exe";

/// Makes this process inherit what its descendants leave behind. Call it before `run`.
pub(crate) fn adopt_orphans() -> Result<(), ServeError> {
    set_child_subreaper(true).doing(|| "become a subreaper of processes".to_owned())
}

/// Runs a program under a guard until it ends, or until the other end of `lifeline` is gone.
pub(crate) fn run(
    program: &[OsString],
    signals: &Signals,
    variable: Option<(&str, OsString)>,
    lifeline: Option<&UnixStream>,
) -> Result<u8, ServeError> {
    let guard = Command::new(SELF)
        .arg0("cxi-mock")
        .args(["guard", "--parent", &getpid().to_string(), "--"])
        .args(program)
        .envs(variable)
        .spawn()
        .doing(|| "start the guard of the program".to_owned())?;
    let guard = pid_of(&guard);
    let status = loop {
        match wait(signals, lifeline)? {
            Event::Lifeline => {
                super::say(format_args!("the node is gone, and with it the program"));
                break EXIT_KILLED;
            }
            Event::Signals => {}
        }
        let mut ended = None;
        while let Some(arrived) = signals.next() {
            match arrived {
                Arrived::Child => ended = ended.or_else(|| children::reap(guard)),
                Arrived::Forward(signal, _) => {
                    let _ = kill(guard, signal);
                }
                Arrived::FromTerminal(_) => {}
            }
        }
        if let Some(status) = ended {
            break status;
        }
    };
    children::kill_all();
    Ok(status)
}

/// Waits until somebody wants this process to end.
pub(crate) fn until_ended(signals: &Signals) -> Result<(), ServeError> {
    loop {
        wait(signals, None)?;
        while let Some(arrived) = signals.next() {
            if let Arrived::Forward(signal, _) | Arrived::FromTerminal(signal) = arrived
                && matches!(signal, Signal::SIGTERM | Signal::SIGINT | Signal::SIGHUP)
            {
                return Ok(());
            }
        }
    }
}

/// The guard: runs the program, and ends everything when it ends or when the launcher is gone.
pub(crate) fn guard(parent: i32, program: &[OsString]) -> Result<u8, ServeError> {
    let parent = Pid::from_raw(parent);
    let signals = Signals::take()?;
    adopt_orphans()?;
    // The death of the launcher arrives as if a child had died.
    set_pdeathsig(Signal::SIGCHLD).doing(|| "watch the launcher".to_owned())?;
    if getppid() != parent {
        return Ok(EXIT_KILLED);
    }
    let child = Command::new(SELF)
        .arg0("cxi-mock")
        .args(["start", "--"])
        .args(program)
        .spawn()
        .doing(|| "start the program".to_owned())?;
    let child = pid_of(&child);
    let status = loop {
        wait(&signals, None)?;
        let mut ended = None;
        while let Some(arrived) = signals.next() {
            match arrived {
                Arrived::Child => ended = ended.or_else(|| children::reap(child)),
                Arrived::Forward(signal, sender) if sender == parent.as_raw() => {
                    let _ = kill(child, signal);
                }
                // The program is in the same group and has got it, too.
                Arrived::Forward(..) | Arrived::FromTerminal(_) => {}
            }
        }
        if let Some(status) = ended {
            break status;
        }
        if getppid() != parent {
            break EXIT_KILLED;
        }
    };
    children::kill_all();
    Ok(status)
}

/// The last step: becomes the program, tied to its guard. Returns only if that fails.
pub(crate) fn start(program: &[OsString]) -> Result<u8, ServeError> {
    set_pdeathsig(Signal::SIGKILL).doing(|| "tie the program to its guard".to_owned())?;
    release()?;
    Ok(become_program(program, None))
}

/// Becomes the program. Returns the exit status if that fails.
pub(crate) fn become_program(program: &[OsString], variable: Option<(&str, OsString)>) -> u8 {
    let Some((name, arguments)) = program.split_first() else {
        return EXIT_NOT_FOUND;
    };
    let error = Command::new(name).args(arguments).envs(variable).exec();
    super::say(format_args!("cannot run {}: {error}", name.display()));
    match error.kind() {
        std::io::ErrorKind::NotFound => EXIT_NOT_FOUND,
        _ => EXIT_CANNOT_RUN,
    }
}

enum Event {
    Signals,
    Lifeline,
}

/// Sleeps until there is a signal to read or the lifeline has something.
fn wait(signals: &Signals, lifeline: Option<&UnixStream>) -> Result<Event, ServeError> {
    loop {
        let mut fds = vec![PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
        fds.extend(lifeline.map(|end| PollFd::new(end.as_fd(), PollFlags::POLLIN)));
        match poll(&mut fds, PollTimeout::NONE) {
            Ok(_) => {}
            Err(Errno::EINTR) => continue,
            Err(errno) => return Err(errno).doing(|| "wait for signals".to_owned()),
        }
        let ready = |at: usize| fds.get(at).and_then(PollFd::any).unwrap_or(false);
        return Ok(if ready(1) {
            Event::Lifeline
        } else {
            Event::Signals
        });
    }
}

fn pid_of(child: &std::process::Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).unwrap_or_default())
}
