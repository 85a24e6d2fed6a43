//! What the benchmarks share.
#![forbid(unsafe_code)]

pub mod instructions;
pub mod mock;

use std::os::fd::AsFd;

use cxi_ioctl::Command;

/// The least a command can cost: one `write(2)` of its bytes, nothing around it.
///
/// # Errors
///
/// What `write(2)` says.
pub fn raw_write<C: Command>(file: impl AsFd, command: &C) -> nix::Result<usize> {
    nix::unistd::write(file, command.as_bytes())
}
