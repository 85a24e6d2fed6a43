//! The threads that run the data path, one for each NIC.
//!
//! Doorbells that are not trapped are polled: while there is traffic the thread looks all the time,
//! then less and less often. Without any, it sleeps until there is work that no other thread
//! does. While doorbells of target queues are open, it also looks now and then.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use cxi_mock::{Clock, Nic};

use super::namespaces::Home;
use super::server::Server;

/// Looks without traffic after which the thread lets others run after each.
const SPIN: u32 = 64;
/// Looks after which it sleeps after each.
const YIELD: u32 = 1024;
/// The shortest and the longest pause.
const PAUSE: (Duration, Duration) = (Duration::from_micros(20), Duration::from_millis(10));
/// How often doorbells are looked at whose stores are not trapped for the moment.
const LOOK: Duration = Duration::from_micros(500);
/// How long a thread waits to be notified of work before it looks for itself.
const PARKED: Duration = Duration::from_secs(60);
/// A tick of the fabric's time: after two seconds a NIC gives up what is not answered.
const TICK: Duration = Duration::from_millis(1);

/// Looks at whether a thread waits for a process.
const WATCH: Duration = Duration::from_millis(20);

/// Starts the threads of a server's NICs.
pub(crate) fn start(server: &Arc<Server>, home: &Arc<Home>) -> io::Result<()> {
    for function in server.functions.iter().filter(|it| it.vf.is_none()) {
        let runner = Runner {
            server: Arc::clone(server),
            home: Arc::clone(home),
            nic: Arc::clone(&function.nic),
            number: function.number,
            runs: Arc::default(),
        };
        runner.start(0)?;
    }
    Ok(())
}

/// What runs a NIC: a thread, and another one that takes its place when it waits for memory of a
/// process that does not answer.
#[derive(Clone)]
struct Runner {
    server: Arc<Server>,
    home: Arc<Home>,
    nic: Arc<Nic>,
    number: u16,
    /// Which of the threads runs the NIC.
    runs: Arc<AtomicU64>,
}

impl Runner {
    /// Starts a thread that runs the NIC, and one that watches it.
    fn start(&self, thread: u64) -> io::Result<()> {
        let spawn = |name: &str, run: fn(&Self, u64)| {
            let runner = self.clone();
            thread::Builder::new()
                .name(format!("{name}{}", self.number))
                .spawn(move || {
                    let _ = runner.home.enter();
                    run(&runner, thread);
                })
                .map(drop)
        };
        spawn("nic", Self::run)?;
        spawn("watch", Self::watch)
    }

    fn watch(&self, thread: u64) {
        while !self.server.has_ended() {
            self.nic.wait_while_idle();
            let access = self.nic.access_under_way();
            thread::sleep(WATCH);
            if access.is_some() && access == self.nic.access_under_way() {
                self.runs.store(thread + 1, Ordering::Relaxed);
                // Without one, the NIC goes on when the process answers or has ended.
                if self.start(thread + 1).is_ok() {
                    return;
                }
                self.runs.store(thread, Ordering::Relaxed);
            }
        }
    }

    fn run(&self, thread: u64) {
        let (server, nic) = (&self.server, &self.nic);
        let mut idle = 0_u32;
        let mut pause = PAUSE.0;
        while !server.has_ended() && self.runs.load(Ordering::Relaxed) == thread {
            if nic.step() {
                (idle, pause) = (0, PAUSE.0);
                server.wake_all();
                continue;
            }
            idle = idle.saturating_add(1);
            if idle < SPIN && nic.is_polled() {
                std::hint::spin_loop();
            } else if idle < YIELD && nic.is_polled() {
                thread::yield_now();
            } else {
                // Events that commands of the control plane have caused.
                server.wake_all();
                if nic.wait_for_work(PARKED) {
                    (idle, pause) = (0, PAUSE.0);
                } else if nic.tend_doorbells() {
                    thread::sleep(LOOK);
                } else {
                    thread::sleep(pause);
                    pause = PAUSE.1.min(pause * 2);
                }
            }
        }
    }
}

/// Starts the thread that lets the time of a fabric pass while an answer may be lost.
pub(crate) fn start_clock(clock: Clock) -> io::Result<()> {
    thread::Builder::new()
        .name("clock".to_owned())
        .spawn(move || {
            loop {
                if clock.wait(PARKED) {
                    let mut now = Instant::now();
                    while clock.is_busy() {
                        // A sleep may last longer than it should: then the next ticks follow at
                        // once, as it is time that counts, and not sleeps.
                        thread::sleep(TICK.saturating_sub(now.elapsed()));
                        clock.tick();
                        now += TICK;
                    }
                }
            }
        })?;
    Ok(())
}
