//! What commands print.

pub(crate) mod bar;
pub(crate) mod environment;
pub(crate) mod file;
pub(crate) mod log;
pub(crate) mod nics;
pub(crate) mod table;

use std::fmt;
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::exit::{Exit, Failure};
pub(crate) use log::print_failures;
use log::print_warnings;

pub(crate) const HEADING: Style = Style::new().bold();
pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();

/// The output of a command, for people and for programs.
#[derive(Debug)]
pub(crate) struct Report {
    text: String,
    json: Result<String, Failure>,
    failures: Vec<Failure>,
    warnings: Vec<String>,
    /// The exit code, unless it is 0 and something failed.
    code: Option<u8>,
    undo: Option<Undo>,
}

/// Undoes what cannot be reported; returns what is left, as failures.
struct Undo(Box<dyn FnOnce() -> Vec<Failure>>);

impl fmt::Debug for Undo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Undo")
    }
}

impl Report {
    pub(crate) fn new(text: impl Into<String>, json: &impl Serialize) -> Self {
        let json = serde_json::to_string_pretty(json)
            .map(|json| json + "\n")
            .map_err(|error| Failure::new(Exit::Failed, format!("cannot write JSON: {error}")));
        Self {
            text: text.into(),
            json,
            failures: Vec::new(),
            warnings: Vec::new(),
            code: None,
            undo: None,
        }
    }

    /// Text that is the same with and without `--json`, such as a generated file.
    pub(crate) fn verbatim(text: String) -> Self {
        Self {
            json: Ok(text.clone()),
            text,
            failures: Vec::new(),
            warnings: Vec::new(),
            code: None,
            undo: None,
        }
    }

    /// Part of the work failed; the rest is in the report.
    pub(crate) fn with_failures(mut self, failures: Vec<Failure>) -> Self {
        self.failures.extend(failures);
        self
    }

    /// It worked, but the caller should know.
    pub(crate) fn with_warnings(mut self, warnings: impl IntoIterator<Item = String>) -> Self {
        self.warnings.extend(warnings);
        self
    }

    /// Nothing had to be done.
    pub(crate) fn nothing_to_do(mut self) -> Self {
        self.code = Some(Exit::NothingToDo as u8);
        self
    }

    /// Ends with this code; if it is 0, with that of the first failure.
    pub(crate) fn ending_with(mut self, code: u8) -> Self {
        self.code = Some(code);
        self
    }

    /// Undoes what was done if it cannot be printed: its caller would not know what to clean up.
    pub(crate) fn or_undo(mut self, undo: impl FnOnce() -> Vec<Failure> + 'static) -> Self {
        self.undo = Some(Undo(Box::new(undo)));
        self
    }

    /// Puts this in front of the text for people.
    pub(crate) fn before(mut self, text: &str) -> Self {
        self.text.insert_str(0, text);
        self
    }

    /// The failures.
    pub(crate) fn failures(&self) -> &[Failure] {
        &self.failures
    }

    /// Prints all of it; returns the exit code.
    pub(crate) fn print(self, as_json: bool) -> Result<u8, Failure> {
        let text = if as_json { self.json } else { Ok(self.text) };
        if let Err(failure) = text.and_then(|text| write_out(&text)) {
            let Some(Undo(undo)) = self.undo else {
                return Err(failure);
            };
            let left = undo();
            print_failures(&left, as_json);
            return Err(if left.is_empty() {
                failure.hint("What the command made was destroyed again.")
            } else {
                failure
            });
        }
        print_warnings(&self.warnings, as_json);
        print_failures(&self.failures, as_json);
        let failed = self.failures.first().map(|failure| failure.kind() as u8);
        let code = self.code.filter(|code| *code != 0);
        Ok(code.or(failed).unwrap_or(0))
    }
}

/// Writes to standard output. A reader that has gone, such as `head`, is not a failure.
fn write_out(text: &str) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::new(
            Exit::Failed,
            format!("cannot write to standard output: {error}"),
        )),
        _ => Ok(()),
    }
}
