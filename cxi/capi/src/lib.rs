//! `libcxi.so.1` in Rust: programs that are linked with HPE's library run on this one.
//!
//! The package `cxi-capi-build` makes and installs the shared library; `docs/C-ABI.md` says what
//! it does differently. Rust programs use the crate `cxi` instead.

#![deny(unsafe_code)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "fields of the C API are narrower than what they hold, and cut it"
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
