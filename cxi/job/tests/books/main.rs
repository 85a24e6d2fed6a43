//! The books of a scheduler, which no device sees: ids, VNIs, limits, environments, requests.

mod collectives;
mod environment;
mod idset;
mod limits;
mod pool;
mod requests;
#[cfg(feature = "serde")]
mod serde;
