//! The structs that cross the kernel boundary, one module for each family of commands.
//!
//! Every field has the offset the driver gives it, asserted at compile time. Enumerations and
//! booleans are plain integers here: a kernel may answer with values this crate has never seen.
//! The padding is spelt out, so that it is always zero on the way in.

#![allow(
    missing_debug_implementations,
    reason = "the derives of zerocopy define helper types"
)]

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

use crate::layout::StructLayout;

/// The layout of every struct of this module, as this crate defines it.
///
/// For checking against recorded layouts of driver releases.
pub fn layouts() -> impl Iterator<Item = &'static StructLayout> {
    [
        counter::LAYOUTS,
        device::LAYOUTS,
        domain::LAYOUTS,
        link::LAYOUTS,
        lni::LAYOUTS,
        memory::LAYOUTS,
        portal::LAYOUTS,
        profile::LAYOUTS,
        queue::LAYOUTS,
        service::LAYOUTS,
        wait::LAYOUTS,
    ]
    .into_iter()
    .flatten()
}
