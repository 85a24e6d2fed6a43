//! Messages on standard error: for people, for programs, and for the journal.

use std::fmt::Display;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use clap::ValueEnum;
use cxi_site::{printable, printable_json};
use serde::Serialize;

use super::style::{DEBUG, ERROR, PLAIN, WARNING};
use super::write_at_once;
use crate::exit::Failure;

/// The name of this program for syslog and the journal.
const IDENTIFIER: &str = "cxi";

/// The form of messages, if the user has chosen one.
static CHOSEN: OnceLock<LogFormat> = OnceLock::new();

/// The form of messages on standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    Text,
    /// One JSON object for each message, with time, priority and identifier
    Json,
    /// Lines that begin with the priority, as systemd expects them from services
    Journal,
}

/// Chooses the form of all messages of this process.
pub(crate) fn choose(format: LogFormat) {
    // Chosen once, at the start.
    let _ = CHOSEN.set(format);
}

/// The priority. The numbers are syslog's.
#[derive(Clone, Copy)]
enum Priority {
    Error = 3,
    Warning = 4,
    Info = 6,
    Debug = 7,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Message<'a> {
    Error(&'a Failure),
    Warning { message: &'a str },
    Info { message: &'a str },
    Debug { message: &'a str },
}

#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    stamp: Option<Stamp>,
    #[serde(flatten)]
    message: &'a Message<'a>,
}

/// The fields that a log collector needs in addition to the message.
#[derive(Serialize)]
struct Stamp {
    time: String,
    priority: u8,
    identifier: &'static str,
}

/// Prints failures; with `--json`, one object per line.
pub(crate) fn print_failures(failures: &[Failure], as_json: bool) {
    for failure in failures {
        print(&Message::Error(failure), failure, Priority::Error, as_json);
    }
}

/// Prints what is wrong with a command line, for people.
pub(crate) fn print_usage(error: &clap::Error) {
    let text = error.render().to_string();
    let text = text
        .strip_prefix("error:")
        .map_or(text.clone(), |rest| format!("{ERROR}error:{ERROR:#}{rest}"));
    let _ = write_at_once(io::stderr().lock(), &text);
}

/// Prints warnings in the same form as failures.
pub(crate) fn print_warnings(warnings: &[String], as_json: bool) {
    for message in warnings.iter().filter(|_| !is_quiet()) {
        print(&Message::Warning { message }, &printable(message), Priority::Warning, as_json);
    }
}

/// Prints the progress of a command.
pub(crate) fn print_info(message: &str) {
    print(&Message::Info { message }, &printable(message), Priority::Info, false);
}

/// Prints what was sent to a NIC.
pub(crate) fn print_debug(message: &str) {
    print(&Message::Debug { message }, &message, Priority::Debug, false);
}

/// Returns whether messages have the form for people.
pub(crate) fn is_text() -> bool {
    matches!(CHOSEN.get(), None | Some(LogFormat::Text))
}

/// Setting of `--quiet`: suppresses warnings and progress.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Suppresses warnings and progress from now on.
pub(crate) fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

fn print(message: &Message<'_>, text: &dyn Display, priority: Priority, as_json: bool) {
    let (name, style) = match priority {
        Priority::Error => ("error", ERROR),
        Priority::Warning => ("warning", WARNING),
        Priority::Info => ("info", PLAIN),
        Priority::Debug => ("debug", DEBUG),
    };
    let json = |stamp| {
        let line = serde_json::to_string(&Line { stamp, message });
        line.map_or_else(|_| text.to_string(), printable_json)
    };
    let priority = priority as u8;
    let line = match CHOSEN.get() {
        None if as_json => json(None),
        None | Some(LogFormat::Text) => format!("{style}{name}:{style:#} {text}"),
        Some(LogFormat::Json) => json(Some(Stamp {
            time: humantime::format_rfc3339_millis(SystemTime::now()).to_string(),
            priority,
            identifier: IDENTIFIER,
        })),
        // The journal treats each line as a message.
        Some(LogFormat::Journal) => format!("{name}: {text:#}")
            .lines()
            .map(|line| format!("<{priority}>{IDENTIFIER}: {}", line.trim_start()))
            .collect::<Vec<_>>()
            .join("\n"),
    };
    // If standard error is closed, there is no reader.
    let _ = write_at_once(io::stderr().lock(), &format!("{line}\n"));
}
