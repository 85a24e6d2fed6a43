//! Runs a program and everything that it starts, and leaves none of it behind.
//!
//! Three processes watch over the program. The launcher is what the user started. A guard is its
//! child, another guard that one's, and the program is the last guard's. Whichever two of the three
//! are killed, also at once, the one that is left ends the program and all its descendants.

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
    let guard = spawn(guarding(1, program).envs(variable))?;
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

/// A guard: runs the program, or another guard above it, and ends everything when that ends or when
/// its parent is gone.
pub(crate) fn guard(parent: i32, more: u8, program: &[OsString]) -> Result<u8, ServeError> {
    let parent = Pid::from_raw(parent);
    let signals = Signals::take()?;
    adopt_orphans()?;
    // The death of the parent arrives as if a child had died.
    set_pdeathsig(Signal::SIGCHLD).doing(|| "watch the parent".to_owned())?;
    if getppid() != parent {
        return Ok(EXIT_KILLED);
    }
    let child = spawn(&mut match more.checked_sub(1) {
        Some(more) => guarding(more, program),
        None => this(&["start"], program),
    })?;
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

/// This command again, for a program.
fn this(arguments: &[&str], program: &[OsString]) -> Command {
    let mut command = Command::new(SELF);
    command.arg0("cxi-mock").args(arguments);
    command.arg("--").args(program);
    command
}

/// A guard below this process, with as many more below it.
fn guarding(more: u8, program: &[OsString]) -> Command {
    let (parent, more) = (getpid().to_string(), more.to_string());
    this(&["guard", "--parent", &parent, "--more", &more], program)
}

fn spawn(command: &mut Command) -> Result<Pid, ServeError> {
    let child = command
        .spawn()
        .doing(|| "start what watches over the program".to_owned())?;
    Ok(Pid::from_raw(i32::try_from(child.id()).unwrap_or_default()))
}
