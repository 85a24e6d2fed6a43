//! Kinds of command queues, which take different commands.

use cxi_hw::{CState, MatchId};

/// The kind of a [`TransmitQueue`](crate::TransmitQueue).
#[derive(Debug)]
pub struct Transmit {
    pub(crate) initiator: MatchId,
    /// The state that the NIC keeps for immediate commands; empty at first.
    pub(crate) state: CState,
}

/// The kind of a [`TriggeredQueue`](crate::TriggeredQueue).
#[derive(Debug)]
pub struct Triggered {
    pub(crate) initiator: MatchId,
}

/// The kind of a [`TargetQueue`](crate::TargetQueue).
#[derive(Debug)]
pub struct Target(pub(crate) ());
