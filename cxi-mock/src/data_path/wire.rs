//! NICs that reach each other.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use cxi_engine::Fabric;

use super::{DataPath, Reach};

/// A fabric and the NICs on it.
#[derive(Debug, Default)]
pub(crate) struct Wire {
    fabric: Fabric,
    ends: Mutex<Vec<Weak<DataPath>>>,
    /// `true` while a NIC waits for an answer, for which time must pass.
    waiting: Mutex<bool>,
    waits: Condvar,
}

impl Wire {
    pub(crate) fn new(fabric: Fabric) -> Self {
        Self { fabric, ..Self::default() }
    }

    pub(crate) fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    pub(super) fn add(&self, end: &Arc<DataPath>) {
        let mut ends = self.lock();
        ends.retain(|end| end.strong_count() > 0);
        ends.push(Arc::downgrade(end));
    }

    fn ends(&self) -> Vec<Arc<DataPath>> {
        self.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// Lets NICs process the packets that wait for them. Returns whether there were any.
    pub(super) fn run(&self, reach: Reach) -> bool {
        let mut worked = false;
        loop {
            let waiting = self.fabric.waiting();
            if waiting.is_empty() {
                return worked;
            }
            let ends = self.ends();
            let addressed = ends.iter().filter(|end| waiting.contains(&end.nid()));
            let serve = |any, end: &Arc<DataPath>| {
                let served = end.run_batch(reach);
                end.leave_rest();
                served | any
            };
            if !addressed.fold(false, serve) {
                return worked;
            }
            worked = true;
        }
    }

    /// Lets a tick of the fabric's time pass for all NICs, and executes everything that follows.
    pub(crate) fn tick(&self) {
        self.fabric.tick();
        for end in self.ends() {
            end.run_batch(Reach::Nobody);
        }
        self.run(Reach::Nobody);
        for end in self.ends() {
            end.leave_rest();
        }
    }

    /// Returns whether packets are on their way, or operations wait for an answer.
    pub(crate) fn is_busy(&self) -> bool {
        !self.fabric.is_idle() || self.ends().iter().any(|end| end.awaits_answers())
    }

    pub(super) fn expect_answers(&self) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut *waiting, true) {
            self.waits.notify_all();
        }
    }

    /// Waits until a NIC waits for an answer, but no longer than `most`. Returns whether one does.
    pub(crate) fn wait_for_traffic(&self, most: Duration) -> bool {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.waits.wait_timeout_while(waiting, most, |waiting| !*waiting);
        let (mut waiting, _) = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *waiting)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<DataPath>>> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
