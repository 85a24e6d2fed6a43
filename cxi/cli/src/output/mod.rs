//! The output of commands.

mod csv;
pub(crate) mod forms;
pub(crate) mod log;
mod progress;
pub(crate) mod shapes;
pub(crate) mod style;
pub(crate) mod svg;
mod text;

use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _, Write};
use std::sync::OnceLock;
use std::time::Duration;
use std::{fmt, thread};

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use clap::ValueEnum;
use crossterm::cursor::MoveTo;
use crossterm::execute;
use crossterm::terminal::{Clear, ClearType};
use cxi::DeviceId;
use cxi_site::printable_json;
use serde::{Serialize, Serializer};

use crate::exit::{Exit, Failure};
use log::print_warnings;
pub(crate) use log::{print_failures, print_usage};
pub(crate) use progress::{Progress, print_wait};
pub(crate) use text::{
    BAR_WIDTH, Columns, Palette, by_nic, fullness, is_short, joined, merge, nic_names, or_dash,
    percent, wrapped,
};

/// The form of a command's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Tables that fit the terminal
    Table,
    /// Tables with all columns
    Wide,
    /// JSON, as with --json
    Json,
    /// The same in YAML
    Yaml,
    /// The result's list as comma-separated values
    Csv,
}

static FORMAT: OnceLock<Format> = OnceLock::new();

impl Format {
    /// Chooses the form for this process.
    pub(crate) fn choose(self) {
        // Chosen once, at the start.
        let _ = FORMAT.set(self);
    }

    pub(crate) fn chosen() -> Self {
        FORMAT.get().copied().unwrap_or(Self::Table)
    }

    /// Returns whether the form is one for people.
    pub(crate) fn is_text(self) -> bool {
        matches!(self, Self::Table | Self::Wide)
    }

    fn write(self, text: String, value: &impl Serialize) -> Result<String, Failure> {
        let failed =
            |error: &dyn fmt::Display| Failure::failed(format!("cannot write the result: {error}"));
        Ok(match self {
            Self::Table | Self::Wide => text,
            Self::Json => {
                let json = serde_json::to_string_pretty(value).map_err(|error| failed(&error))?;
                printable_json(json) + "\n"
            }
            Self::Yaml => serde_saphyr::to_string(value).map_err(|error| failed(&error))?,
            Self::Csv => {
                // In the order of the fields, which a value of serde_json does not keep.
                let json = serde_json::to_string(value).map_err(|error| failed(&error))?;
                csv::rows(&serde_json::from_str(&json).map_err(|error| failed(&error))?)
            }
        })
    }
}

/// The output of a command, for people or for programs.
#[derive(Debug)]
pub(crate) struct Report {
    text: Result<String, Failure>,
    failures: Vec<Failure>,
    warnings: Vec<String>,
    /// The exit code, unless it is 0 and something failed.
    code: Option<u8>,
    undo: Option<Undo>,
}

/// An object with one member.
struct Member<'a, T>(&'a str, &'a T);

impl<T: Serialize> Serialize for Member<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([(self.0, self.1)])
    }
}

/// Undoes work that cannot be reported. Returns a failure for everything that is left.
struct Undo(Box<dyn FnOnce() -> Vec<Failure>>);

impl fmt::Debug for Undo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Undo")
    }
}

impl Report {
    pub(crate) fn new(text: impl Into<String>, json: &impl Serialize) -> Self {
        Self { text: Format::chosen().write(text.into(), json), ..Self::verbatim(String::new()) }
    }

    /// As JSON, an object with one member.
    pub(crate) fn of(text: impl Into<String>, name: &str, value: &impl Serialize) -> Self {
        Self::new(text, &Member(name, value))
    }

