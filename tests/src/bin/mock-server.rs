//! The command `cxi-mock` for the tests of this package, which cargo builds with them.

use std::process::ExitCode;

fn main() -> ExitCode {
    cxi_mockd::main()
}
