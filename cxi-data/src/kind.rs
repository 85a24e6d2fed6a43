//! Kinds of command queues, which take different commands.

use cxi::lni::{Tgq, Txq};
use cxi_hw::{CState, MatchId};

use crate::queue::Windows;

/// What a [`TransmitQueue`](crate::TransmitQueue) is.
#[derive(Debug)]
pub struct Transmit {
    pub(crate) initiator: MatchId,
    /// What the NIC keeps for immediate commands: nothing at first.
    pub(crate) state: CState,
}

/// What a [`TriggeredQueue`](crate::TriggeredQueue) is.
#[derive(Debug)]
pub struct Triggered {
    pub(crate) initiator: MatchId,
}

/// What a [`TargetQueue`](crate::TargetQueue) is.
#[derive(Debug)]
pub struct Target(pub(crate) ());

/// A kind of queue.
pub trait Kind: Sized + sealed::Sealed {
    #[doc(hidden)]
    type Handle: Windows;
}

impl Kind for Transmit {
    type Handle = Txq;
}

impl Kind for Triggered {
    type Handle = Txq;
}

impl Kind for Target {
    type Handle = Tgq;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Transmit {}
    impl Sealed for super::Triggered {}
    impl Sealed for super::Target {}
}
