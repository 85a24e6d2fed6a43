//! Programs that must not compile: handles, windows and options that outlive what they depend on,
//! and safe code that could make the driver or the NIC write anywhere.
//!
//! The compiler's messages are part of the test, so it runs with the release they were recorded
//! with. `TRYBUILD=overwrite cargo test -p cxi --test lni lifetimes -- --ignored` records them anew.

use std::io::Write;
use std::process::Command;

/// The compiler whose messages are recorded in `ui/`.
const RECORDED: &str = "rustc 1.95.";

/// Module that is skipped.
const MODULE: &str = module_path!();

#[test]
#[ignore = "builds all dependencies once more, for a minute; .ci/run has it beside others"]
fn what_outlives_its_parent_does_not_compile() {
    let output = Command::new("rustc").arg("--version").output().expect("a compiler");
    let version = String::from_utf8_lossy(&output.stdout);
    if !version.starts_with(RECORDED) && std::env::var_os("TRYBUILD").is_none() {
        let why = format!("the messages were recorded with {RECORDED}x, this is {version}");
        // Past the test harness, which shows nothing of a test that passes.
        let _ = writeln!(std::io::stderr(), "SKIPPED {MODULE}: {why}");
        return;
    }
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
