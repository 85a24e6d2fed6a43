//! Doorbells that are trapped: a program is stopped at each store to one, the NIC executes what it
//! rings, and the program continues after the store.
//!
//! A doorbell lies beyond the end of the memory of its file, so that a store raises SIGBUS. The
//! process is traced, so that the signal comes here first. No store is missed, and no thread has to
//! poll. A process that is traced already, or may not be traced, has polled doorbells instead.

#[cfg(target_arch = "x86_64")]
mod store;
#[cfg(target_arch = "x86_64")]
mod tracee;
#[cfg(target_arch = "x86_64")]
mod tracer;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use nix::unistd::Pid;
use parking_lot::Mutex;

use super::procfs::process_of;
use super::server::Server;
use super::setup::Doorbells;

/// The processes whose stores are trapped.
#[derive(Debug)]
pub(crate) struct Traps {
    doorbells: Doorbells,
    traced: Mutex<HashMap<Pid, Arc<Traced>>>,
}

/// State of a process and those that it has forked.
#[derive(Debug, Default)]
struct Traced {
    /// `true` if it can be traced, once that is known.
    seized: OnceLock<bool>,
    /// Increases when a doorbell may be at another address.
    epoch: AtomicU64,
}

impl Traps {
    pub(crate) fn new(doorbells: Doorbells) -> Self {
        Self { doorbells, traced: Mutex::default() }
    }

    /// Traces the process of a thread that waits for a doorbell. Returns whether it is traced.
    pub(crate) fn attach(&self, server: &Arc<Server>, thread: Pid) -> bool {
        let process = match self.doorbells {
            Doorbells::Trap => process_of(thread),
            Doorbells::Poll => None,
        };
        let Some(process) = process else { return false };
        let traced = Arc::clone(self.traced.lock().entry(process).or_default());
        // The lock on all processes is not held here. A process that is executing another program
        // cannot be traced yet, and only its own threads may wait for that.
        if !traced.seized.get_or_init(|| start(server, process, &traced)) {
            self.forget(process, &traced);
            return false;
        }
        traced.epoch.fetch_add(1, Ordering::Release);
        true
    }

    /// Forgets a process that has ended or executes another program, unless it has another tracer
    /// by now.
    fn forget(&self, process: Pid, traced: &Arc<Traced>) {
        let mut all = self.traced.lock();
        if all.get(&process).is_some_and(|it| Arc::ptr_eq(it, traced)) {
            all.remove(&process);
        }
    }
}

#[cfg(target_arch = "x86_64")]
use tracer::start;

/// This module knows no instructions of other processors.
#[cfg(not(target_arch = "x86_64"))]
fn start(_server: &Arc<Server>, _process: Pid, _traced: &Arc<Traced>) -> bool {
    false
}
