//! Safe code cannot give the NIC an address of its choice.

#![forbid(unsafe_code)]

use cxi_ioctl::abi::counter::CtAllocCmd;
use cxi_ioctl::{CharDev, execute};

fn aim(device: &CharDev, secret: &u64) {
    let command = CtAllocCmd {
        wb: std::ptr::from_ref(secret).expose_provenance() as u64,
        ..CtAllocCmd::new()
    };
    let _ = execute(device, &command);
}

fn main() {}
