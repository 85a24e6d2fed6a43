//! Ends of an operation without a result.

use crate::Address;

/// Cause of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// Nothing was heard of the member, although it was asked repeatedly.
    #[error("does not answer")]
    Silent,
    /// The member is there, but has not entered the operation in time.
    #[error("has not entered the operation in time")]
    Late,
    /// The member has entered another operation.
    #[error("has entered another operation")]
    OtherOperation,
    /// The member is at an operation that it cannot be at: it has joined late, or again.
    #[error("is out of step, as a process that has joined late")]
    OutOfStep,
}

/// Failure of a group: the member because of which an operation cannot end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("member {rank} {cause}")]
pub struct Failure {
    /// Rank of the member that is to blame.
    pub rank: u32,
    /// The reason.
    pub cause: Cause,
}

/// Refusal to enter an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The last operation of this member has not ended, or its outcome was not taken.
    #[error(
        "the last operation has not ended: take its outcome, and poll until the member is idle"
    )]
    Busy,
    /// The group has failed, and must be made anew.
    #[error("the group has failed and must be made anew: {0}")]
    Failed(#[from] Failure),
}

/// Reason for which a [`Group`](super::Group) has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A member is to blame.
    #[error("{failure}{}", undelivered.map(|why| format!(": {why}")).unwrap_or_default())]
    Failed {
        /// The member, and the reason as far as the group can tell.
        failure: Failure,
        /// The reason that the NIC has given for the last message from here to it, if it gave one.
        undelivered: Option<crate::Failure>,
    },
    /// The process is not in the list of members.
    #[error("NIC {:#x}, PID {} is not in the list of members", .0.nid, .0.pid)]
    NoMember(Address),
    /// An address is in the list of members more than once.
    #[error("NIC {:#x}, PID {} is in the list of members twice: expected each once", .0.nid, .0.pid)]
    Twice(Address),
    /// The times do not fit together.
    #[error(transparent)]
    Timing(#[from] super::InvalidTiming),
    /// An error of the NIC has interrupted the last operation.
    #[error("an error of the NIC has interrupted the last operation: make the group anew")]
    Interrupted,
    /// The NIC of this process, or its driver, does not work.
    #[error(transparent)]
    Link(#[from] crate::Error),
}
