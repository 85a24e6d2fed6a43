//! The client of the fabric manager, on the mock of one.
#![cfg(feature = "fabric-manager")]

mod life;
mod recovery;
mod seen;
mod support;
mod traps;
