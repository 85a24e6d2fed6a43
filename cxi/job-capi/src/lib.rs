//! `libcxi_job.so.0`: the scheduler layer of `cxi-job` for C programs.
//!
//! `include/cxi_job.h` describes it, `cxi-capi-build` makes and installs it. There is nothing here
//! for Rust programs: they have the crate `cxi-job`.

#![deny(unsafe_code)]

mod api;
mod controller;
mod failure;
mod ffi;
mod json;
mod nodes;
