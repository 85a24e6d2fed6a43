//! Functions that only a server needs: a program that gives the device to other processes, as
//! `cxi-mock` does. They may change in any release.
//!
//! In one process, a [`Client`] maps its windows, and
//! [`run_until_idle`](Nic::run_until_idle) runs the data path. A server has threads instead that
//! never wait for the memory of one process for long ([`Runner`]), passes the memory of windows to
//! programs, and learns of their stores ([`Windows`]).

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

pub use cxi_engine::{ObservedOperation, Observer};
use cxi_ioctl::Errno;

use crate::data_path::{Doorbell, NOT_RUNG, Reach};
use crate::{Client, Nic};

/// A NIC whose data path is run by the threads of a server.
#[derive(Clone, Copy, Debug)]
pub struct Runner<'a>(&'a Nic);

impl<'a> Runner<'a> {
    /// The data path of a NIC.
    #[must_use]
    pub fn of(nic: &'a Nic) -> Self {
        Self(nic)
    }

    /// Polls the doorbells of all queues and does some of the pending work, including what it
    /// causes on other NICs of the node. Returns whether there was any.
    #[must_use]
    pub fn step(self) -> bool {
        self.0.data_path().step()
    }

    /// Waits until there is something that [`step`](Self::step) has to look at, or for this long.
    /// Returns whether it had to wait.
    #[must_use]
    pub fn wait_for_work(self, most: Duration) -> bool {
        self.0.data_path().wait_for_work(most)
    }

    /// Waits while a thread is in [`wait_for_work`](Self::wait_for_work).
    pub fn wait_while_idle(self) {
        self.0.data_path().wait_while_asleep();
    }

    /// The number of the access to the memory of a process that [`step`](Self::step) executes at the
    /// moment. If it stays the same, the process does not answer, and another thread should
    /// [take over](Self::take_over).
    #[must_use]
    pub fn access_under_way(self) -> Option<u64> {
        self.0.data_path().access_under_way()
    }

    /// Takes the place of the thread that executes an access, unless the access has ended. If this
    /// returns true, the calling thread should call [`step`](Self::step) from now on, and the other
    /// one should no longer.
    #[must_use]
    pub fn take_over(self, access: u64) -> bool {
        self.0.data_path().take_over(access)
    }

    /// Returns whether there are queues or counters whose doorbells only [`step`](Self::step) sees.
    #[must_use]
    pub fn is_polled(self) -> bool {
        self.0.data_path().is_polled()
    }

    /// Number of times that [`step`](Self::step) has found stores to doorbells that are polled.
    #[must_use]
    pub fn times_rung(self) -> u64 {
        self.0.data_path().times_rung()
    }

    /// Waits for this long, or until there is news that no poll would find.
    pub fn pause(self, most: Duration) {
        self.0.data_path().pause(most);
    }

    /// Closes the doorbells of target queues that were opened by trapped stores and need not or
    /// must not stay open. Call this between sleeps while it returns that some are open. Without
    /// these calls they stay open, and stores are noticed only by [`step`](Self::step) and together
    /// with other work.
    #[must_use]
    pub fn tend_doorbells(self) -> bool {
        self.0.data_path().tend_doorbells()
    }

    /// Returns the wait objects whose interrupt has come since the last call.
    #[must_use]
    pub fn take_wakes(self) -> Vec<Wake> {
        let wakes = self.0.data_path().take_wakes();
        if wakes.is_empty() {
            return Vec::new();
        }
        let device = self.0.device();
        let wake = |wake: u64| {
            let file = device.files.get(u32::try_from(wake >> 32).ok()?).ok()?;
            Some(Wake {
                virtual_function: file.virtual_function,
                client: file.number,
                wait: u32::try_from(wake & u64::from(u32::MAX)).ok()?,
            })
        };
        wakes.into_iter().filter_map(wake).collect()
    }

    /// Sets an observer of operations and events, or removes it.
    pub fn set_observer(self, observer: Option<Box<dyn Observer>>) {
        self.0.data_path().state().engine.set_observer(observer);
    }
}

/// A wait object whose interrupt has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wake {
    /// Function of the open file; `None` for the physical one.
    pub virtual_function: Option<u32>,
    /// Number of the open file.
    pub client: u32,
    /// Number of the wait object.
    pub wait: u32,
}

/// The windows of an open file that another process maps.
#[derive(Clone, Copy, Debug)]
pub struct Windows<'a>(&'a Client);

impl<'a> Windows<'a> {
    /// The windows of an open file.
    #[must_use]
    pub fn of(client: &'a Client) -> Self {
        Self(client)
    }

