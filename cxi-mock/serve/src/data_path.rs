//! The threads that run the data path, one for each NIC.
//!
//! Doorbells that are not trapped are polled: constantly while there is traffic, and less and less
//! often after that. Without traffic, the thread sleeps until there is work that no other thread
//! does. While doorbells of target queues are not trapped, it also polls from time to time.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use cxi_mock::{Clock, Nic};

use super::namespaces::Home;
use super::server::Server;

/// Polls without traffic after which the thread yields to others after each poll.
const SPIN: u32 = 64;
/// Polls without traffic after which the thread sleeps after each poll.
const YIELD: u32 = 1024;
/// The shortest and the longest pause.
const PAUSE: (Duration, Duration) = (Duration::from_micros(20), Duration::from_millis(10));
/// How often doorbells are polled whose stores are not trapped at the moment.
const LOOK: Duration = Duration::from_micros(500);
/// How long a thread waits to be notified of work before it checks by itself.
const PARKED: Duration = Duration::from_secs(60);
/// A tick of the fabric's time. After two seconds a NIC gives up an operation that is not answered.
const TICK: Duration = Duration::from_millis(1);

/// Starts the threads of a server's NICs.
pub(crate) fn start(server: &Arc<Server>, home: &Arc<Home>) -> io::Result<()> {
    for function in server.physical() {
        let (server, home) = (Arc::clone(server), Arc::clone(home));
        let nic = Arc::clone(&function.nic);
        thread::Builder::new()
            .name(format!("nic{}", function.number))
            .spawn(move || {
                let _ = home.enter();
                run(&server, &nic);
            })?;
    }
    Ok(())
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

fn run(server: &Server, nic: &Nic) {
    let mut idle = 0_u32;
    let mut pause = PAUSE.0;
    while !server.has_ended() {
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
            // Commands of the control plane have caused events.
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
