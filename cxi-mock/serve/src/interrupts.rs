//! Wait objects as programs poll them.
//!
//! A file reports POLLPRI when the wait object was woken since the file's content was last read
//! through this descriptor, and before the first read: the rule of all sysfs attributes.

use std::collections::HashMap;

use fuser::PollNotifier;
use parking_lot::Mutex;

/// Function, open file and wait object.
pub(crate) type WaitObject = (u16, u32, u32);

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
}

impl Interrupts {
    /// Opens the file of a wait object; returns its handle.
    pub(crate) fn open(&self, wait: WaitObject) -> u64 {
        let mut state = self.state.lock();
        state.next_handle += 1;
        let handle = state.next_handle;
        let watcher = Watcher { wait, seen: None, sleeping: None };
        state.watchers.insert(handle, watcher);
        handle
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
        let watching = state.watchers.values_mut();
        let sleeping: Vec<_> = watching
            .filter(|watcher| watcher.wait == wait)
            .filter_map(|watcher| watcher.sleeping.take())
            .collect();
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
        self.state.lock().woken.retain(|(of, by, _), _| (*of, *by) != (function, client));
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
