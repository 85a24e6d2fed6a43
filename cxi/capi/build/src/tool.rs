//! Running programs.

use std::env;
use std::ffi::OsString;
use std::process::Command;

/// Result whose error is a text for the terminal.
pub type Result<T> = std::result::Result<T, String>;

/// The C compiler: `CC`, or `cc`.
#[must_use]
pub fn compiler() -> OsString {
    env::var_os("CC").unwrap_or_else(|| "cc".into())
}

/// Runs a program. Returns its standard output.
///
/// # Errors
///
/// It cannot be run, or it fails; then the error has its output.
pub(crate) fn run(command: &mut Command) -> Result<Vec<u8>> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("cannot run {name}: {error}"))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{name} failed ({}): {said}", output.status))
}
