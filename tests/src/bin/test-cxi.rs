//! The command `cxi` for the tests of this package, which then need no other package's binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    cxi_cli::run()
}
