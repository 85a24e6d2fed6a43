//! Serves a mock node to any program: `/dev/cxiN` and the NICs' entries in sysfs.
//!
//! This crate consists of the command `cxi-mock`. A FUSE file system provides the devices and
//! sysfs; it is mounted in a mount namespace that only the programs run by the command see.

#![cfg_attr(
    not(target_arch = "x86_64"),
    allow(dead_code, reason = "doorbells are trapped on x86-64 only")
)]

mod addresses;
mod agent;
mod bells;
mod budget;
mod capture;
mod children;
mod cli;
mod cluster;
mod control;
mod copies;
mod credentials;
mod data_path;
mod device;
mod door;
mod endpoints;
mod error;
mod fabric_manager;
mod files;
mod fuse;
mod generate;
mod input;
mod interrupts;
mod launch;
mod memory;
mod messages;
mod mount;
mod namespaces;
mod network;
mod node;
mod order;
mod orders;
mod pace;
mod packet;
mod packets;
mod paths;
mod pcapng;
mod place;
mod privileges;
mod procfs;
mod releases;
mod running;
mod server;
mod setup;
mod state;
mod state_file;
mod sweep;
mod sysfs;
mod system;
mod timeline;
mod topology;
mod trace;
mod traffic;
mod trap;
mod tree;
mod userfault;
mod view;
mod watch;
mod windows;
mod workers;

use std::process::ExitCode;

/// Runs the command `cxi-mock` with the arguments of this process.
#[must_use]
pub fn main() -> ExitCode {
    cli::main()
}
