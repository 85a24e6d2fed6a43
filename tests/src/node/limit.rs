//! A limit for the time of each test that serves a node, so that none can hang.

use std::io::Write as _;
use std::process::{abort, id};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::{children, kill, soak_length};

/// Longest time of a test, unless tests run at full length or it says otherwise.
const LIMIT: Duration = Duration::from_secs(600);

thread_local! {
    /// Takes another end of the limit. A test has a thread of its own, which ends with it.
    static OF_TEST: Sender<Instant> = watched();
}

fn watched() -> Sender<Instant> {
    let (limits, ends) = channel();
    let test = thread::current().name().unwrap_or("a test").to_owned();
    let mut end = from_now(LIMIT);
    thread::spawn(move || {
        loop {
            match ends.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(another) => end = another,
                Err(RecvTimeoutError::Timeout) => give_up(&test),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    });
    limits
}

fn from_now(longest: Duration) -> Instant {
    Instant::now() + longest + soak_length(0)
}

/// Ends this program and its children, with the name of the test.
fn give_up(test: &str) -> ! {
    let _ = writeln!(std::io::stderr(), "{test} takes too long");
    for child in children(id()) {
        kill("KILL", child);
    }
    abort()
}

/// Begins the limit of this test, unless it has begun.
pub(super) fn start() {
    // Tests that run one after the other share the main thread.
    if thread::current().name() == Some("main") { limit(LIMIT) } else { OF_TEST.with(|_| ()) }
}

/// Ends this program and its children, with the name of the test, if the test takes longer from now on.
pub fn limit(longest: Duration) {
    // Nobody takes it only while the program ends.
    let _ = OF_TEST.with(|test| test.send(from_now(longest)));
}
