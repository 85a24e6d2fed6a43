//! Progress of a command that takes time.

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use terminal_size::terminal_size_of;

use super::style::shown;
use super::{Format, log};

/// Interval at which a line is written to a log, after the first second.
const LOGGED: Duration = Duration::from_secs(30);

/// Shows on standard error what the command is doing: on a terminal, lines that are overwritten, and
/// erased in the end; in a log, a line from time to time.
pub(crate) struct Progress {
    to: Target,
    started: Instant,
    /// Number of lines of the terminal to erase, and the time of the next line to a log.
    state: Mutex<(usize, Duration)>,
}

#[derive(Clone, Copy, PartialEq)]
enum Target {
    Nothing,
    Terminal,
    Log,
}

impl Target {
    fn chosen() -> Self {
        if Format::chosen() == Format::Json || log::is_quiet() {
            Self::Nothing
        } else if log::is_text() && io::stderr().is_terminal() {
            Self::Terminal
        } else {
            Self::Log
        }
    }
}

/// Says that another command has the lock that this one waits for.
pub(crate) fn print_wait(lock: &Path) {
    if Target::chosen() != Target::Nothing {
        let lock = lock.display();
        log::print_info(&format!("Waiting for another command to release {lock}"));
    }
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self {
            to: Target::chosen(),
            started: Instant::now(),
            state: Mutex::new((0, Duration::from_secs(1))),
        }
    }

    pub(crate) fn tell(&self, what: impl Display) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (lines, due) = &mut *state;
        let text = what.to_string();
        let elapsed = self.started.elapsed();
        // If standard error is closed, there is no way to report that.
        match self.to {
            Target::Terminal => {
                let width = terminal_size_of(io::stderr()).map_or(80, |(width, _)| width.0.max(1));
                let _ = write!(io::stderr(), "{}{}", erased(*lines), shown(&text, false));
                *lines = text.chars().count().div_ceil(width.into());
            }
            Target::Log if elapsed >= *due => {
                log::print_info(&text);
                *due = elapsed + LOGGED;
            }
            Target::Log | Target::Nothing => {}
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        let (lines, _) = *self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = write!(io::stderr(), "{}", erased(lines));
    }
}

/// Erases the last lines of a terminal.
fn erased(lines: usize) -> String {
    match lines {
        0 => String::new(),
        1 => "\r\x1b[J".to_owned(),
        lines => format!("\r\x1b[{}A\x1b[J", lines - 1),
    }
}
