//! Progress for people at a terminal while a busy service is waited for.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Mutex, PoisonError};

use cxi_job::release::Waiting;

/// Text wider than the terminal is cut, because only one line can be overwritten.
const NO_WRAP: &str = "\x1b[?7l";
const WRAP: &str = "\x1b[?7h";

/// One line on standard error that is overwritten.
pub(super) struct Progress {
    shown: bool,
    /// Whether there is a line to erase.
    line: Mutex<bool>,
}

impl Progress {
    /// Prints nothing if standard error is not a terminal.
    pub(super) fn new(json: bool) -> Self {
        Self {
            shown: !json && io::stderr().is_terminal(),
            line: Mutex::new(false),
        }
    }

    pub(super) fn tell(&self, waiting: &Waiting) {
        if self.shown {
            // If standard error is closed, there is no way to report that.
            let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = write!(io::stderr(), "\r\x1b[K{NO_WRAP}Waiting: {waiting}{WRAP}");
            *line = true;
        }
    }

    /// Erases the line.
    pub(super) fn end(&self) {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::take(&mut *line) {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
