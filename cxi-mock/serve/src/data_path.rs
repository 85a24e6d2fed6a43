//! The threads that run the data path: for each NIC one that runs it, and one that watches over it.
//!
//! Doorbells that are not trapped are polled at a [pace](super::pace). Without any, the thread sleeps
//! until there is work that no other thread does. While doorbells of target queues are not trapped,
//! it also polls from time to time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{io, thread};

use cxi_mock::serve::Runner;
use cxi_mock::{Clock, Nic};

use super::namespaces::Home;
use super::pace::{Pace, be_woken_on_time};
use super::server::Server;

/// Interval at which doorbells are polled whose stores are not trapped at the moment.
const LOOK: Duration = Duration::from_micros(500);
/// Time that a thread waits to be notified of work before it checks by itself.
const PARKED: Duration = Duration::from_secs(60);
/// A tick of the fabric's time. After two seconds a NIC gives up an operation that is not answered.
const TICK: Duration = Duration::from_millis(1);

/// Longest time that the access to a process's memory may take before another thread takes over.
const WATCH: Duration = Duration::from_millis(20);

/// Starts the threads of a server's NICs.
pub(crate) fn start(server: &Arc<Server>, home: &Arc<Home>) -> io::Result<()> {
    for function in server.physical() {
        let threads = Threads {
            server: Arc::clone(server),
            home: Arc::clone(home),
            nic: Arc::clone(&function.nic),
            number: function.number,
            runs: AtomicU64::new(0),
        };
        Arc::new(threads).start(0)?;
    }
    Ok(())
}

/// The threads of a NIC: one runs it, and the next one watches over it and takes its place when it
/// waits for memory of a process that does not answer.
struct Threads {
    server: Arc<Server>,
    home: Arc<Home>,
    nic: Arc<Nic>,
    number: u16,
    /// Number of the thread that runs the NIC.
    runs: AtomicU64,
}

impl Threads {
    fn start(self: &Arc<Self>, thread: u64) -> io::Result<()> {
        let threads = Arc::clone(self);
        thread::Builder::new().name(format!("nic{}", self.number)).spawn(move || {
            let _ = threads.home.enter();
            be_woken_on_time();
            threads.watch(thread);
            threads.run(thread);
        })?;
        Ok(())
    }

    fn goes_on(&self) -> bool {
        !self.server.has_ended()
    }

    fn runs(&self, thread: u64) -> bool {
        self.runs.load(Ordering::Relaxed) == thread
    }

    /// Waits until it is this thread's turn.
    fn watch(&self, thread: u64) {
        while self.goes_on() && !self.runs(thread) {
            let nic = Runner::of(&self.nic);
            nic.wait_while_idle();
            let access = nic.access_under_way();
            thread::sleep(WATCH);
            if let Some(access) = access
                && nic.take_over(access)
            {
                self.runs.store(thread, Ordering::Relaxed);
            }
        }
    }

    fn run(self: &Arc<Self>, thread: u64) {
        let (server, nic) = (&self.server, Runner::of(&self.nic));
        let mut is_watched = false;
        let mut pace = Pace::default();
        while self.goes_on() && self.runs(thread) {
            // Each turn, in case that no more threads can be had.
            is_watched = is_watched || self.start(thread + 1).is_ok();
            if nic.step() {
                pace = pace.after_traffic();
                server.wake_all();
                continue;
            }
            if nic.is_polled() && pace.wait_briefly() {
                continue;
            }
            // Events that commands of the control plane have caused.
            server.wake_all();
            if nic.wait_for_work(PARKED) {
                pace = pace.after_traffic();
            } else if nic.tend_doorbells() {
                thread::sleep(LOOK);
            } else {
                nic.pause(pace.longer());
            }
        }
    }
}

/// Starts the thread that lets the time of a fabric pass while an answer may be lost.
pub(crate) fn start_clock(clock: Clock) -> io::Result<()> {
    thread::Builder::new().name("clock".to_owned()).spawn(move || {
        loop {
            if clock.wait(PARKED) {
                let mut now = Instant::now();
                while clock.is_busy() {
                    // A sleep may last longer than it should. The missing ticks then follow at
                    // once, because the elapsed time counts and not the number of sleeps.
                    thread::sleep(TICK.saturating_sub(now.elapsed()));
                    clock.tick();
                    now += TICK;
                }
            }
        }
    })?;
    Ok(())
}
