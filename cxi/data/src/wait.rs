//! Waiting for something in memory.

use std::time::{Duration, Instant};

use crate::{Error, Result};

/// Attempts after which the thread yields, or sleeps, after each further one.
const SPIN: u32 = 256;
/// Pause between attempts of who waits for long.
const NAP: Duration = Duration::from_micros(50);

/// Calls `check` until it returns something.
pub(crate) fn until<T>(most: Duration, mut check: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let start = Instant::now();
    let mut checks = 0_u32;
    loop {
        if let Some(found) = check()? {
            return Ok(found);
        }
        if start.elapsed() >= most {
            return Err(Error::TimedOut(most));
        }
        checks = checks.saturating_add(1);
        if checks < SPIN {
            std::hint::spin_loop();
        } else {
            std::thread::yield_now();
        }
    }
}

/// Calls `check` until it returns something. For waits that may be long: spins for a moment, then
/// leaves the processor to others.
pub(crate) fn patiently<T>(mut check: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let mut checks = 0_u32;
    loop {
        if let Some(found) = check()? {
            return Ok(found);
        }
        checks = checks.saturating_add(1);
        if checks < SPIN {
            std::hint::spin_loop();
        } else {
            std::thread::sleep(NAP);
        }
    }
}
