//! What the benchmarks share.
//!
//! Every benchmark runs on a mock. Those that make sense on a NIC run on the one that
//! `CXI_BENCH_DEVICE` names (`CXI_BENCH_DEVICE=cxi0`): see [`nic`].
#![deny(unsafe_code)]

pub mod bare;
pub mod engine;
pub mod mock;
pub mod nic;
pub mod run;
