//! Programs that another one waits for, and not longer than it says.

use std::io;
use std::process::{Child, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Time between two looks at a program.
const PAUSE: Duration = Duration::from_millis(5);

/// Time that a killed program has to end. One that waits in the kernel, as for the server of a file
/// system, cannot.
const KILLED: Duration = Duration::from_secs(1);

/// Waits for the end of a program; `None` if it has been killed because it took longer.
///
/// Programs that it has started itself go on. A killed program that waits in the kernel goes on, too, until
/// the kernel lets it end; this function returns after a second.
///
/// # Errors
///
/// Those of waiting, and of killing it.
pub fn end_within(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let status = within(limit, || child.try_wait())?;
    if status.is_none() {
        child.kill()?;
        within(KILLED, || child.try_wait())?;
    }
    Ok(status)
}

/// Looks for a status until there is one; `None` if that takes longer.
fn within(
    limit: Duration,
    mut look: impl FnMut() -> io::Result<Option<ExitStatus>>,
) -> io::Result<Option<ExitStatus>> {
    let begins = Instant::now();
    loop {
        let status = look()?;
        let left = limit.saturating_sub(begins.elapsed());
        if status.is_some() || left.is_zero() {
            return Ok(status);
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

    #[test]
    fn a_program_that_never_ends_is_given_up() {
        let mut looks = 0;
        let never = || {
            looks += 1;
            Ok(None)
        };
        assert_eq!(within(PAUSE * 2, never).unwrap(), None);
        assert!(looks >= 2);
    }
}
