//! Serves a mock node with CXI NICs to any program.

use std::process::ExitCode;

fn main() -> ExitCode {
    cxi_mockd::main()
}
