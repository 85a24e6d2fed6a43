//! Observation of a NIC: operations as they end, and events as they are written.

use std::fmt;
use std::time::Instant;

use cxi_hw::{DmaOp, List, ReturnCode};

use crate::packet::{Reply, Request};

/// Watches an engine.
///
/// It is called while the engine works: it must return soon, and must not call the engine.
pub trait Observer: Send + fmt::Debug {
    /// The time, for [`ObservedOperation::started`]: an engine has no clock.
    fn now(&mut self) -> Option<Instant> {
        None
    }

    /// An operation has ended at its target, or at its initiator if it reached no target.
    fn operation(&mut self, operation: &ObservedOperation);

    /// An event of 16, 32 or 64 bytes for an event queue; it is lost if the queue is full.
    fn event(&mut self, eq: u16, event: &[u8], lost: bool);
}

/// An operation, and how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObservedOperation {
    /// When its initiator executed the command, if an observer there tells the time.
    pub started: Option<Instant>,
    /// Operation.
    pub op: DmaOp,
    /// NIC address and PID of the initiator, the PID as the command has it.
    pub from: (u32, u16),
    /// NIC address, PID and portal index of the target.
    pub to: (u32, u16, u16),
    /// The VNI.
    pub vni: u16,
    /// Match bits; 0 for operations without.
    pub match_bits: u64,
    /// Number of bytes that were requested.
    pub length: u32,
    /// Bytes that were moved.
    pub moved: u32,
    /// The list that it matched.
    pub list: List,
    /// Result of the operation.
    pub code: ReturnCode,
}

impl ObservedOperation {
    pub(crate) fn new(
        (from, to): (u32, u32),
        request: &Request,
        reply: &Reply,
        pid_bits: u32,
    ) -> Self {
        let pid = request.initiator.pid(pid_bits);
        Self {
            started: request.started,
            op: request.op,
            // A PID has fewer than 16 bits.
            from: (from, u16::try_from(pid).unwrap_or(u16::MAX)),
            to: (to, request.pid, request.index),
            vni: request.vni,
            match_bits: request.match_bits,
            length: request.length,
            moved: reply.mlength,
            list: reply.list,
            code: reply.code,
        }
    }
}
