//! A command that no driver has.

#![allow(unsafe_code, reason = "a promise about the interface")]

use zerocopy::{Immutable, IntoBytes};

use crate::{Command, Opcode, Pointers, SafeCommand};

/// A command that no driver has, to learn how one refuses it.
///
/// Its number is far above that of any command, and positive for a driver that takes it as signed.
#[derive(Clone, Copy, Debug, IntoBytes, Immutable)]
#[repr(C)]
pub struct UnknownCmd {
    op: u32,
    zeros: [u32; 3],
}

impl UnknownCmd {
    /// The command: its number, and zeros up to the length of a header.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            op: Self::OPCODE.number(),
            zeros: [0; 3],
        }
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

// SAFETY: there is nothing in it but its number.
unsafe impl SafeCommand for UnknownCmd {}
