//! Helpers that the tests of several packages share.
#![forbid(unsafe_code)]
#![allow(
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    reason = "tests panic, and this package is not published"
)]

mod directory;
mod fabric_manager;
mod machine;
mod nics;
mod pod;
mod random;

pub use directory::Directory;
pub use fabric_manager::FabricManager;
pub use machine::{full, has, has_recorded_compiler, is_root, root, skip};
pub use nics::{devices, nic, node};
pub use pod::Pod;
pub use random::Random;
