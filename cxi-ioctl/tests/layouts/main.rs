//! Checks every struct, constant and opcode of this crate against the recorded interfaces of the
//! driver releases, and that nothing recorded there is missing here without a reason.

#![allow(missing_docs, reason = "a test has no users")]

mod constants;
mod opcodes;
mod recorded;
mod structs;

use cxi_ioctl::DriverRelease;
use cxi_ioctl::layout::StructLayout;

/// Whether a release has a struct in this layout.
fn applies(layout: &StructLayout, release: DriverRelease) -> bool {
    layout.since.is_none_or(|since| since <= release)
        && layout.until.is_none_or(|until| release <= until)
}

/// Panics with all problems at once.
fn report(problems: &[String]) {
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}
