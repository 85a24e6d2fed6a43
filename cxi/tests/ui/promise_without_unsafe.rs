//! Whoever says of their own command that it cannot harm memory answers for that.

use zerocopy::{Immutable, IntoBytes};
use cxi_ioctl::{Command, Opcode, Pointers, SafeCommand};

#[derive(IntoBytes, Immutable)]
#[repr(C)]
struct Update {
    op: u32,
    ctn: u32,
    wb: u64,
}

impl Command for Update {
    const OPCODE: Opcode = Opcode::CT_WB_UPDATE;
    const POINTERS: Pointers = Pointers::NONE;
    type Response = ();
}

impl SafeCommand for Update {}

fn main() {}