    /// The memory behind the windows of this file: a memfd that never shrinks to less than its
    /// windows, with the offsets from the responses. It is created at the first call.
    ///
    /// # Errors
    ///
    /// The errno of creating it.
    pub fn memory(self) -> Result<Arc<OwnedFd>, Errno> {
        let mut device = self.0.nic().device();
        let memory = device.files.get_mut(self.0.file)?.windows.memory()?;
        Ok(Arc::clone(memory.file()))
    }

    /// The memory behind the windows of this file, as [`memory`](Self::memory), for a
    /// program that maps a window of it: the memory never shrinks again, whatever the program does. It
    /// does not have windows whose stores are trapped.
    ///
    /// # Errors
    ///
    /// As [`Client::map`], which it checks the window with.
    pub fn share(self, offset: u64, len: usize) -> Result<SharedWindow, Errno> {
        self.0.map(offset, len)?;
        let mut device = self.0.nic().device();
        let windows = &mut device.files.get_mut(self.0.file)?.windows;
        let memory = Arc::clone(windows.memory()?.shared()?);
        let doorbell = windows.polled_at(offset);
        if let Some(doorbell) = doorbell {
            self.0.nic().data_path().poll(doorbell);
        }
        Ok(SharedWindow { memory, is_doorbell: doorbell.is_some() })
    }

    /// Promises that windows are mapped only after [`share`](Self::share), so that doorbells
    /// need not be polled before.
    pub fn share_all(self) {
        if let Ok(file) = self.0.nic().device().files.get_mut(self.0.file) {
            file.windows.share();
        }
    }

    /// Polls doorbells in shared windows at some offsets because their stores are not trapped in one
    /// mapping each, until [`trap`](Self::trap). Those of a window that is shared are polled at first.
    pub fn untrap(self, offsets: &[u64]) {
        for doorbell in self.doorbells_at(offsets) {
            self.0.nic().data_path().poll(doorbell);
        }
    }

    /// Stops to poll doorbells in shared windows as far as one mapping of each is concerned: whoever maps
    /// them is stopped at the next store. What was stored before is taken.
    pub fn trap(self, offsets: &[u64]) {
        self.0.nic().data_path().unpoll(&self.doorbells_at(offsets));
    }

    fn doorbells_at(self, offsets: &[u64]) -> Vec<Doorbell> {
        let device = self.0.nic().device();
        let Ok(file) = device.files.get(self.0.file) else { return Vec::new() };
        offsets.iter().filter_map(|offset| file.windows.polled_at(*offset)).collect()
    }

    /// Returns whether a store to a window, at an offset, is to be passed to
    /// [`store`](Self::store). No other file of the NIC has such a window at that offset.
    #[must_use]
    pub fn has_doorbell(self, offset: u64) -> bool {
        let device = self.0.nic().device();
        let file = device.files.get(self.0.file);
        file.is_ok_and(|file| file.windows.doorbell_at(offset).is_some())
    }

    /// Executes what a store to a doorbell rings. A program of a user was stopped at the store, at an
    /// offset in the windows of this file, of eight bytes; `value` is `None` if it is not known. Any
    /// store rings a low-latency window, whereas other doorbells need eight bytes.
    ///
    /// Returns the previous word, which is that of a doorbell that has not been rung, or `None` if
    /// nothing was rung. The caller has to take the wake-ups. Memory of processes of other users is
    /// left to [`Runner::step`], because a user could make the calling thread wait there.
    ///
    /// If stores to the doorbells of target queues follow each other closely and cause no events,
    /// the end of the memory is moved past these doorbells, until [`Runner::tend_doorbells`] moves it
    /// back.
    #[must_use]
    pub fn store(self, user: u32, offset: u64, value: Option<u64>) -> Option<u64> {
        let mut device = self.0.nic().device();
        let windows = &mut device.files.get_mut(self.0.file).ok()?.windows;
        let path = self.0.nic().data_path();
        // The device stays locked, so that no number is reused between finding the doorbell and
        // ringing it.
        let rang = windows.doorbell_at(offset).is_some_and(|at| path.ring(self.0.file, at, value));
        // If they cannot be opened, every store is still trapped.
        if path.wants_open(self.0.file)
            && let Ok((memory, queues)) = windows.open_targets()
        {
            path.opened(self.0.file, memory, &queues);
        }
        drop(device);
        path.run(Reach::User(user));
        rang.then_some(NOT_RUNG)
    }
}

/// The memory of a window for a program that maps it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SharedWindow {
    /// The memory, to be mapped at the offset of the window.
    pub memory: Arc<OwnedFd>,
    /// Stores to the window ring a doorbell, which is polled until [`Windows::trap`].
    pub is_doorbell: bool,
}
