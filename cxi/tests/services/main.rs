//! Services: their life, what a driver answers, what is refused and why, on every driver release.

#[path = "../common/mod.rs"]
mod common;

mod answers;
mod errors;
mod exclusive;
#[cfg(feature = "serde")]
mod json;
mod life;
mod quirks;
mod refusals;
mod releases;
mod scoped;
mod shortages;
mod waiting;
