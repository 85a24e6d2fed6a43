//! Pace at which doorbells are polled that are not trapped.
//!
//! Polling constantly is fastest while a processor is free. Where programs use all of them, a thread
//! that polls constantly or yields uses up its share, and then waits for milliseconds while the
//! programs do. A thread that sleeps for a few microseconds at a time keeps its share, and the
//! scheduler lets it run as soon as it wakes up.

use std::time::{Duration, Instant};
use std::{hint, thread};

use nix::sys::prctl::set_timerslack;

/// Polls without traffic after which the thread yields to others after each poll.
const SPIN: u32 = 64;
/// Polls without traffic after which pauses become longer.
const BRIEF: u32 = 1024;
/// Longest time that yielding takes while a processor is free.
const DISPLACED: Duration = Duration::from_micros(100);
/// Time for which processors count as used up once yielding has taken longer.
const CROWDED: Duration = Duration::from_millis(200);
/// Pause between polls where no processor is free. A shorter one may not let go of the processor.
const NAP: Duration = Duration::from_micros(5);
/// Pauses of the shortest length, before they become longer: doorbells that can be trapped are so by then.
const SHORT: u32 = 64;
/// The shortest and the longest pause after that.
const PAUSE: (Duration, Duration) = (Duration::from_micros(20), Duration::from_millis(10));

/// Pace of a thread that polls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Polls without traffic.
    idle: u32,
    /// Pauses since then, and the next one.
    pauses: u32,
    pause: Duration,
    /// End of the time for which no processor counts as free.
    crowded: Option<Instant>,
}

/// Wait between two polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    Spin,
    Yield,
    Sleep(Duration),
}

impl Default for Pace {
    fn default() -> Self {
        Self { idle: 0, pauses: 0, pause: PAUSE.0, crowded: None }
    }
}

impl Pace {
    /// The pace once there is traffic.
    pub(crate) fn after_traffic(self) -> Self {
        Self { crowded: self.crowded, ..Self::default() }
    }

    /// Waits for a moment while there may be traffic again soon. Returns false if that is unlikely.
    pub(crate) fn wait_briefly(&mut self) -> bool {
        let before = Instant::now();
        match self.next(before) {
            None => return false,
            Some(Wait::Spin) => hint::spin_loop(),
            Some(Wait::Sleep(pause)) => thread::sleep(pause),
            Some(Wait::Yield) => {
                thread::yield_now();
                self.yielded(before, Instant::now());
            }
        }
        true
    }

    /// The next pause without traffic: longer each time.
    pub(crate) fn longer(&mut self) -> Duration {
        let pause = self.pause;
        self.pauses = self.pauses.saturating_add(1);
        if self.pauses > SHORT {
            self.pause = PAUSE.1.min(self.pause * 2);
        }
        pause
    }

    fn next(&mut self, now: Instant) -> Option<Wait> {
        self.idle = self.idle.saturating_add(1);
        let is_crowded = self.crowded.is_some_and(|end| now < end);
        match self.idle {
            BRIEF.. => None,
            _ if is_crowded => Some(Wait::Sleep(NAP)),
            ..SPIN => Some(Wait::Spin),
            _ => Some(Wait::Yield),
        }
    }

    /// Notes how long other threads had the processor that this one gave away.
    fn yielded(&mut self, before: Instant, now: Instant) {
        if now - before > DISPLACED {
            self.crowded = Some(now + CROWDED);
        }
    }
}

/// Lets sleeps of the calling thread end when they should, and not some time later so that the
/// processor wakes up less often.
pub(crate) fn be_woken_on_time() {
    // Refused, pauses are longer.
    let _ = set_timerslack(1);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(pace: &mut Pace, now: Instant) -> Vec<Wait> {
        std::iter::from_fn(|| pace.next(now)).collect()
    }

    #[test]
    fn a_free_processor_is_used_and_then_given_back() {
        let now = Instant::now();
        let mut pace = Pace::default();
        let waits = waits(&mut pace, now);
        let spins = waits.iter().take_while(|wait| **wait == Wait::Spin).count();
        assert_eq!(spins + 1, SPIN as usize);
        assert!(waits[spins..].iter().all(|wait| *wait == Wait::Yield));
        assert_eq!(waits.len() + 1, BRIEF as usize);
        assert_eq!(pace.next(now), None);
        pace.yielded(now, now + DISPLACED);
        assert_eq!(pace.after_traffic().next(now), Some(Wait::Spin));
    }

    /// A thread that has once waited for its turn sleeps between polls, also after traffic, and later
    /// tries again.
    #[test]
    fn a_thread_without_a_processor_of_its_own_sleeps() {
        let before = Instant::now();
        let now = before + Duration::from_millis(3);
        let mut pace = Pace::default();
        pace.yielded(before, now);
        pace = pace.after_traffic();
        let waits = waits(&mut pace, now);
        assert!(!waits.is_empty() && waits.iter().all(|wait| *wait == Wait::Sleep(NAP)));
        pace = pace.after_traffic();
        assert_eq!(pace.next(now + CROWDED / 2), Some(Wait::Sleep(NAP)));
        assert_eq!(pace.next(now + CROWDED), Some(Wait::Spin));
    }

    #[test]
    fn pauses_become_longer_after_a_while() {
        let mut pace = Pace::default();
        let first = (0..SHORT).map(|_| pace.longer()).max();
        assert_eq!(first, Some(PAUSE.0));
        let later = (0..100).map(|_| pace.longer()).max();
        assert_eq!(later, Some(PAUSE.1));
        assert_eq!(pace.after_traffic().longer(), PAUSE.0);
    }

    #[test]
    fn short_sleeps_are_short() {
        be_woken_on_time();
        let shortest = (0..1000).map(|_| {
            let before = Instant::now();
            thread::sleep(NAP);
            before.elapsed()
        });
        // By default, it would be 50 microseconds longer.
        assert!(shortest.min() < Some(NAP + Duration::from_micros(40)));
    }
}
