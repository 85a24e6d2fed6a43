//! Code that the benchmarks share.
//!
//! Every benchmark runs on a mock. Those that make sense on a NIC run on the one that
//! `CXI_BENCH_DEVICE` names (`CXI_BENCH_DEVICE=cxi0`): see [`nic`].
#![deny(unsafe_code)]
#![allow(missing_debug_implementations, reason = "an unpublished package")]

pub mod bare;
pub mod engine;
pub mod nic;
pub mod run;
