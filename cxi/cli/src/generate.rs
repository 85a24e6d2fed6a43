//! Completion scripts and manual pages, generated from the definition of the command line.

use std::fs;
use std::path::Path;

use clap::builder::Resettable;
use clap_complete::Shell;
use clap_mangen::Man;
use roff::{Roff, bold, roman};
use serde_json::json;

use crate::cli::Cli;
use crate::exit::{EXIT_CODES, Failure};
use crate::output::Report;
use crate::{deferred, examples};

pub(crate) fn completions(shell: Shell) -> Report {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut deferred::whole::<Cli>(), "cxi", &mut script);
    let script = String::from_utf8_lossy(&script);
    let json = json!({"shell": shell.to_string(), "script": script});
    Report::new(&*script, &json)
}

pub(crate) fn man(directory: &Path) -> Result<Report, Failure> {
    if !directory.is_dir() {
        return Err(Failure::bad_input(format!(
            "{}: not a directory: expected one for the manual pages",
            directory.display()
        )));
    }
    // Manual pages have the exit codes in a separate section.
    let whole = deferred::whole::<Cli>().disable_help_subcommand(true);
    let mut command = whole.after_help(Resettable::Reset);
    command.build();
    let mut written = Vec::new();
    write_pages(&command, directory, &mut written)?;
    let text: String = written.iter().map(|page| format!("{page}\n")).collect();
    Ok(Report::of(text, "written", &written))
}

/// The sections that clap does not generate: exit codes and examples.
fn sections(command: &str) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["EXIT STATUS"]);
    for line in EXIT_CODES.lines().skip(1) {
        match line.trim_start().split_once("  ") {
            Some((code, meaning)) => {
                roff.control("TP", []).text([bold(code)]).text([roman(meaning)]);
            }
            None => {
                roff.control("PP", []).text([roman(line)]);
            }
        }
    }
    let examples = examples::of(command.trim_start_matches("cxi").trim_start());
    if !examples.is_empty() {
        roff.control("SH", ["EXAMPLES"]);
    }
    for (purpose, line) in examples {
        roff.control("TP", []).text([roman(purpose)]).text([bold(line)]);
    }
    roff
}

/// One page for the command and one for each subcommand, such as `cxi-service-create.1`.
fn write_pages(
    command: &clap::Command,
    directory: &Path,
    written: &mut Vec<String>,
) -> Result<(), Failure> {
    let page = Man::new(command.clone()).source(concat!("cxi ", env!("CARGO_PKG_VERSION")));
    let path = directory.join(page.get_filename());
    let cannot = |error: std::io::Error| Failure::unwritten(&path, &error);
    let mut text = Vec::new();
    page.render(&mut text).map_err(cannot)?;
    let name = command.get_bin_name().unwrap_or_default();
    sections(name).to_writer(&mut text).map_err(cannot)?;
    fs::write(&path, text).map_err(cannot)?;
    written.push(path.display().to_string());
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        write_pages(below, directory, written)?;
    }
    Ok(())
}
