//! The parsers of the command: files and command lines.
//!
//! For tests that pass arbitrary text. Errors are the messages shown to users.

use std::ffi::OsString;
use std::path::Path;

use cxi::ServiceSpec;

use crate::exit::Failure;
pub use crate::files::{MOCK_NODE, OBSERVATION};
use crate::{app, fabric, spec_file};

/// The name of a file in messages.
const NAME: &str = "FILE";

/// Parses a specification of a service: YAML or JSON.
///
/// # Errors
///
/// Returns the specification, or what is wrong with it, with line and column.
pub fn specification(text: &str) -> Result<ServiceSpec, String> {
    spec_file::parse(NAME, text).map_err(message)
}

/// Writes a text that [`specification`] parses to the same.
///
/// # Errors
///
/// It cannot be written as YAML.
pub fn print_specification(spec: &ServiceSpec) -> Result<String, String> {
    spec_file::write(spec).map_err(message)
}

/// Shows what the nodes of a check of the fabric have written into its directory: text and picture.
///
/// # Errors
///
/// No check has begun there, or its start is none.
pub fn check_of_fabric(directory: &Path) -> Result<String, String> {
    fabric::shown_of(directory).map_err(message)
}

/// Parses a command line, starting with the name of the program. Runs nothing.
///
/// # Errors
///
/// Help, the version, or what is wrong.
pub fn command_line(arguments: impl IntoIterator<Item = OsString>) -> Result<(), String> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    app::parse(&arguments).map(drop).map_err(|error| error.to_string())
}

#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
fn message(failure: Failure) -> String {
    failure.to_string()
}
