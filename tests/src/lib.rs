//! Tests that cross crates: replay of recorded driver behavior on a device, and sequences of
//! commands against a reference model.
#![deny(unsafe_code)]
#![allow(
    clippy::must_use_candidate,
    clippy::needless_pass_by_value,
    reason = "an unpublished package"
)]

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

pub mod absent;
pub mod allreduce;
pub mod archive;
pub mod calls;
pub mod client;
pub mod compare;
pub mod counted;
pub mod decode;
pub mod device;
pub mod encode;
pub mod endpoint;
pub mod fuse_file;
pub mod mock;
pub mod node;
pub mod on_node;
pub mod packets;
#[path = "../../cxi/data/examples/common/mod.rs"]
pub mod process;
pub mod report;
pub mod roam;
pub mod run;
pub mod scenario;
pub mod sequence;
pub mod stage;
mod step;
pub mod suite;
pub mod targets;
pub mod traffic;
pub mod uapi;
pub mod wait;
pub mod windows;
