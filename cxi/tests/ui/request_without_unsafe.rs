//! Safe code cannot send bytes that nobody has looked at, nor commands with addresses.

use cxi_ioctl::abi::counter::CtAllocCmd;
use cxi_ioctl::{CharDev, Opcode, Pointers, Request, Transport, execute_unchecked};

fn raw(device: &CharDev, command: &[u8], response: &mut [u8]) {
    let request = Request::from_raw(Opcode::SVC_GET, command, Pointers::NONE, response, &mut []);
    let _ = device.submit(request);
}

fn typed(device: &CharDev, command: &CtAllocCmd) {
    let _ = execute_unchecked(device, command);
}

fn main() {}
