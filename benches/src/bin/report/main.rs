//! Runs every series and writes what came of it to `docs/PERFORMANCE.md` and
//! `docs/performance.svg`.
//!
//! ```text
//! cargo run -p cxi-benches --bin report
//! cargo run -p cxi-benches --bin report -- --keep     # with the figures of the last run
//! ```
//!
//! Benchmarks are optimised whether this program is or not.

mod document;
mod format;
mod machine;
mod measure;
mod plot;
mod results;
mod tables;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cxi_tests::counted;

use results::Results;

/// The argument that makes this program the one whose system calls are counted.
const ACT: &str = "act";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        [] => report(false),
        ["--keep"] => report(true),
        [ACT, ..] => counted::act(&arguments[1..]),
        _ => Err("usage: report [--keep]".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            let _ = writeln!(std::io::stderr(), "report: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn report(keep: bool) -> Result<(), String> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let docs = workspace.join("docs");
    let home = target(&workspace).join("performance");
    // First, as building the benchmarks may replace this program's file.
    let counts = measure::system_calls()?;
    if !keep {
        measure::all(&home)?;
    }
    let results = Results::read(&home)?;
    let text = tables::renew(&read(&docs.join("PERFORMANCE.md"))?, &results, &counts)?;
    let picture = plot::draw(&results).map_err(|error| format!("the picture: {error}"))?;
    for (name, content) in [("PERFORMANCE.md", text), ("performance.svg", picture)] {
        let path = docs.join(name);
        fs::write(&path, content).map_err(|error| format!("{}: {error}", path.display()))?;
        let _ = writeln!(std::io::stderr(), "wrote docs/{name}");
    }
    Ok(())
}

fn target(workspace: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace.join("target"), PathBuf::from)
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}
