//! The plugin `cxi-cni`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    cxi_cni::run()
}
