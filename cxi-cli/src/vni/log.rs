//! The log of a pool's changes: one JSON object a line.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

use cxi_job::pool::Event;

use crate::exit::{Exit, Failure};
use crate::input;

/// Some millions of changes.
const LONGEST: u64 = 1 << 30;

/// Appends a change, and does not return before it is on the disk.
pub(super) fn append(path: &Path, event: &Event) -> Result<(), Failure> {
    let write = || -> io::Result<()> {
        let mut line = serde_json::to_vec(event)?;
        line.push(b'\n');
        let mut file = OpenOptions::new().append(true).create(true).open(path)?;
        file.write_all(&line)?;
        file.sync_data()
    };
    write().map_err(|error| {
        Failure::new(
            Exit::Failed,
            format!("{}: the log cannot be written: {error}", path.display()),
        )
        .hint("The pool is as it was before.")
    })
}

/// Reads a whole log, or standard input for `-`.
pub(super) fn read(path: &Path) -> Result<Vec<Event>, Failure> {
    let input::Input { name, text } = input::read(path, "a log", LONGEST)?;
    parse(&name, &text)
}

pub(crate) fn parse(name: &str, text: &str) -> Result<Vec<Event>, Failure> {
    let lines = text.lines().enumerate();
    lines
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(index, line)| {
            serde_json::from_str(line).map_err(|error| {
                let number = index + 1;
                Failure::bad_input(format!(
                    "{name}: line {number} is no change of a pool: {error}"
                ))
            })
        })
        .collect()
}
