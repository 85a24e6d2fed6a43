//! Replays recorded scenarios on the mock.
//!
//! Takes the project's own copy, or the directory that `CXI_CONFORMANCE_DIR` names. A name given as
//! an argument picks the scenarios whose path contains it.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a test prints its result")]

use std::env;
use std::path::Path;
use std::process::ExitCode;

use cxi_tests::archive::{self, File};
use cxi_tests::mock::InProcess;
use cxi_tests::suite;

/// Names the directory of scenarios to run in place of the project's copy.
const DIRECTORY: &str = "CXI_CONFORMANCE_DIR";

/// Differing steps that are shown of a scenario: one wrong answer makes many others wrong.
const STEPS_SHOWN: usize = 8;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--list") {
        println!("conformance: test");
        return ExitCode::SUCCESS;
    }
    // Options are for the harness that the other tests have.
    let options = arguments.iter().any(|argument| argument.starts_with('-'));
    let files = match env::var_os(DIRECTORY) {
        Some(directory) => {
            archive::directory(Path::new(&directory)).map_err(|why| format!("{DIRECTORY}: {why}"))
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
    if !options && !arguments.is_empty() {
        let wanted = |file: &File| arguments.iter().any(|name| file.path.contains(name.as_str()));
        files.retain(wanted);
    }
    let summary = suite::run_all::<InProcess>(&files);
    for (path, failures) in &summary.failed {
        println!("{path}");
        for failure in failures.iter().take(STEPS_SHOWN) {
            println!("{failure}");
        }
        let more = failures.len().saturating_sub(STEPS_SHOWN);
        if more > 0 {
            println!("  and {more} more steps, which may follow from these");
        }
    }
    println!("{}", summary.line());
    if summary.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