    /// As JSON, a list of values that NICs have, each with the name of its NIC.
    pub(crate) fn by_device<T: Serialize>(
        text: impl Into<String>,
        name: &str,
        values: &[(DeviceId, T)],
    ) -> Self {
        #[derive(Serialize)]
        struct OnDevice<'a, T> {
            device: DeviceId,
            #[serde(flatten)]
            value: &'a T,
        }
        let values = values.iter().map(|&(device, ref value)| OnDevice { device, value });
        Self::of(text, name, &values.collect::<Vec<_>>())
    }

    /// Text that is the same in every form, such as a generated file.
    pub(crate) fn verbatim(text: impl Into<String>) -> Self {
        Self {
            text: Ok(text.into()),
            failures: Vec::new(),
            warnings: Vec::new(),
            code: None,
            undo: None,
        }
    }

    /// Shell commands that set these variables, and unset the other variables that such an environment
    /// may have.
    pub(crate) fn environment(vars: Vec<(&'static str, String)>, all: &[&'static str]) -> Self {
        #[derive(Serialize)]
        struct Environment {
            environment: BTreeMap<&'static str, String>,
            clear: Vec<&'static str>,
        }
        let is_set = |name: &&str| vars.iter().any(|(set, _)| set == name);
        let clear: Vec<_> = all.iter().copied().filter(|name| !is_set(name)).collect();
        let set = vars.iter().map(|(name, value)| format!("export {name}={}\n", word(value)));
        let unset = clear.iter().map(|name| format!("unset {name}\n"));
        let text: String = set.chain(unset).collect();
        let environment = vars.into_iter().collect();
        Self::new(text, &Environment { environment, clear })
    }

    /// Part of the work failed; the rest is in the report.
    pub(crate) fn with_failures(mut self, failures: Vec<Failure>) -> Self {
        self.failures.extend(failures);
        self
    }

    /// Applies a change to each failure.
    pub(crate) fn explain_failures(mut self, explain: impl Fn(Failure) -> Failure) -> Self {
        self.failures = self.failures.into_iter().map(explain).collect();
        self
    }

    /// Adds warnings: the command succeeded, but the caller should know this.
    pub(crate) fn with_warnings(mut self, warnings: impl IntoIterator<Item = String>) -> Self {
        self.warnings.extend(warnings);
        self
    }

    /// Uses the exit code for "nothing to do" if this is true.
    pub(crate) fn nothing_to_do_if(mut self, nothing: bool) -> Self {
        self.code = nothing.then_some(Exit::NothingToDo as u8);
        self
    }

    /// Uses this exit code or, if it is 0, that of the first failure.
    pub(crate) fn ending_with(mut self, code: u8) -> Self {
        self.code = Some(code);
        self
    }

    /// Undoes the work if the report cannot be printed, because the caller would then not know what to
    /// clean up.
    pub(crate) fn or_undo(mut self, undo: impl FnOnce() -> Vec<Failure> + 'static) -> Self {
        self.undo = Some(Undo(Box::new(undo)));
        self
    }

    /// Puts this in front of the text for people.
    pub(crate) fn before(mut self, text: &str) -> Self {
        if let (true, Ok(after)) = (Format::chosen().is_text(), &mut self.text) {
            after.insert_str(0, text);
        }
        self
    }

    /// The failures.
    pub(crate) fn failures(&self) -> &[Failure] {
        &self.failures
    }

    /// Prints all of it; returns the exit code.
    pub(crate) fn print(self, as_json: bool) -> Result<u8, Failure> {
        self.put(as_json).map(|(code, _)| code)
    }

    /// Also returns whether standard output still has a reader.
    fn put(self, as_json: bool) -> Result<(u8, bool), Failure> {
        let is_read = match self.text.and_then(|text| write_out(&text)) {
            Ok(is_read) => is_read,
            Err(failure) => {
                let Some(Undo(undo)) = self.undo else { return Err(failure) };
                let left = undo();
                print_failures(&left, as_json);
                return Err(if left.is_empty() {
                    failure.hint("What the command had created was destroyed again.")
                } else {
                    failure
                });
            }
        };
        print_warnings(&self.warnings, as_json);
        print_failures(&self.failures, as_json);
        let failed = self.failures.first().map(|failure| failure.kind() as u8);
        let code = self.code.filter(|code| *code != 0);
        Ok((code.or(failed).unwrap_or(0), is_read))
    }
}

/// Writes to standard output. Returns whether it still has a reader: a reader that has ended, such as
/// `head`, is not a failure.
fn write_out(text: &str) -> Result<bool, Failure> {
    let mut out = io::stdout().lock();
    match write_at_once(&mut out, text).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::failed(format!("cannot write to standard output: {error}"))),
    }
}

/// Writes text in one piece, because others may write to the same file. Where colors are not wanted, it
/// is without them.
fn write_at_once(mut out: impl RawStream, text: &str) -> io::Result<()> {
    let is_styled = !matches!(AutoStream::choice(&out), ColorChoice::Never);
    out.write_all(style::shown(text, is_styled).as_bytes())
}

/// Repeats a report until a signal arrives or standard output has no reader. On a terminal, each report
/// replaces the previous one.
pub(crate) fn repeat(
    every: Duration,
    as_json: bool,
    show: impl Fn() -> Result<Report, Failure>,
) -> Result<u8, Failure> {
    // Do not repeat a command that has not succeeded once.
    let mut shown = Ok(show()?);
    loop {
        if io::stdout().is_terminal() {
            let clear = execute!(io::stdout(), Clear(ClearType::All), MoveTo(0, 0));
            clear.map_err(|error| Failure::failed(format!("cannot use the terminal: {error}")))?;
        }
        match shown.map(|report| report.put(as_json)) {
            Ok(put) => {
                let (code, is_read) = put?;
                if !is_read {
                    return Ok(code);
                }
            }
            Err(failure) => print_failures(&[failure], as_json),
        }
        thread::sleep(every);
        shown = show();
    }
}

/// A value as a word of a shell command, quoted if necessary.
fn word(value: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, ',' | '.' | '_');
    if !value.is_empty() && value.chars().all(plain) {
        return value.to_owned();
    }
    format!("'{}'", value.replace('\'', r"'\''"))
}
