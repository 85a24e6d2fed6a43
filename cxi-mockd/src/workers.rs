//! Threads that execute commands.
//!
//! A write to the memory of a caller may block, even on the mock's own file system,
//! so the thread that answers for the file system never writes there.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How long a thread waits for work before it ends.
const PATIENCE: Duration = Duration::from_secs(10);

type Job = Box<dyn FnOnce() + Send>;

/// As many threads as there are jobs at a time.
#[derive(Clone, Default)]
pub(crate) struct Workers {
    shared: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    idle: usize,
}

impl Workers {
    /// Runs a job on a thread. If no thread can be made, the job is dropped.
    pub(crate) fn run(&self, job: Job) {
        let mut state = self.state();
        state.jobs.push_back(job);
        let is_awaited = state.jobs.len() <= state.idle;
        // Whoever is woken takes the lock at once.
        drop(state);
        if is_awaited {
            self.shared.1.notify_one();
            return;
        }
        let workers = self.clone();
        let started = thread::Builder::new()
            .name("command".to_owned())
            .spawn(move || workers.work());
        if started.is_err() {
            self.state().jobs.pop_back();
        }
    }

    fn work(&self) {
        let mut state = self.state();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                job();
                state = self.state();
                continue;
            }
            state.idle += 1;
            let waited = self.shared.1.wait_timeout(state, PATIENCE);
            let (woken, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state = woken;
            state.idle -= 1;
            if timeout.timed_out() && state.jobs.is_empty() {
                return;
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workers")
            .field("idle", &self.state().idle)
            .finish()
    }
}
