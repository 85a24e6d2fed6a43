//! Errors around the mock, the corresponding exit status, and messages for the user.

use std::fmt;
use std::io::{self, IsTerminal as _, Write as _};

use serde_json::Value;

/// Exit status of a launcher that failed itself, as `timeout(1)` and `docker run` have it.
pub(crate) const EXIT_FAILED: u8 = 125;
/// Exit status where the machine cannot serve the mock: test drivers read it as "skipped".
pub(crate) const EXIT_MISSING: u8 = 77;

/// Reason for which the mock cannot be served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServeError {
    /// The machine lacks something, or the user lacks a permission.
    #[error("{what}\n  {how}")]
    Missing {
        /// Thing that is missing.
        what: String,
        /// Way to get it.
        how: String,
    },
    /// Something that the user gave is wrong.
    #[error("{0}")]
    Input(String),
    /// The system refused a step.
    #[error("cannot {doing}: {source}")]
    System {
        /// Attempt that failed.
        doing: String,
        /// Error of the system.
        source: io::Error,
    },
}

impl ServeError {
    /// Something that is missing, and how to get it.
    pub(crate) fn missing(what: impl Into<String>, how: impl Into<String>) -> Self {
        Self::Missing { what: what.into(), how: how.into() }
    }

    /// The exit status that distinguishes this error from others.
    pub(crate) fn exit_status(&self) -> u8 {
        match self {
            Self::Missing { .. } => EXIT_MISSING,
            Self::Input(_) | Self::System { .. } => EXIT_FAILED,
        }
    }
}

/// Says what was being done when the system refused.
pub(crate) trait Doing<T> {
    /// Adds what was being done, in words that can follow "cannot".
    fn doing(self, what: impl FnOnce() -> String) -> Result<T, ServeError>;
}

impl<T, E: Into<io::Error>> Doing<T> for Result<T, E> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T, ServeError> {
        self.map_err(|error| ServeError::System { doing: what(), source: error.into() })
    }
}

/// Prints a message for the user of the command.
pub(crate) fn say(message: fmt::Arguments<'_>) {
    // In one piece, because other nodes and their programs may write to the same file.
    let line = format!("cxi-mock: {message}\n");
    let _ = io::stderr().write_all(line.as_bytes());
}

/// Shows on a terminal how far something is, in place of what was shown before.
pub(crate) fn show_progress(how_far: fmt::Arguments<'_>) {
    if io::stderr().is_terminal() {
        let _ = write!(io::stderr(), "\r\x1b[K{how_far}");
    }
}

/// Prints, unless the reader is gone.
pub(crate) fn print(answer: &Value) {
    let _ = match answer {
        Value::String(text) => writeln!(io::stdout(), "{text}"),
        other => writeln!(io::stdout(), "{other:#}"),
    };
}
