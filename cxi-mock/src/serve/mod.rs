//! Serves a mock node to any program: `/dev/cxiN` and what sysfs says about the NICs.
//!
//! The command `cxi-mock` is all there is to this module. A FUSE file system answers for the
//! devices and for sysfs; it is mounted in a mount namespace that only the programs run by the
//! command see.

mod addresses;
mod children;
mod cli;
mod credentials;
mod device;
mod error;
mod fuse;
mod launch;
mod memory;
mod module;
mod mount;
mod namespaces;
mod node;
mod place;
mod privileges;
mod server;
mod signals;
mod sysfs;
mod trace;
mod tree;

use std::fmt;
use std::process::ExitCode;

/// The command `cxi-mock`, with the arguments of this process.
#[must_use]
pub fn main() -> ExitCode {
    cli::main()
}

/// Says something to the person in front of the command.
#[allow(clippy::print_stderr, reason = "a command may")]
fn say(message: fmt::Arguments<'_>) {
    eprintln!("cxi-mock: {message}");
}
