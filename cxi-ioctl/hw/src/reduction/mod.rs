//! Hardware reductions: what participants of a multicast tree send, as software and switches read it.
//!
//! Each is a restricted put with the reduction flag ([`DmaFlags::REDUCTION`](crate::DmaFlags)) to a
//! [multicast address](crate::FabricAddress::multicast). What the root sends goes to all others; what
//! others send goes to the root, and switches may merge it on the way.

mod op;
mod packet;

pub use op::ReduceOp;
pub use packet::{ReductionPacket, ResultCode, Sequence};

/// Reductions of a tree that can be under way at a time: reduction ids are 0 to 7.
pub const REDUCTIONS: usize = 8;
