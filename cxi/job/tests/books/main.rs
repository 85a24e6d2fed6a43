//! The books of a scheduler, which no device sees: limits, environments, requests.

use std::fmt::{Debug, Display};

mod environment;
mod limits;
mod requests;
mod serde;

/// Expects this refusal.
#[track_caller]
fn says<T: Debug>(refusal: Result<T, impl Display>, why: &str) {
    assert_eq!(refusal.map_err(|error| error.to_string()).unwrap_err(), why);
}
