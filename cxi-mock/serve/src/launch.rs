//! Runs a program and everything that it starts, and leaves none of it behind.
//!
//! Three processes watch over the program: the launcher, which the user started; a guard, which is
//! its child; and another guard, which is the child of that one and the parent of the program. If
//! any two of the three are killed, even at once, the remaining one ends the program and all its
//! descendants.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Command;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use clap::Args;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl::{set_child_subreaper, set_pdeathsig};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{Pid, getpid, getppid};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::error::{Doing, ServeError, say};
use super::namespaces::{Namespaces, Variable};
use super::{children, procfs};

/// Exit status of a program that was killed with its node.
const EXIT_KILLED: u8 = 137;
/// Exit status when the program is there but cannot be run.
const EXIT_CANNOT_RUN: u8 = 126;
/// Exit status when there is no such program.
const EXIT_NOT_FOUND: u8 = 127;

/// This program, even if its file has been replaced or hidden.
pub(crate) const SELF: &str = "/proc/self/exe";

/// Makes this process inherit what its descendants leave behind. Call it before `run`.
pub(crate) fn adopt_orphans() -> Result<(), ServeError> {
    set_child_subreaper(true).doing(|| "become a subreaper of processes".to_owned())
}

/// The variable that tells programs the directory of their node.
pub(crate) const DIR_VARIABLE: &str = "CXI_MOCK_DIR";
/// The variable that tells programs the name of their node in a cluster.
pub(crate) const NODE_VARIABLE: &str = "CXI_MOCK_NODE";

#[derive(Debug, Args)]
pub(crate) struct Program {
    /// The program and its arguments
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true)]
    pub(crate) program: Vec<OsString>,
}

/// A program to run.
#[derive(Debug, Default)]
pub(crate) struct Launch<'a> {
    pub(crate) program: &'a [OsString],
    /// Variables in addition to those of this process.
    pub(crate) variables: Vec<Variable>,
    /// The node that it runs on; `None` for where this process is.
    pub(crate) place: Option<Arc<Namespaces>>,
    /// Text to print before each line of its output.
    pub(crate) label: Option<String>,
}

impl Launch<'_> {
    /// Variables in addition to those of this process: those of the place, then its own.
    fn variables(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        let all = self.place.iter().flat_map(|place| place.variables()).chain(&self.variables);
        all.map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }
}

/// Something whose end ends programs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lifeline<'a> {
    /// It ends when the other end is gone.
    pub(crate) stream: &'a UnixStream,
    /// Message for the user when it ends.
    pub(crate) end: &'a str,
}

