//! Signals that a launcher passes on.

use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use super::error::{Doing, ServeError};

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
    /// A signal to pass on, and the process that sent it.
    Forward(Signal, i32),
    /// A signal that the program has received from the terminal, too.
    FromTerminal(Signal),
}

impl Signals {
    /// Blocks the signals and takes them over.
    pub(crate) fn take() -> Result<Self, ServeError> {
        let set = handled();
        set.thread_block()
            .doing(|| "block the signals to forward".to_owned())?;
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

impl std::os::fd::AsFd for Signals {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Lets the signals through again, for a program that is about to be run.
pub(crate) fn release() -> Result<(), ServeError> {
    handled()
        .thread_unblock()
        .doing(|| "unblock the forwarded signals".to_owned())
}

fn handled() -> SigSet {
    FORWARDED
        .into_iter()
        .chain([Signal::SIGCHLD])
        .collect::<SigSet>()
}
