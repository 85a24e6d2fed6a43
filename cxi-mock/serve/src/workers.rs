//! Threads that answer for the file system, because an answer may have to wait for a NIC, and a
//! write to the memory of a caller may block.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::thread::{self, Thread};
use std::time::Duration;

use parking_lot::Mutex;

/// Time that a thread waits for work before it ends. Starting a thread costs more than most
/// commands.
const PATIENCE: Duration = Duration::from_secs(10);

type Job = Box<dyn FnOnce() + Send>;

/// As many threads as there are jobs at a time.
#[derive(Clone, Default)]
pub(crate) struct Workers {
    shared: Arc<Mutex<Pool>>,
}

#[derive(Default)]
struct Pool {
    jobs: VecDeque<Job>,
    /// The thread that has waited longest is first.
    idle: Vec<Thread>,
}

impl Workers {
    /// Runs a job on a thread. If no thread can be made, the job is dropped.
    pub(crate) fn run(&self, job: Job) {
        let mut state = self.shared.lock();
        state.jobs.push_back(job);
        // The thread that has waited for the shortest time, so that threads that are no longer
        // needed end.
        let worker = state.idle.pop();
        // The woken thread takes the lock at once.
        drop(state);
        if let Some(worker) = worker {
            worker.unpark();
            return;
        }
        let workers = self.clone();
        let started =
            thread::Builder::new().name("answer".to_owned()).spawn(move || workers.work());
        if started.is_err() {
            self.shared.lock().jobs.pop_back();
        }
    }

    fn work(&self) {
        let this = thread::current();
        let mut state = self.shared.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                job();
                state = self.shared.lock();
                continue;
            }
            state.idle.push(this.clone());
            drop(state);
            thread::park_timeout(PATIENCE);
            state = self.shared.lock();
            // The thread is still in the list, so it was not woken.
            if let Some(at) = state.idle.iter().position(|idle| idle.id() == this.id()) {
                state.idle.remove(at);
                return;
            }
        }
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workers").field("idle", &self.shared.lock().idle.len()).finish()
    }
}