/// Runs programs, each under a guard, until all have ended or the other end of `lifeline`, which is
/// the node, is gone. Returns the highest of their exit statuses.
pub(crate) fn run(
    launches: &[Launch<'_>],
    signals: &Signals,
    lifeline: Option<&UnixStream>,
) -> Result<u8, ServeError> {
    let end = "the node is gone, and with it the program";
    let lifeline = lifeline.map(|stream| Lifeline { stream, end });
    Ok(run_for(launches, signals, lifeline)?.unwrap_or(EXIT_KILLED))
}

/// As [`run`]; returns `None` if the lifeline ended first.
pub(crate) fn run_for(
    launches: &[Launch<'_>],
    signals: &Signals,
    lifeline: Option<Lifeline<'_>>,
) -> Result<Option<u8>, ServeError> {
    let mut copies = Vec::new();
    let mut guards = launches
        .iter()
        .map(|launch| start_guard(launch, &mut copies))
        .collect::<Result<Vec<_>, _>>()?;
    let mut status = Some(0);
    while !guards.is_empty() {
        if let (Wakeup::Lifeline, Some(lifeline)) =
            (wait(signals, lifeline.map(|lifeline| lifeline.stream.as_fd()))?, lifeline)
        {
            say(format_args!("{}", lifeline.end));
            status = None;
            break;
        }
        while let Some(arrived) = signals.next() {
            match arrived {
                Arrived::Child => {
                    for (ended, with) in children::reap() {
                        let count = guards.len();
                        guards.retain(|guard| *guard != ended);
                        if guards.len() < count {
                            status = status.max(Some(with));
                        }
                    }
                }
                Arrived::Forward(signal, _) => {
                    for guard in &guards {
                        let _ = kill(*guard, signal);
                    }
                }
                Arrived::ParentDied | Arrived::FromTerminal(_) => {}
            }
        }
    }
    children::kill_all();
    for copy in copies {
        let _ = copy.join();
    }
    Ok(status)
}

/// Prints a label before each line of what a program prints.
fn label(
    command: &mut Command,
    label: &str,
    copies: &mut Vec<JoinHandle<()>>,
) -> Result<(), ServeError> {
    let what = || "print labels".to_owned();
    let (output, writes) = io::pipe().doing(what)?;
    let (errors, writes_errors) = io::pipe().doing(what)?;
    command.stdout(writes).stderr(writes_errors);
    let prefix = format!("[{label}] ");
    let of_errors = prefix.clone();
    copies.push(thread::spawn(move || copy(&prefix, output, io::stdout())));
    copies.push(thread::spawn(move || {
        copy(&of_errors, errors, io::stderr());
    }));
    Ok(())
}

fn copy(prefix: &str, from: impl io::Read, mut to: impl Write) {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    while matches!(from.read_until(b'\n', &mut line), Ok(length) if length > 0) {
        // Label and line are written together, because other threads print too.
        let _ = to.write_all(&[prefix.as_bytes(), &line].concat());
        line.clear();
    }
}

/// Starts the guard of a program.
fn start_guard(launch: &Launch<'_>, copies: &mut Vec<JoinHandle<()>>) -> Result<Pid, ServeError> {
    // A parent in another PID namespace is not visible.
    let parent = match &launch.place {
        Some(place) if place.has_pids() => Pid::from_raw(0),
        _ => getpid(),
    };
    let mut command = guarding(parent, 1, launch.program);
    command.envs(launch.variables());
    if let Some(text) = &launch.label {
        label(&mut command, text, copies)?;
    }
    let Some(place) = launch.place.clone() else { return spawn(&mut command) };
    let (sender, started) = mpsc::sync_channel(1);
    let start = move || {
        let guard = place.join().and_then(|()| spawn(&mut command));
        // This also closes this process's end of the pipe that the program prints to.
        drop(command);
        let _ = sender.send(guard);
        // This thread must live on, because the guard would end with the thread that started it.
        loop {
            thread::park();
        }
    };
    let what = || "start a thread on the node".to_owned();
    let thread = thread::Builder::new().name("launch".to_owned());
    thread.spawn(start).doing(what)?;
    started.recv().map_err(io::Error::other).doing(what)?
}

/// Runs a program on a node without a guard: it is not ended with this process.
pub(crate) fn outlive(launch: &Launch<'_>) -> Result<u8, ServeError> {
    let Some(place) = &launch.place else { return Ok(become_program(launch)) };
    place.join()?;
    if !place.has_pids() {
        return Ok(become_program(launch));
    }
    // Only a child process has a number in the node's PID namespace.
    let [name, arguments @ ..] = launch.program else { return Ok(EXIT_NOT_FOUND) };
    let child = Command::new(name).args(arguments).envs(launch.variables()).spawn();
    match child.and_then(|mut child| child.wait()) {
        Ok(status) => {
            let signal = status.signal().and_then(|signal| signal.try_into().ok());
            let code = status.code().and_then(|code| u8::try_from(code).ok());
            Ok(code.or(signal.map(children::killed_by)).unwrap_or(u8::MAX))
        }
        Err(error) => Ok(cannot_run(name, &error)),
    }
}

/// Waits until a signal ends this process, which serves and starts no program.
pub(crate) fn until_ended(signals: &Signals) -> Result<(), ServeError> {
    // Every device that a program opens takes two descriptors here, so the limit becomes the
    // highest that this user may have. A program started later would inherit that.
    let descriptors = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: descriptors.maximum, ..descriptors });
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
    set_pdeathsig(PARENT_DIED).doing(|| "watch the parent".to_owned())?;
    // The parent may have died before the kernel was asked for the signal.
    if getppid() != parent {
        return Ok(EXIT_KILLED);
    }
    let child = spawn(&mut match more.checked_sub(1) {
        Some(more) => guarding(getpid(), more, program),
        None => this(&["start"], program),
    })?;
    let status = loop {
        wait(&signals, None)?;
        let mut ended = None;
        while let Some(arrived) = signals.next() {
            match arrived {
                Arrived::Child => {
                    let of_child = |(pid, _): &(Pid, u8)| *pid == child;
                    let status = children::reap().into_iter().find(of_child);
                    ended = ended.or(status.map(|(_, status)| status));
                }
                Arrived::Forward(signal, sender) if sender == parent.as_raw() => {
                    let _ = kill(child, signal);
                }
                // The parent's number is not checked here: a parent outside of the PID namespace
                // has the number 0 both before and after its death.
                Arrived::ParentDied => ended = ended.or(Some(EXIT_KILLED)),
                // The program is in the same group and has received the signal, too.
                Arrived::Forward(..) | Arrived::FromTerminal(_) => {}
            }
        }
        if let Some(status) = ended {
            break status;
        }
    };
    children::kill_all();
    Ok(status)
}

/// The last step: becomes the program, tied to its guard. Returns only if that fails.
pub(crate) fn start(program: &[OsString]) -> Result<u8, ServeError> {
    set_pdeathsig(Signal::SIGKILL).doing(|| "tie the program to its guard".to_owned())?;
    release()?;
    Ok(become_program(&Launch { program, ..Launch::default() }))
}

