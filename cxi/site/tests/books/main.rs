//! The books of a site, which no device sees: IDs, the VNI pool, variables of collectives.

use std::fmt::{Debug, Display};

mod collectives;
mod idset;
mod pool;
mod requests;

/// Expects this refusal.
#[track_caller]
fn says<T: Debug>(refusal: Result<T, impl Display>, why: &str) {
    assert_eq!(refusal.map_err(|error| error.to_string()).unwrap_err(), why);
}
