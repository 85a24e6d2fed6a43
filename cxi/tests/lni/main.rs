//! LNIs and everything below: their life, options, limits, and what is refused.

#[path = "../common/mod.rs"]
mod common;

mod life;
mod lifetimes;
mod limits;
mod options;
mod refusals;
mod reuse;