/// Becomes the program. Returns the exit status if that fails.
fn become_program(launch: &Launch<'_>) -> u8 {
    let Some((name, arguments)) = launch.program.split_first() else { return EXIT_NOT_FOUND };
    let error = Command::new(name).args(arguments).envs(launch.variables()).exec();
    cannot_run(name, &error)
}

/// Says why a program does not run; returns the exit status.
fn cannot_run(name: &OsStr, error: &io::Error) -> u8 {
    say(format_args!("cannot run {}: {error}", name.display()));
    match error.kind() {
        io::ErrorKind::NotFound => EXIT_NOT_FOUND,
        _ => EXIT_CANNOT_RUN,
    }
}

enum Wakeup {
    Signals,
    Lifeline,
}

/// Sleeps until there is a signal to read or the lifeline has something.
fn wait(signals: &Signals, lifeline: Option<BorrowedFd<'_>>) -> Result<Wakeup, ServeError> {
    loop {
        let mut fds = vec![PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
        fds.extend(lifeline.map(|end| PollFd::new(end, PollFlags::POLLIN)));
        match poll(&mut fds, PollTimeout::NONE) {
            Ok(_) => {}
            Err(Errno::EINTR) => continue,
            Err(errno) => return Err(errno).doing(|| "wait for signals".to_owned()),
        }
        let ready = |at: usize| fds.get(at).and_then(PollFd::any).unwrap_or(false);
        return Ok(if ready(1) { Wakeup::Lifeline } else { Wakeup::Signals });
    }
}

/// Runs this command again, for a program.
pub(crate) fn this(arguments: &[&str], program: &[OsString]) -> Command {
    let mut command = Command::new(SELF);
    command.arg0("cxi-mock").args(arguments);
    command.arg("--").args(program);
    command
}

/// A guard below this process, which it sees as `parent`, with as many more below it.
fn guarding(parent: Pid, more: u8, program: &[OsString]) -> Command {
    let (parent, more) = (parent.to_string(), more.to_string());
    this(&["guard", "--parent", &parent, "--more", &more], program)
}

fn spawn(command: &mut Command) -> Result<Pid, ServeError> {
    let child = command.spawn().doing(|| "start what watches over the program".to_owned())?;
    Ok(procfs::pid(child.id()))
}

/// Signals that are meant for the program when they arrive at its launcher.
const FORWARDED: [Signal; 8] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGALRM,
    Signal::SIGTERM,
    Signal::SIGWINCH,
];

/// Signal that the kernel sends to a guard whose parent dies: one that is not forwarded to
/// programs, and not SIGCHLD, which would be lost in one that is pending.
const PARENT_DIED: Signal = Signal::SIGPWR;

/// `si_code` of a signal that the kernel made, a terminal's Ctrl-C for one.
const SI_KERNEL: i32 = 0x80;

/// The signals of this process as things to read. They are blocked in all threads made later.
#[derive(Debug)]
pub(crate) struct Signals {
    fd: SignalFd,
}

/// A signal that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrived {
    /// A child changed its state.
    Child,
    /// The parent died.
    ParentDied,
    /// A signal to pass on, and the process that sent it.
    Forward(Signal, i32),
    /// A signal that the program has received from the terminal, too.
    FromTerminal(Signal),
}

impl Signals {
    /// Blocks the signals and takes them over.
    pub(crate) fn take() -> Result<Self, ServeError> {
        let set = handled();
        set.thread_block().doing(|| "block the signals to forward".to_owned())?;
        let fd = SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
            .doing(|| "watch for signals".to_owned())?;
        Ok(Self { fd })
    }

    /// The next signal that has arrived, if one has.
    pub(crate) fn next(&self) -> Option<Arrived> {
        loop {
            let info = match self.fd.read_signal() {
                Ok(Some(info)) => info,
                Err(Errno::EINTR) => continue,
                Ok(None) | Err(_) => return None,
            };
            let number = i32::try_from(info.ssi_signo).unwrap_or_default();
            match Signal::try_from(number) {
                Ok(Signal::SIGCHLD) => return Some(Arrived::Child),
                Ok(PARENT_DIED) => return Some(Arrived::ParentDied),
                Ok(signal) if info.ssi_code == SI_KERNEL => {
                    return Some(Arrived::FromTerminal(signal));
                }
                Ok(signal) => {
                    let sender = i32::try_from(info.ssi_pid).unwrap_or_default();
                    return Some(Arrived::Forward(signal, sender));
                }
                Err(_) => {}
            }
        }
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Lets the signals through again, for a program that is about to be run.
pub(crate) fn release() -> Result<(), ServeError> {
    handled().thread_unblock().doing(|| "unblock the forwarded signals".to_owned())
}

fn handled() -> SigSet {
    FORWARDED.into_iter().chain([Signal::SIGCHLD, PARENT_DIED]).collect::<SigSet>()
}
