//! A command that no driver has.

#![allow(unsafe_code, reason = "a promise about the interface")]

use zerocopy::{Immutable, IntoBytes};

use crate::{Command, Opcode, Pointers, SafeCommand};

/// A command that no driver has, for learning how a driver refuses one.
///
/// Its number is far above that of any command, and positive even for a driver that treats it as
/// signed.
#[derive(Clone, Copy, Debug, IntoBytes, Immutable)]
#[repr(C)]
pub struct UnknownCmd {
    op: u32,
    zeros: [u32; 3],
}

impl UnknownCmd {
    /// The command: its number, followed by zeros up to the length of a header.
    #[must_use]
    pub const fn new() -> Self {
        Self { op: Self::OPCODE.number(), zeros: [0; 3] }
    }
}

impl Default for UnknownCmd {
    fn default() -> Self {
        Self::new()
    }
}

impl Command for UnknownCmd {
    const OPCODE: Opcode = Opcode::from_number(0x7FFF_FF00);
    const POINTERS: Pointers = Pointers::NONE;
    type Response = ();
}

// SAFETY: it contains nothing but its number.
unsafe impl SafeCommand for UnknownCmd {}
