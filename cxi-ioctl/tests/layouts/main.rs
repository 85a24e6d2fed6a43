//! Checks every struct, constant and opcode of this crate against the recorded interfaces of the
//! driver releases, and that nothing recorded there is missing here without a reason.

#![allow(missing_docs, reason = "a test has no users")]

mod constants;
mod opcodes;
mod recorded;
mod structs;

/// Panics with all problems at once.
fn report(problems: &[String]) {
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}
