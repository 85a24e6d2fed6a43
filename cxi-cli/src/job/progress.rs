//! What people at a terminal see while a busy service is waited for.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Mutex, PoisonError};

use cxi_job::release::Waiting;

/// What is wider than the terminal is cut, as only one line can be written over.
const NO_WRAP: &str = "\x1b[?7l";
const WRAP: &str = "\x1b[?7h";

/// One line on standard error that is written over.
pub(super) struct Progress {
    shown: bool,
    /// Whether there is a line to be wiped.
    line: Mutex<bool>,
}

impl Progress {
    /// Silent if nobody watches.
    pub(super) fn new(json: bool) -> Self {
        Self {
            shown: !json && io::stderr().is_terminal(),
            line: Mutex::new(false),
        }
    }

    pub(super) fn tell(&self, waiting: &Waiting) {
        if self.shown {
            // Nobody is left to tell if standard error is closed.
            let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = write!(io::stderr(), "\r\x1b[K{NO_WRAP}Waiting: {waiting}{WRAP}");
            *line = true;
        }
    }

    /// Wipes the line.
    pub(super) fn end(&self) {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::take(&mut *line) {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
