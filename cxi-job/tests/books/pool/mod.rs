//! The VNI pool.

mod actions;
mod life;
mod properties;
mod recovery;
mod requests;
mod support;
