//! The scheduler layer: what a job needs on every NIC of a node, and the books behind it.

pub mod idset;

#[doc(inline)]
pub use idset::{IdSet, ParseIdSetError, ParseIdSetErrorKind};
