//! The command `cxi`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    cxi_cli::run()
}
