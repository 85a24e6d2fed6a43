//! Programs that another one waits for, and not longer than it says.

use std::io;
use std::process::{Child, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Time between two looks at a program.
const PAUSE: Duration = Duration::from_millis(5);

/// Waits for the end of a program; `None` if it has been killed because it took longer.
///
/// Programs that it has started itself go on.
///
/// # Errors
///
/// Those of waiting, and of killing it.
pub fn end_within(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let begins = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        let left = limit.saturating_sub(begins.elapsed());
        if left.is_zero() {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        sleep(PAUSE.min(left));
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_program_ends_in_time_or_is_killed() {
        let mut ends = Command::new("sh").args(["-c", "exit 3"]).spawn().unwrap();
        let status = end_within(&mut ends, Duration::from_secs(60)).unwrap();
        assert_eq!(status.and_then(|status| status.code()), Some(3));

        let mut stays = Command::new("sleep").arg("600").spawn().unwrap();
        let begins = Instant::now();
        assert_eq!(end_within(&mut stays, Duration::from_millis(20)).unwrap(), None);
        assert!(begins.elapsed() < Duration::from_secs(60));
        // It has been reaped, too: its status is known.
        assert!(!stays.try_wait().unwrap().unwrap().success());
    }
}
