//! `libcxi_job.so.0`: the scheduler layer of `cxi-job` for C programs.
//!
//! `include/cxi_job.h` describes it; `cxi-capi-build` builds and installs it. Rust programs use the
//! crate `cxi-job` instead.

#![deny(unsafe_code)]

mod api;
mod controller;
mod failure;
mod ffi;
mod json;
mod nodes;
