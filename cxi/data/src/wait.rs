//! Waiting for something in memory.

use std::time::{Duration, Instant};

use crate::{Error, Result};

/// Attempts after which the thread yields after each further one.
const SPIN: u32 = 256;

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
