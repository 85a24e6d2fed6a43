//! Doorbells that are trapped: a program is stopped at each store to one, the NIC executes what it
//! rings, and the program continues after the store.
//!
//! A doorbell lies beyond the end of the memory of its file, so that a store raises SIGBUS, and the
//! process is traced, so that the signal comes here first. Each store counts, and no thread
//! has to look. A process that is traced already, or may not be traced, has polled doorbells instead.

#[cfg(target_arch = "x86_64")]
mod loan;
#[cfg(target_arch = "x86_64")]
mod store;
#[cfg(target_arch = "x86_64")]
mod tracee;
#[cfg(target_arch = "x86_64")]
mod tracer;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use nix::unistd::Pid;

#[cfg(not(target_arch = "x86_64"))]
use super::process::RemoteAddress;
use super::process::process_of;
use super::server::{OpenFile, Server};
use super::setup::Doorbells;

/// The processes whose stores are trapped.
#[derive(Debug)]
pub(crate) struct Traps {
    doorbells: Doorbells,
    traced: Mutex<HashMap<Pid, Arc<Traced>>>,
}

/// What is known about a process and those that it has forked.
#[derive(Debug, Default)]
struct Traced {
    /// Files that it may have doorbells of.
    files: Mutex<Vec<Weak<OpenFile>>>,
    /// Grows when a doorbell may be at another address.
    epoch: AtomicU64,
}

impl Traps {
    pub(crate) fn new(doorbells: Doorbells) -> Self {
        Self {
            doorbells,
            traced: Mutex::default(),
        }
    }

    /// Traces the process of a thread that waits for a doorbell of a file. Says whether it is
    /// traced.
    pub(crate) fn attach(&self, server: &Arc<Server>, thread: Pid, file: &Arc<OpenFile>) -> bool {
        let process = match self.doorbells {
            Doorbells::Trap => process_of(thread),
            Doorbells::Poll => None,
        };
        let Some(process) = process else {
            return false;
        };
        let mut all = self.traced();
        let traced = if let Some(traced) = all.get(&process) {
            Arc::clone(traced)
        } else {
            let traced = Arc::default();
            if !start(server, process, &traced) {
                return false;
            }
            all.insert(process, Arc::clone(&traced));
            traced
        };
        traced.epoch.fetch_add(1, Ordering::Release);
        let mut files = traced.files();
        files.retain(|known| known.strong_count() > 0);
        let file = Arc::downgrade(file);
        if !files.iter().any(|known| known.ptr_eq(&file)) {
            files.push(file);
        }
        true
    }

    fn traced(&self) -> MutexGuard<'_, HashMap<Pid, Arc<Traced>>> {
        self.traced.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Traced {
    fn files(&self) -> MutexGuard<'_, Vec<Weak<OpenFile>>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use loan::copy;
#[cfg(target_arch = "x86_64")]
use tracer::start;

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn copy(_from: RemoteAddress, _to: RemoteAddress, _len: usize) -> bool {
    false
}

/// The instructions of other processors are not known here.
#[cfg(not(target_arch = "x86_64"))]
fn start(_server: &Arc<Server>, _process: Pid, _traced: &Arc<Traced>) -> bool {
    false
}
