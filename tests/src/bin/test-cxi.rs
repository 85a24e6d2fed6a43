//! The command `cxi` for the tests of this package, which cargo builds with them.

use std::process::ExitCode;

fn main() -> ExitCode {
    cxi_cli::run()
}
