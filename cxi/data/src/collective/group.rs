//! A group over the data path.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use super::endpoint::Incoming;
use super::{
    Cause, Combine, Counts, Endpoint, Error, Failure, Member, Operation, Packet, Refused, Timing,
    Tree, Value,
};
use crate::wait::patiently;
use crate::{Address, Error as LinkError, Failure as Undelivered, TransmitQueue};

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
    /// Number of messages by which members were tried, for their tokens.
    tried: u32,
}

/// Answer of a member's NIC to [`Group::reach`].
#[derive(Debug)]
pub struct Reached {
    /// Rank of the member.
    pub rank: u32,
    /// The time until its NIC had acknowledged a message, or the reason why it has not.
    pub answer: Result<Duration, Error>,
}

/// A message by which a member is tried.
#[derive(Debug)]
struct Trial {
    token: u64,
    result: Option<Result<(), Undelivered>>,
}

/// The way to the other members.
#[derive(Debug)]
struct Wire {
    addresses: Box<[Address]>,
    /// To the neighbors. There is none to others, to whom nothing is sent.
    ways: Box<[Option<Way>]>,
    endpoint: Endpoint,
    /// The member that is tried at the moment.
    trial: Option<Trial>,
    /// An error of the NIC, after which nothing works.
    broken: Option<LinkError>,
}

/// The way to one member, with a queue of its own: a NIC that cannot deliver a message tries for long,
/// and what follows in the queue may wait. For the same reason, one message is under way at a time.
#[derive(Debug)]
struct Way {
    queue: TransmitQueue,
    is_busy: bool,
    /// The last message since. An earlier one is lost by that, and repeated if it still matters.
    next: Option<Packet>,
    /// The reason for which the last message did not arrive.
    undelivered: Option<Undelivered>,
}

impl Wire {
    fn send(&mut self, to: u32, packet: Packet) {
        let at = to as usize;
        let way = self.ways.get_mut(at).and_then(Option::as_mut);
        let (Some(address), Some(way)) = (self.addresses.get(at), way) else { return };
        if way.is_busy {
            way.next = Some(packet);
            return;
        }
        match self.endpoint.send(&mut way.queue, *address, to, &packet) {
            Ok(posted) => way.is_busy = posted,
            Err(error) => {
                self.broken.get_or_insert(error);
            }
        }
    }

    fn sent(&mut self, token: u64, result: Result<(), Undelivered>) {
        // Other tokens than ranks are those of trials, also of earlier ones.
        let Ok(to) = u32::try_from(token) else {
            if let Some(trial) = self.trial.as_mut().filter(|trial| trial.token == token) {
                trial.result = Some(result);
            }
            return;
        };
        let Some(Some(way)) = self.ways.get_mut(to as usize) else { return };
        way.is_busy = false;
        way.undelivered = result.err();
        if let Some(packet) = way.next.take() {
            self.send(to, packet);
        }
    }
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
        let own = endpoint.address();
        let mut seen = BTreeSet::new();
        if let Some(twice) = members.iter().find(|address| !seen.insert(**address)) {
            return Err(Error::Twice(*twice));
        }
        let rank = members.iter().zip(0..).find(|(address, _)| **address == own);
        let size = u32::try_from(members.len()).ok().and_then(NonZeroU32::new);
        let (Some((_, rank)), Some(size)) = (rank, size) else { return Err(Error::NoMember(own)) };
        let tree = Tree::new(size, width);
        let mut ways: Box<[Option<Way>]> = members.iter().map(|_| None).collect();
        for neighbor in tree.parent(rank).into_iter().chain(tree.children(rank)) {
            let queue = endpoint.queue()?;
            let way = Way { queue, is_busy: false, next: None, undelivered: None };
            ways[neighbor as usize] = Some(way);
        }
        Ok(Self {
            member: Member::new(group, tree, rank, timing),
            wire: Wire { addresses: members.into(), ways, endpoint, trial: None, broken: None },
            start: Instant::now(),
            timing,
            tried: 0,
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

    /// Tries each other member, one after the other, beginning with the next rank, so that members
    /// that do this at once do not all try the same one. It does not matter if the group has failed.
    /// A member that has left is not reached any more: agree on the end, by a barrier if one succeeds.
    ///
    /// The answer is the NIC's, with the member's VNI, PID and inbox; the process may be busy, but not
    /// for so long that 128 messages are waiting for it. Each answer takes at most
    /// [`Timing::silence`]; if the NIC here has not given up by then, there is no reason.
    ///
    /// # Errors
    ///
    /// [`Error::Link`]. Members that cannot be reached are in the list, with [`Error::Failed`].
    pub fn reach(&mut self) -> Result<Vec<Reached>, Error> {
        let (own, size) = (self.rank() as usize, self.wire.addresses.len());
        let mut found = Vec::with_capacity(size.saturating_sub(1));
        for at in (own + 1..size).chain(0..own) {
            let Ok(rank) = u32::try_from(at) else { continue };
            let answer = match self.try_member(self.wire.addresses[at])? {
                Ok(time) => Ok(time),
                Err(undelivered) => {
                    let failure = Failure { rank, cause: Cause::Silent };
                    Err(Error::Failed { failure, undelivered })
                }
            };
            found.push(Reached { rank, answer });
        }
        Ok(found)
    }

    /// The time until a message was acknowledged, or the NIC's reason, if it gave one in time. It has a
    /// queue of its own, because what follows a message that cannot be delivered may wait.
    fn try_member(
        &mut self,
        address: Address,
    ) -> Result<Result<Duration, Option<Undelivered>>, LinkError> {
        self.tried = self.tried.wrapping_add(1);
        let token = (1 << 63) | (u64::from(self.tried) << 31);
        let mut queue = self.wire.endpoint.queue()?;
        self.wire.trial = Some(Trial { token, result: None });
        let start = Instant::now();
        self.wire.endpoint.probe(&mut queue, address, token)?;
        let silence = self.timing.silence;
        let answer = patiently(|| {
            self.progress()?;
            let time = start.elapsed();
            let result = self.wire.trial.as_ref().and_then(|trial| trial.result);
            Ok(match result {
                Some(result) => Some(result.map(|()| time).map_err(Some)),
                None => (time >= silence).then_some(Err(None)),
            })
        });
        self.wire.trial = None;
        answer
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
        let way = self.wire.ways.get(failure.rank as usize);
        let undelivered = way.and_then(|way| way.as_ref()?.undelivered);
        Error::Failed { failure, undelivered }
    }

    /// Takes what has arrived, and repeats what was not answered.
    fn progress(&mut self) -> Result<(), LinkError> {
        let Self { member, wire, start, .. } = self;
        while let Some(incoming) = wire.endpoint.next()? {
            match incoming {
                Incoming::Packet(from, packet) => {
                    // Who sends is known to the NIC; a packet only says so.
                    if wire.addresses.get(packet.from as usize) == Some(&from) {
                        let now = start.elapsed();
                        member.receive(now, &packet, &mut |to, packet| wire.send(to, packet));
                    }
                }
                Incoming::Sent(rank, result) => wire.sent(rank, result),
            }
        }
        member.poll(start.elapsed(), &mut |to, packet| wire.send(to, packet));
        wire.broken.take().map_or(Ok(()), Err)
    }
}
