//! `libcxi.so.1` in Rust: programs that are linked with HPE's library run on this one.
//!
//! The package `cxi-capi-build` builds and installs the shared library; `docs/C-ABI.md` describes how
//! it differs from HPE's. Rust programs use the crate `cxi` instead.

#![deny(unsafe_code)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "fields of the C API are narrower than their values, and truncate them"
)]

mod api;
mod child;
mod counters;
mod device;
mod explain;
mod failure;
mod ffi;
mod fork;
mod handle;
mod info;
mod netlink;
mod public;
mod ranges;
mod scan;
mod send;
mod smaps;
mod sysfs;
mod window;
