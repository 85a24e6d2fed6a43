//! The command `cxi-mock` for the benchmarks of this package.

use std::process::ExitCode;

fn main() -> ExitCode {
    cxi_mockd::main()
}
