//! A group over the data path.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use super::endpoint::Incoming;
use super::wire::Wire;
use super::{
    Combine, Counts, Endpoint, Error, Failure, Member, Operation, Refused, Timing, Tree, Value,
};
use crate::wait::patiently;
use crate::{Address, Error as LinkError};

/// Repetitions of a neighbor that a member that leaves waits for.
const LAST_RETRIES: u32 = 4;

/// A process's part of a group, over the data path of a NIC.
///
/// Operations block, at most until the deadline and the silence of its [`Timing`] are over. All
/// members must perform the same operations in the same order.
#[derive(Debug)]
pub struct Group {
    member: Member,
    wire: Wire,
    start: Instant,
    timing: Timing,
}

impl Group {
    pub(super) fn new(
        endpoint: Endpoint,
        group: u32,
        members: &[Address],
        width: NonZeroU32,
        timing: Timing,
    ) -> Result<Self, Error> {
        timing.check()?;
        let (mut wire, rank) = Wire::new(endpoint, members)?;
        let size = u32::try_from(members.len()).ok().and_then(NonZeroU32::new);
        let size = size.ok_or_else(|| Error::NoMember(wire.endpoint.address()))?;
        let tree = Tree::new(size, width);
        for neighbor in tree.parent(rank).into_iter().chain(tree.children(rank)) {
            wire.open(neighbor)?;
        }
        Ok(Self {
            member: Member::new(group, tree, rank, timing),
            wire,
            start: Instant::now(),
            timing,
        })
    }

    /// The rank of this member.
    #[must_use]
    pub const fn rank(&self) -> u32 {
        self.member.rank()
    }

    /// Messages sent and received.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.member.counts()
    }

    /// Waits until all members have entered the barrier.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] names a member; [`Error::Link`] is an error of this member's NIC.
    pub fn barrier(&mut self) -> Result<(), Error> {
        self.run(Operation::Barrier, [0; 8]).map(drop)
    }

    /// The value of the root, the member of rank 0. The values of others do not count.
    ///
    /// # Errors
    ///
    /// As [`barrier`](Self::barrier).
    pub fn broadcast(&mut self, value: Value) -> Result<Value, Error> {
        self.run(Operation::Broadcast, value)
    }

    /// Combines the values of all members. The root gets the result, the others get zeros.
    ///
    /// # Errors
    ///
    /// As [`barrier`](Self::barrier).
    pub fn reduce(&mut self, combine: Combine, value: Value) -> Result<Value, Error> {
        self.run(Operation::Reduce(combine), value)
    }

    /// Combines the values of all members. All get the result.
    ///
    /// # Errors
    ///
    /// As [`barrier`](Self::barrier).
    pub fn allreduce(&mut self, combine: Combine, value: Value) -> Result<Value, Error> {
        self.run(Operation::Allreduce(combine), value)
    }

    /// Answers the other members for a time, while this process has something else to do.
    ///
    /// # Errors
    ///
    /// [`Error::Link`].
    pub fn linger(&mut self, time: Duration) -> Result<(), Error> {
        let start = Instant::now();
        patiently(|| {
            self.progress()?;
            Ok((start.elapsed() >= time).then_some(()))
        })?;
        Ok(())
    }

    /// Leaves the group, after a short time in which others learn how the last operation ended,
    /// if a message was lost: several retries, or [`Timing::silence`] if the group has failed.
    ///
    /// # Errors
    ///
    /// [`Error::Link`].
    pub fn leave(mut self) -> Result<Endpoint, Error> {
        let time = match self.member.failure() {
            Some(_) => self.timing.silence,
            None => self.timing.retry * LAST_RETRIES,
        };
        self.linger(time)?;
        Ok(self.wire.endpoint)
    }

    fn run(&mut self, operation: Operation, value: Value) -> Result<Value, Error> {
        let Self { member, wire, start, .. } = self;
        let entered = member.enter(start.elapsed(), operation, value, &mut |to, packet| {
            wire.send(to, packet);
        });
        match entered {
            Ok(()) => {}
            Err(Refused::Failed(failure)) => return Err(self.failed(failure)),
            Err(Refused::Busy) => return Err(Error::Interrupted),
        }
        let mut outcome = None;
        patiently(|| {
            self.progress()?;
            outcome = outcome.or_else(|| self.member.outcome());
            // Children that are not released yet are served before this process goes on.
            let ends =
                outcome.is_some() && (self.member.failure().is_some() || self.member.is_released());
            Ok(ends.then_some(()))
        })?;
        match outcome {
            Some(Ok(value)) => Ok(value),
            Some(Err(failure)) => Err(self.failed(failure)),
            None => Err(Error::Interrupted),
        }
    }

    fn failed(&self, failure: Failure) -> Error {
        let undelivered = self.wire.undelivered(failure.rank);
        Error::Failed { failure, undelivered }
    }

    /// Takes what has arrived, and repeats what was not answered.
    fn progress(&mut self) -> Result<(), LinkError> {
        let Self { member, wire, start, .. } = self;
        while let Some(incoming) = wire.endpoint.next()? {
            match incoming {
                Incoming::Packet(from, packet) => {
                    // Who sends is known to the NIC; a packet only says so.
                    if wire.is_from(&packet, from) {
                        let now = start.elapsed();
                        member.receive(now, &packet, &mut |to, packet| wire.send(to, packet));
                    }
                }
                Incoming::Sent(rank, result) => wire.sent(rank, result),
            }
        }
        member.poll(start.elapsed(), &mut |to, packet| wire.send(to, packet));
        wire.check()
    }
}
