//! Time that tests can replace.

use std::fmt;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// A source of time that can also sleep.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Returns the time since some fixed moment; it never goes back.
    fn now(&self) -> Duration;

    /// Sleeps.
    fn sleep(&self, time: Duration);
}

/// The system's clock.
#[derive(Clone, Copy, Debug, Default)]
#[allow(clippy::exhaustive_structs, reason = "there is one clock")]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        START.elapsed()
    }

    fn sleep(&self, time: Duration) {
        std::thread::sleep(time);
    }
}

/// Pauses between attempts: twice as long each time, up to a maximum.
///
/// A service is busy for microseconds while its usage is read, and for longer while a process that
/// uses it dies. The first attempts therefore follow quickly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Backoff {
    /// First pause. Default 1 ms.
    pub first: Duration,
    /// Longest pause. Default 1 s.
    pub longest: Duration,
}

impl Backoff {
    /// From `first`, doubling, to `longest`.
    #[must_use]
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest }
    }

    /// The pauses; the iterator never ends.
    pub fn pauses(self) -> impl Iterator<Item = Duration> {
        std::iter::successors(Some(self.first.min(self.longest)), move |pause| {
            Some(pause.saturating_mul(2).min(self.longest))
        })
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new(Duration::from_millis(1), Duration::from_secs(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_bound() {
        let pauses: Vec<_> =
            Backoff::default().pauses().map(|pause| pause.as_millis()).take(12).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000, 1000]);
    }
}
