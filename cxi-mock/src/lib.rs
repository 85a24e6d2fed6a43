//! A mock of the CXI kernel device.
//!
//! [`Nic`] is a NIC with its driver; [`Client`] is an open file of it; a command is bytes, as the
//! driver takes them, written by a caller with [`Credentials`].
#![forbid(unsafe_code)]

mod client;
mod credentials;

pub use client::{CallerMemory, Client};
pub use credentials::Credentials;
