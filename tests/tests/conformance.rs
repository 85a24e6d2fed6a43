//! Replays recorded scenarios on the mock.
//!
//! Takes the project's own copy, or the directory that `CXI_CONFORMANCE_DIR` names. A name given as
//! an argument picks the scenarios whose path contains it.
#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test prints its result"
)]

use std::env;
use std::path::Path;
use std::process::ExitCode;

use cxi_tests::mock::InProcess;
use cxi_tests::{archive, suite};

/// Names the directory of scenarios to run in place of the project's copy.
const FOLDER: &str = "CXI_CONFORMANCE_DIR";

/// Differing steps that are shown of a scenario: one wrong answer makes many others wrong.
const STEPS_SHOWN: usize = 8;

/// Options of the test harness that take a value.
const WITH_VALUE: [&str; 6] = [
    "--test-threads",
    "--skip",
    "--format",
    "--color",
    "--logfile",
    "-Z",
];

#[derive(Default)]
struct Arguments {
    list: bool,
    exact: bool,
    ignored_only: bool,
    names: Vec<String>,
    skip: Vec<String>,
}

impl Arguments {
    fn parse(mut given: impl Iterator<Item = String>) -> Self {
        let mut arguments = Self::default();
        while let Some(argument) = given.next() {
            match argument.as_str() {
                "--list" => arguments.list = true,
                "--exact" => arguments.exact = true,
                "--ignored" => arguments.ignored_only = true,
                "--skip" => arguments.skip.extend(given.next()),
                option if WITH_VALUE.contains(&option) => {
                    given.next();
                }
                option if option.starts_with('-') => {}
                name => arguments.names.push(name.to_owned()),
            }
        }
        arguments
    }

    fn wants(&self, path: &str) -> bool {
        let name = path.strip_suffix(".json").unwrap_or(path);
        let matches = |wanted: &String| {
            if self.exact {
                name == wanted
            } else {
                path.contains(wanted.as_str())
            }
        };
        (self.names.is_empty() || self.names.iter().any(matches)) && !self.skip.iter().any(matches)
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse(env::args().skip(1));
    let files = match env::var_os(FOLDER) {
        Some(directory) => {
            archive::directory(Path::new(&directory)).map_err(|why| format!("{FOLDER}: {why}"))
        }
        None => archive::packed(),
    };
    let mut files = match files {
        Ok(files) => files,
        Err(reason) => {
            eprintln!("{reason}");
            println!("conformance: 0 passed, 1 failed");
            return ExitCode::FAILURE;
        }
    };
    files.retain(|file| arguments.wants(&file.path) && !arguments.ignored_only);
    if arguments.list {
        for file in &files {
            println!(
                "{}: test",
                file.path.strip_suffix(".json").unwrap_or(&file.path)
            );
        }
        return ExitCode::SUCCESS;
    }
    let summary = suite::run_all::<InProcess>(&files);
    for (path, failures) in &summary.failed {
        println!("{path}");
        for failure in failures.iter().take(STEPS_SHOWN) {
            println!("{failure}");
        }
        if let Some(more) = failures
            .len()
            .checked_sub(STEPS_SHOWN)
            .filter(|more| *more > 0)
        {
            println!("  and {more} more steps, which may follow from these");
        }
    }
    println!("{}", summary.line());
    if summary.failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
