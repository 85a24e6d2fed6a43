//! Time that an operation of the controller may take.

use std::time::Duration;

use cxi::Clock;

/// A command has this much time for the pool and for undoing what it began, even if it must not wait.
const LEAST: Duration = Duration::from_secs(1);

/// The time of one operation: whatever it waits for, it waits for what is left of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance<'a> {
    clock: &'a dyn Clock,
    end: Duration,
    /// Until when it may use the pool.
    least: Duration,
}

impl<'a> Allowance<'a> {
    pub(super) fn new(clock: &'a dyn Clock, time: Duration) -> Self {
        let now = clock.now();
        Self { clock, end: now.saturating_add(time), least: now.saturating_add(time.max(LEAST)) }
    }

    /// Returns the time to wait for others.
    pub(super) fn to_wait(self) -> Duration {
        rounded(self.end.saturating_sub(self.clock.now()))
    }

    /// Returns the time that an operation that is under way may take.
    pub(super) fn left(self) -> Duration {
        rounded(self.least.saturating_sub(self.clock.now()))
    }

    /// The same, to undo something.
    pub(super) fn to_undo(self) -> Self {
        Self { least: self.least.max(self.clock.now() + LEAST), ..self }
    }
}

/// Rounded up, as messages say how long something was waited for.
fn rounded(time: Duration) -> Duration {
    let unit = if time < Duration::from_millis(100) { 1 } else { 100 };
    let units = time.as_nanos().div_ceil(unit * 1_000_000);
    Duration::from_millis(u64::try_from(units * unit).unwrap_or(u64::MAX))
}
