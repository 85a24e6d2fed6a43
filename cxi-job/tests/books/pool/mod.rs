//! The VNI pool.

mod life;
mod properties;
mod recovery;
mod requests;
mod support;
