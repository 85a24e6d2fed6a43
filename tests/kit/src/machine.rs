//! Abilities of the machine and of its user, and the length of a run of the tests.

use std::fmt::Display;
use std::fs;
use std::io::{Write as _, stderr};
use std::os::unix::fs::MetadataExt as _;
use std::process::Command;

/// Reports to `.ci/run`, past the test harness, that a test cannot run here.
pub fn skip(why: impl Display) {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("a test");
    let why = why.to_string();
    let words: Vec<_> = why.split_whitespace().collect();
    // In one piece: other tests write, too.
    let line = format!("SKIPPED {name}: {}\n", words.join(" "));
    let _ = stderr().write_all(line.as_bytes());
}

/// Returns whether a program is installed; reports it if not.
pub fn has(program: &str) -> bool {
    let is_here = Command::new(program).arg("--version").output().is_ok();
    if !is_here {
        skip(format_args!("there is no {program}"));
    }
    is_here
}

/// The compiler whose messages about programs that must not compile are recorded.
const RECORDED: &str = "rustc 1.95.";

/// Returns whether the compiler's messages can be compared with the recorded ones, or are recorded anew;
/// reports it if not.
pub fn has_recorded_compiler() -> bool {
    let output = Command::new("rustc").arg("--version").output().expect("a compiler");
    let version = String::from_utf8_lossy(&output.stdout);
    let fits = version.starts_with(RECORDED) || std::env::var_os("TRYBUILD").is_some();
    if !fits {
        skip(format_args!("the messages were recorded with {RECORDED}x, this is {version}"));
    }
    fits
}

/// Returns whether this process is root.
pub fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// Returns whether this process is root; if not, reports what only root can do.
pub fn root(only: &str) -> bool {
    if !is_root() {
        skip(format_args!("only root can {only}"));
    }
    is_root()
}

/// Returns whether the tests are to run at full length, which `CXI_TEST_FULL=1` says.
pub fn full() -> bool {
    std::env::var_os("CXI_TEST_FULL").is_some_and(|value| !value.is_empty())
}
