//! The safe API of the Cassini NIC.
#![forbid(unsafe_code)]

pub mod job;
