//! The structs that cross the kernel boundary, one module for each family of commands.
//!
//! Every field has the offset that the driver gives it, asserted at compile time. Enumerations and
//! booleans are plain integers here, because a kernel may answer with values that this crate has
//! never seen. Padding is a field too, so that it is always zero in requests.

#![allow(missing_debug_implementations, reason = "the derives of zerocopy define helper types")]

pub mod counter;
pub mod device;
pub mod domain;
pub mod link;
pub mod lni;
pub mod memory;
pub mod portal;
pub mod profile;
pub mod queue;
pub mod service;
pub mod wait;

use crate::layout::{CommandLayout, CommandVisitor, Constant, StructLayout};
use crate::{DriverRelease, Opcode, Pointers};

macro_rules! families {
    ($($family:ident)*) => {
        /// The layout of every struct of this module, as this crate defines it.
        ///
        /// For comparison with recorded layouts of driver releases.
        pub fn layouts() -> impl Iterator<Item = &'static StructLayout> {
            [$($family::LAYOUTS),*].into_iter().flatten()
        }

        /// Every constant of this module except the flag types; see [`layouts`].
        pub fn constants() -> impl Iterator<Item = &'static Constant> {
            [$($family::CONSTANTS),*].into_iter().flatten()
        }

        /// Every typed command of this module; see [`layouts`].
        pub fn commands() -> impl Iterator<Item = &'static CommandLayout> {
            [$($family::COMMANDS),*].into_iter().flatten()
        }

        /// Visits every typed command of this module; see [`commands`].
        pub fn visit_commands(visitor: &mut impl CommandVisitor) {
            $( $family::visit(visitor); )*
        }
    };
}

families! { counter device domain link lni memory portal profile queue service wait }

/// Positions at which a release looks for the addresses of a command's buffers; `None` for a
/// command that has no struct here.
#[must_use]
pub fn pointers(opcode: Opcode, release: DriverRelease) -> Option<Pointers> {
    let applies = |command: &&CommandLayout| {
        let mut layouts = layouts().filter(|layout| layout.name == command.request);
        layouts.any(|layout| layout.applies_to(release))
    };
    let mut forms = commands().filter(|command| command.opcode == opcode);
    Some(forms.find(applies)?.pointers)
}
