//! Reductions of NICs over a tree of switches: never a wrong result, always an end, one completion for
//! each participant and operation, in order; whatever the fabric loses, delays and repeats.
//!
//! The participants here are software of these tests: a root that finishes each reduction and asks
//! again for what is missing, and leaves that fetch a result which they missed. What NICs, switches
//! and fabric do is the engine's.

#![allow(clippy::cast_possible_truncation, reason = "trees and reduction ids of tests are small")]

mod engines;
mod members;
mod network;
mod participant;
mod properties;
#[path = "../rig/mod.rs"]
mod rig;
mod software;

use cxi_hw::reduction::{ReduceOp, ReductionPacket, Sequence};

/// The root's order to take part in a reduction.
fn order(sequence: Sequence) -> ReductionPacket {
    ReductionPacket { sequence, arm: true, ..ReductionPacket::default() }
}

/// Returns the number that a participant adds to a sum.
fn contribution(sender: u32, sequence: u16, value: u64) -> ReductionPacket {
    let sequence = Sequence::new(sequence);
    ReductionPacket {
        sender,
        sequence,
        answered: sequence,
        op: ReduceOp::Sum.number(),
        count: 1,
        payload: [value, 0, 0, 0],
        ..ReductionPacket::default()
    }
}
