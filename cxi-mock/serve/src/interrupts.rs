//! Wait objects as programs poll them.
//!
//! A file reports POLLPRI when the wait object was woken since the file's content was last read
//! through this descriptor, and before the first read: the rule of all sysfs attributes.

use std::collections::HashMap;

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;

use cxi_ioctl::Errno;
use fuser::PollNotifier;
use nix::libc::POLLRDHUP;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use parking_lot::Mutex;
use rustix::net::{SendFlags, send};

use super::budget::Share;

/// Function, open file and wait object.
pub(crate) type WaitObject = (u16, u32, u32);

/// Event of a socket whose other end is closed.
const PEER_CLOSED: PollFlags = PollFlags::from_bits_retain(POLLRDHUP);

/// All wait objects with an open file.
#[derive(Debug, Default)]
pub(crate) struct Interrupts {
    state: Mutex<Waits>,
}

#[derive(Debug, Default)]
struct Waits {
    next_handle: u64,
    watchers: HashMap<u64, Watcher>,
    woken: HashMap<WaitObject, u64>,
}

/// An open file of a wait object.
#[derive(Debug)]
struct Watcher {
    wait: WaitObject,
    seen: Option<u64>,
    /// The kernel has one poll handle for each open file, and wakes all who wait there by it: a
    /// later notifier replaces an earlier one, however often a program polls.
    sleeping: Option<PollNotifier>,
    /// Of a program without files: its other end reports POLLPRI.
    sink: Option<(OwnedFd, Share)>,
}

impl Watcher {
    /// Returns whether a program may still poll the other end of its sink.
    fn is_watched(&self) -> bool {
        let Some((sink, _)) = &self.sink else { return true };
        let mut end = [PollFd::new(sink.as_fd(), PEER_CLOSED)];
        poll(&mut end, PollTimeout::ZERO) == Ok(0)
    }
}

/// Connected sockets, one of which reports POLLPRI while the other has sent something out of band that
/// was not received yet. Sockets of the network do so on every kernel; where there is no loopback, those
/// of Linux 5.15 are left.
fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let by_loopback = || {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let theirs = TcpStream::connect(listener.local_addr()?)?;
        let (ours, peer) = listener.accept()?;
        // Another program may have been faster.
        if peer != theirs.local_addr()? {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        ours.set_nodelay(true)?;
        Ok((ours.into(), theirs.into()))
    };
    let local = |_: io::Error| {
        let (ours, theirs) = UnixStream::pair()?;
        Ok((ours.into(), theirs.into()))
    };
    by_loopback().or_else(local)
}

impl Interrupts {
    /// Opens the file of a wait object; returns its handle.
    pub(crate) fn open(&self, wait: WaitObject) -> u64 {
        let mut state = self.state.lock();
        state.next_handle += 1;
        let handle = state.next_handle;
        let watcher = Watcher { wait, seen: None, sleeping: None, sink: None };
        state.watchers.insert(handle, watcher);
        handle
    }

    /// Watches a wait object for a program without files; returns what it polls. It counts among the files
    /// of the program's user, as it takes a descriptor: EMFILE without such a share.
    pub(crate) fn watch(
        &self,
        wait: WaitObject,
        share: impl FnOnce() -> Option<Share>,
    ) -> Result<OwnedFd, Errno> {
        let mut state = self.state.lock();
        state.watchers.retain(|_, watcher| watcher.is_watched());
        let share = share().ok_or(Errno::EMFILE)?;
        let (ours, theirs) = pair().map_err(|error| Errno::from_io(&error))?;
        state.next_handle += 1;
        let handle = state.next_handle;
        let watcher = Watcher { wait, seen: None, sleeping: None, sink: Some((ours, share)) };
        state.watchers.insert(handle, watcher);
        Ok(theirs)
    }

    /// Closes a file.
    pub(crate) fn close(&self, handle: u64) {
        self.state.lock().watchers.remove(&handle);
    }

    /// Notes that the content was read from its start: only a later interrupt is news.
    pub(crate) fn see(&self, handle: u64) {
        let mut state = self.state.lock();
        let state = &mut *state;
        if let Some(watcher) = state.watchers.get_mut(&handle) {
            watcher.seen = Some(state.woken.get(&watcher.wait).copied().unwrap_or_default());
        }
    }

    /// Returns whether there is news. If not, keeps the notifier until there is.
    pub(crate) fn poll(&self, handle: u64, notifier: Option<PollNotifier>) -> bool {
        let mut state = self.state.lock();
        let state = &mut *state;
        let Some(watcher) = state.watchers.get_mut(&handle) else { return false };
        let woken = state.woken.get(&watcher.wait).copied().unwrap_or_default();
        if watcher.seen != Some(woken) {
            return true;
        }
        if notifier.is_some() {
            watcher.sleeping = notifier;
        }
        false
    }

    /// Handles the interrupt of a wait object.
    pub(crate) fn wake(&self, wait: WaitObject) {
        let mut state = self.state.lock();
        *state.woken.entry(wait).or_default() += 1;
        let mut sleeping = Vec::new();
        for watcher in state.watchers.values_mut().filter(|watcher| watcher.wait == wait) {
            sleeping.extend(watcher.sleeping.take());
            if let Some((sink, _)) = &watcher.sink {
                // A program that takes nothing has been told often enough.
                let flags = SendFlags::OOB | SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
                let _ = send(sink, &[0], flags);
            }
        }
        // Notifying makes the kernel ask again, possibly at once and from the thread that answers
        // it.
        drop(state);
        for notifier in sleeping {
            // The waiting program may be gone.
            let _ = notifier.notify();
        }
    }

    /// An open file of a function was closed, and its wait objects with it.
    pub(crate) fn forget(&self, function: u16, client: u32) {
        let mut state = self.state.lock();
        let is_of = |(of, by, _): &WaitObject| (*of, *by) == (function, client);
        state.woken.retain(|wait, _| !is_of(wait));
        state.watchers.retain(|_, watcher| watcher.sink.is_none() || !is_of(&watcher.wait));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_rearms() {
        let interrupts = Interrupts::default();
        let (one, two) = (interrupts.open((0, 1, 1)), interrupts.open((0, 1, 1)));
        assert!(interrupts.poll(one, None), "before the first read");
        interrupts.see(one);
        interrupts.see(two);
        assert!(!interrupts.poll(one, None));
        interrupts.wake((0, 1, 2));
        assert!(!interrupts.poll(one, None), "another wait object");
        interrupts.wake((0, 1, 1));
        assert!(interrupts.poll(one, None) && interrupts.poll(two, None));
        interrupts.see(one);
        assert!(!interrupts.poll(one, None) && interrupts.poll(two, None));
        interrupts.close(two);
        assert!(!interrupts.poll(two, None));
    }
}
