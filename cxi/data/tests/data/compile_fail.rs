//! Programs that must not compile: commands that outlive their memory, references into it, commands
//! in a queue of another kind, two writers.
//!
//! The compiler's messages are part of the test, so it runs with the release they were recorded
//! with. `TRYBUILD=overwrite cargo test -p cxi-data --test data compile_fail -- --ignored` records them anew.

use std::io::Write;
use std::process::Command;

/// The compiler whose messages are recorded in `ui/`.
const RECORDED: &str = "rustc 1.95.";

#[test]
#[ignore = "builds all dependencies once more, for a minute; .ci/run has it beside others"]
fn what_must_not_compile_does_not() {
    let output = Command::new("rustc").arg("--version").output().unwrap();
    let version = String::from_utf8_lossy(&output.stdout);
    if !version.starts_with(RECORDED) && std::env::var_os("TRYBUILD").is_none() {
        let why = format!("the messages were recorded with {RECORDED}x, this is {version}");
        // Past the test harness, which shows nothing of a test that passes.
        let _ = writeln!(std::io::stderr(), "SKIPPED {}: {why}", module_path!());
        return;
    }
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
