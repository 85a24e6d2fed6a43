//! The outcome of a command: exit codes and failures.

use std::path::Path;
use std::{fmt, io};

use cxi_ioctl::Errno;
use cxi_job::cluster::NicsUnavailable;
use cxi_site::{ErrorCode, printable};
use serde::Serialize;

/// Exit codes. The numbers are documented in `--help` and do not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub(crate) enum Exit {
    /// A failure that has no specific code.
    Failed = 1,
    /// The command line, a specification or a state file is invalid.
    BadInput = 2,
    /// There is no CXI device.
    NoDevice = 3,
    /// In use by another process; trying again may help.
    Busy = 4,
    /// There is no such service or job.
    NotFound = 5,
    /// The caller lacks a privilege.
    NotPermitted = 6,
    /// The device does not have enough of a resource.
    NotEnough = 7,
    /// There was nothing to do. Not a failure, but scripts may want to know.
    NothingToDo = 8,
    /// `audit` found something that should be fixed.
    Findings = 9,
    /// The job exists, and is another user's.
    OtherUser = 10,
    /// `job run`: the program cannot be started.
    ProgramNotStarted = 126,
    /// `job run`: the program does not exist.
    ProgramNotFound = 127,
}

/// The part of `--help` that lists them.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  failed for a reason that is not listed below
  2  wrong command line, specification file or state file
  3  no device
  4  busy: in use, trying again may help
  5  no such service or job
  6  not permitted
  7  not enough of a resource
  8  nothing to do
  9  audit, collectives preflight, fabric check: something should be fixed; selftest: something is not as expected
  10 the job has not ended, and is another user's
job run ends with the exit code of its program, or 126 or 127 if that cannot be started.";

/// A failure, as shown to the user.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Failure {
    kind: Exit,
    exit_code: u8,
    message: String,
    /// The line of a file that is wrong, for people.
    #[serde(skip)]
    excerpt: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hints: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    errno: Option<ErrnoName>,
}

#[derive(Clone, Debug, Serialize)]
struct ErrnoName {
    name: String,
    number: i32,
}

impl Failure {
    pub(crate) fn new(kind: impl Into<Exit>, message: impl fmt::Display) -> Self {
        let kind = kind.into();
        Self {
            kind,
            exit_code: kind as u8,
            // One line: what it quotes may have been chosen by anybody.
            message: printable(&message.to_string()).into_owned(),
            excerpt: String::new(),
            hints: Vec::new(),
            errno: None,
        }
    }

    /// A message of several lines, of which each part that anybody may have chosen is one line already.
    pub(crate) fn of_lines(kind: impl Into<Exit>, message: &str) -> Self {
        let lines: Vec<_> = message.lines().map(printable).collect();
        Self { message: lines.join("\n"), ..Self::new(kind, "") }
    }

    pub(crate) fn bad_input(message: impl fmt::Display) -> Self {
        Self::new(Exit::BadInput, message)
    }

    /// A failure that has no specific exit code.
    pub(crate) fn failed(message: impl fmt::Display) -> Self {
        Self::new(Exit::Failed, message)
    }

    /// A file that cannot be written.
    pub(crate) fn unwritten(path: &Path, error: &io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::PermissionDenied => Exit::NotPermitted,
            _ => Exit::Failed,
        };
        Self::new(kind, format!("{}: cannot be written: {error}", path.display()))
    }

    /// Adds a line that says what to do about it.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(printable(&hint.into()).into_owned());
        self
    }

    /// Shows people the line of a file that is wrong.
    pub(crate) fn excerpt(mut self, excerpt: impl Into<String>) -> Self {
        self.excerpt = excerpt.into();
        self
    }

    pub(crate) fn errno(mut self, errno: Errno) -> Self {
        self.errno = Some(ErrnoName { name: errno.to_string(), number: errno.raw() });
        self
    }

    /// Without the excerpt and the hints.
    pub(crate) fn message(&self) -> String {
        self.message.clone()
    }

    /// The failure as the library passes it on. The excerpt is lost: the message names its line.
    pub(crate) fn unavailable(self, code: ErrorCode) -> NicsUnavailable {
        let errno = self.errno.map(|errno| Errno::from_raw(errno.number));
        NicsUnavailable { code, message: self.message, hints: self.hints, errno }
    }

    pub(crate) fn kind(&self) -> Exit {
        self.kind
    }
}

/// The alternate form is without the excerpt, which only makes sense with a fixed pitch.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        let excerpt = if f.alternate() { "" } else { &self.excerpt };
        for line in excerpt.lines().chain(self.hints.iter().map(String::as_str)) {
            write!(f, "\n  {line}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}
