//! The VNI pool.

mod actions;
mod life;
mod logs;
mod properties;
mod recovery;
mod requests;
mod support;
