//! The state machine of one member.

use std::cmp::Ordering;
use std::time::Duration;

use super::{Cause, Failure, Message, Operation, Packet, Refused, Tree, Value};

/// State of a member. It only advances, in a circle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Nobody from this member down has entered the operation.
    Idle,
    /// Some have: the member itself, or children with all below them.
    Filling,
    /// All have, and the parent has been told.
    Full,
    /// All members of the group have; the children are being told.
    Exiting,
}

/// Times after which a member acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// A message that is not answered is sent again after this time.
    pub retry: Duration,
    /// A neighbor that was not heard for this time, although it was asked, is considered dead.
    /// Several times `retry`.
    pub silence: Duration,
    /// An operation that has not ended this long after the member has entered it has failed.
    /// Longer than `silence`, so that a dead member is named by its parent.
    pub deadline: Duration,
}

/// Times of a [`Timing`] that do not fit together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name} {time:?}: expected {expected}")]
pub struct InvalidTiming {
    name: &'static str,
    time: Duration,
    expected: &'static str,
}

impl Timing {
    /// Checks that the times fit together.
    ///
    /// # Errors
    ///
    /// A retry of zero; a silence of less than two retries, in which a living member would be taken
    /// for dead; a deadline that is not longer than the silence, so that nobody would be named.
    pub fn check(&self) -> Result<(), InvalidTiming> {
        let Self { retry, silence, deadline } = *self;
        let rules = [
            (!retry.is_zero(), "retry", retry, "more than zero"),
            (silence >= retry.saturating_mul(2), "silence", silence, "at least two retries"),
            (deadline > silence, "deadline", deadline, "longer than the silence"),
        ];
        match rules.into_iter().find(|(holds, ..)| !holds) {
            Some((_, name, time, expected)) => Err(InvalidTiming { name, time, expected }),
            None => Ok(()),
        }
    }
}

impl Default for Timing {
    /// 10 ms, 1 s and 30 s.
    fn default() -> Self {
        Self {
            retry: Duration::from_millis(10),
            silence: Duration::from_secs(1),
            deadline: Duration::from_secs(30),
        }
    }
}

/// Messages that a member has sent and received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages sent.
    pub sent: u64,
    /// Of those, repetitions and questions, because an answer did not come in time.
    pub retries: u64,
    /// Messages received again or late, which changed nothing.
    pub repeated: u64,
    /// Messages of another group, or not from a neighbor.
    pub foreign: u64,
}

#[derive(Clone, Copy, Debug)]
struct Child {
    /// The operation and value of the child and all below it, in this operation.
    ready: Option<(Operation, Value)>,
    /// The same for the next operation, which a child may enter before its siblings are released.
    next: Option<(Operation, Value)>,
    /// The release was acknowledged.
    released: bool,
    /// Time of the last message.
    heard: Duration,
    /// The member that the child waits for. Itself, until it says otherwise.
    waits_for: u32,
}

/// One process's part of a group.
///
/// Times are durations since any moment that stays the same for this member. Messages that it
/// sends are handed to `send`, with the rank of the receiver.
#[derive(Clone, Debug)]
pub struct Member {
    group: u32,
    tree: Tree,
    rank: u32,
    timing: Timing,
    state: State,
    /// Number of the operation that the state is about.
    transaction: u32,
    entered: Option<(Operation, Value, Duration)>,
    children: Box<[Child]>,
    /// The value that the member reports to its parent, once it is full.
    combined: Value,
    /// The release that was sent in the last operation that ended here.
    release: Value,
    result: Option<Value>,
    parent_heard: Duration,
    /// The member that the parent waits for.
    parent_waits_for: u32,
    retry_at: Duration,
    failure: Option<Failure>,
    counts: Counts,
}

impl Member {
    /// The member of a rank, in a group whose number is the same for all members and for no other
    /// group with the same processes.
    ///
    /// # Panics
    ///
    /// The rank is not in the tree.
    #[must_use]
    pub fn new(group: u32, tree: Tree, rank: u32, timing: Timing) -> Self {
        assert!(rank < tree.size(), "rank {rank}: expected less than {}", tree.size());
        let child = |rank| Child {
            ready: None,
            next: None,
            released: false,
            heard: Duration::ZERO,
            waits_for: rank,
        };
        Self {
            group,
            tree,
            rank,
            timing,
            state: State::Idle,
            transaction: 0,
            entered: None,
            children: tree.children(rank).map(child).collect(),
            combined: [0; 8],
            release: [0; 8],
            result: None,
            parent_heard: Duration::ZERO,
            parent_waits_for: tree.parent(rank).unwrap_or(rank),
            retry_at: Duration::MAX,
            failure: None,
            counts: Counts::default(),
        }
    }

    /// The rank.
    #[must_use]
    pub const fn rank(&self) -> u32 {
        self.rank
    }

    /// The state.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// Tells if nothing of the last operation is left to do here.
    pub(super) const fn is_released(&self) -> bool {
        !matches!(self.state, State::Exiting)
    }

    /// Number of operations that have ended here with a result. It wraps.
    #[must_use]
    pub const fn completed(&self) -> u32 {
        match self.state {
            State::Exiting => self.transaction.wrapping_add(1),
            State::Idle | State::Filling | State::Full => self.transaction,
        }
    }

    /// The failure of the group, if it has failed.
    #[must_use]
    pub const fn failure(&self) -> Option<Failure> {
        self.failure
    }

    /// Messages sent and received.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// The outcome of the operation that was entered last, as soon as there is one; once.
    ///
    /// The member may have to pass it on after that: go on polling until the state is
    /// [`State::Idle`], also before the process ends.
    pub fn outcome(&mut self) -> Option<Result<Value, Failure>> {
        if let Some(value) = self.result.take() {
            return Some(Ok(value));
        }
        let failure = self.failure?;
        self.entered.take().map(|_| Err(failure))
    }

    /// Time at which [`poll`](Self::poll) has to be called at the latest.
    #[must_use]
    pub const fn next_poll(&self) -> Duration {
        self.retry_at
    }

    /// Enters an operation. All members must enter the same ones in the same order.
    ///
    /// # Errors
    ///
    /// The group has failed, or the last operation has not ended here.
    pub fn enter(
        &mut self,
        now: Duration,
        operation: Operation,
        value: Value,
        send: &mut impl FnMut(u32, Packet),
    ) -> Result<(), Refused> {
        if let Some(failure) = self.failure {
            return Err(failure.into());
        }
        if self.entered.is_some() || self.result.is_some() || self.state == State::Exiting {
            return Err(Refused::Busy);
        }
        self.entered = Some((operation, value, now));
        self.retry_at = now.saturating_add(self.timing.retry);
        self.parent_heard = now;
        for child in &mut self.children {
            child.heard = now;
        }
        self.state = State::Filling;
        self.fill(now, send);
        Ok(())
    }

    /// Takes a message.
    pub fn receive(&mut self, now: Duration, packet: &Packet, send: &mut impl FnMut(u32, Packet)) {
        let from_parent = self.tree.parent(self.rank) == Some(packet.from);
        let child = self.tree.children(self.rank).position(|child| child == packet.from);
        let is_of_none = matches!(packet.message, Message::Ping | Message::Pong);
        if packet.group != self.group || is_of_none || !(from_parent || child.is_some()) {
            self.counts.foreign += 1;
            return;
        }
        match (packet.message, self.failure) {
            (Message::Failed(_), Some(_)) => return,
            (Message::Failed(failure), None) => {
                return self.fail(failure, Some(packet.from), send);
            }
            (_, Some(failure)) => {
                return self.send(packet.from, Message::Failed(failure), send);
            }
            (_, None) => {}
        }
        match child {
            Some(child) => self.hear_child(now, child, packet, send),
            None => self.hear_parent(now, packet, send),
        }
    }

    /// Repeats what was not answered, and gives up on members that are silent or late.
    pub fn poll(&mut self, now: Duration, send: &mut impl FnMut(u32, Packet)) {
        if self.failure.is_some() || now < self.retry_at {
            return;
        }
        self.retry_at = now.saturating_add(self.timing.retry);
        let silent = |heard: Duration| now.saturating_sub(heard) >= self.timing.silence;
        let awaited = |child: &Child| match self.state {
            State::Filling => child.ready.is_none() && self.entered.is_some(),
            State::Exiting => !child.released,
            State::Idle | State::Full => false,
        };
        let dead = self.tree.children(self.rank).zip(&self.children);
        let mut dead = dead.filter(|(_, child)| awaited(child) && silent(child.heard));
        let mut dead = dead.next().map(|(rank, _)| rank);
        if let (State::Full, Some(parent)) = (self.state, self.tree.parent(self.rank)) {
            dead = silent(self.parent_heard).then_some(parent);
        }
        if let Some(rank) = dead {
            return self.fail(Failure { rank, cause: Cause::Silent }, Some(rank), send);
        }
        if let Some((.., since)) = self.entered
            && now.saturating_sub(since) >= self.timing.deadline
        {
            return self.fail(Failure { rank: self.waits_for(), cause: Cause::Late }, None, send);
        }
        let before = self.counts.sent;
        match self.state {
            State::Idle => self.retry_at = Duration::MAX,
            State::Full => self.report(send),
            State::Filling if self.entered.is_none() => self.retry_at = Duration::MAX,
            State::Filling | State::Exiting => {
                let message = match self.state {
                    State::Exiting => Message::Release(self.release),
                    _ => Message::Ask,
                };
                for (at, rank) in self.tree.children(self.rank).enumerate() {
                    let child = &self.children[at];
                    let done = match self.state {
                        State::Exiting => child.released,
                        _ => child.ready.is_some(),
                    };
                    if !done {
                        self.send(rank, message, send);
                    }
                }
            }
        }
        self.counts.retries += self.counts.sent - before;
    }

    /// The member that keeps this one from going on, as far as it knows.
    fn waits_for(&self) -> u32 {
        if self.entered.is_none() && self.state != State::Full {
            return self.rank;
        }
        let missing = self.children.iter().find(|child| child.ready.is_none());
        missing.map_or(self.parent_waits_for, |child| child.waits_for)
    }

    /// Advances as far as those who have entered allow.
    fn fill(&mut self, now: Duration, send: &mut impl FnMut(u32, Packet)) {
        let Some((operation, mut value, _)) = self.entered else { return };
        let mut ranks = self.tree.children(self.rank).zip(&self.children);
        let other = ranks.find_map(|(rank, child)| {
            child.ready.filter(|(theirs, _)| *theirs != operation).map(|_| rank)
        });
        if let Some(rank) = other {
            return self.fail(Failure { rank, cause: Cause::OtherOperation }, None, send);
        }
        for child in &self.children {
            let Some((_, theirs)) = child.ready else { return };
            if let Some(combine) = operation.combine() {
                value = combine.apply(&value, &theirs);
            }
        }
        self.combined = value;
        self.state = State::Full;
        self.parent_heard = now;
        self.retry_at = now.saturating_add(self.timing.retry);
        if self.rank == 0 {
            self.exit(now, operation.result(value), operation.released(value), send);
        } else {
            self.report(send);
        }
    }

    /// Tells the parent that all from this member down have entered.
    fn report(&mut self, send: &mut impl FnMut(u32, Packet)) {
        if let (Some(parent), Some((operation, ..))) = (self.tree.parent(self.rank), self.entered) {
            self.send(parent, Message::Ready(operation, self.combined), send);
        }
    }

    /// Ends the operation with a result, and passes the release on.
    fn exit(
        &mut self,
        now: Duration,
        result: Value,
        release: Value,
        send: &mut impl FnMut(u32, Packet),
    ) {
        self.entered = None;
        self.result = Some(result);
        self.release = release;
        self.state = State::Exiting;
        self.retry_at = now.saturating_add(self.timing.retry);
        for (at, rank) in self.tree.children(self.rank).enumerate() {
            self.children[at].released = false;
            self.children[at].heard = now;
            self.send(rank, Message::Release(release), send);
        }
        self.empty();
    }

    /// Becomes idle, and so ready for the next operation, when all children have left this one.
    fn empty(&mut self) {
        if self.state != State::Exiting || !self.children.iter().all(|child| child.released) {
            return;
        }
        self.transaction = self.transaction.wrapping_add(1);
        self.state = State::Idle;
        self.retry_at = Duration::MAX;
        self.parent_waits_for = self.tree.parent(self.rank).unwrap_or(self.rank);
        for (rank, child) in self.tree.children(self.rank).zip(&mut self.children) {
            child.ready = child.next.take();
            child.waits_for = rank;
            if child.ready.is_some() {
                self.state = State::Filling;
            }
        }
    }

    /// Order of a message's operation relative to this member's, in a circle.
    fn age(&self, packet: &Packet) -> Ordering {
        let ahead = packet.transaction.wrapping_sub(self.transaction);
        if ahead == 0 {
            Ordering::Equal
        } else if ahead < 1 << 31 {
            Ordering::Greater
        } else {
            Ordering::Less
        }
    }

    fn is_next(&self, packet: &Packet) -> bool {
        packet.transaction == self.transaction.wrapping_add(1)
    }

    fn is_last(&self, packet: &Packet) -> bool {
        packet.transaction == self.transaction.wrapping_sub(1)
    }

    fn hear_child(
        &mut self,
        now: Duration,
        at: usize,
        packet: &Packet,
        send: &mut impl FnMut(u32, Packet),
    ) {
        let age = self.age(packet);
        // The answer to a child that is alive and has nothing new counts as well.
        if age != Ordering::Less {
            self.children[at].heard = now;
        }
        let exiting = self.state == State::Exiting;
        match (packet.message, age) {
            (Message::Ready(operation, value), Ordering::Equal) => {
                if exiting {
                    self.counts.repeated += 1;
                    self.answer(packet, Message::Release(self.release), send);
                } else if self.children[at].ready.is_some() {
                    self.counts.repeated += 1;
                    self.send(packet.from, Message::Status(self.state, self.waits_for()), send);
                } else {
                    self.children[at].ready = Some((operation, value));
                    self.state = State::Filling;
                    self.fill(now, send);
                }
            }
            (Message::Ready(operation, value), Ordering::Greater)
                if exiting && self.is_next(packet) =>
            {
                // Who is in the next operation has left this one.
                let child = &mut self.children[at];
                child.next = Some((operation, value));
                child.released = true;
                self.empty();
            }
            (Message::Ready(..), Ordering::Less) => {
                self.counts.repeated += 1;
                if self.is_last(packet) {
                    self.answer(packet, Message::Release(self.release), send);
                }
            }
            (Message::Released, Ordering::Equal) if exiting => {
                self.children[at].released = true;
                self.empty();
            }
            (Message::Status(_, waits_for), Ordering::Equal) if !exiting => {
                self.children[at].waits_for = waits_for;
            }
            (Message::Ready(..) | Message::Released | Message::Status(..), Ordering::Greater)
            | (Message::Released, Ordering::Equal) => {
                let ahead_by_one = exiting && self.is_next(packet);
                if !ahead_by_one {
                    self.fail(Failure { rank: packet.from, cause: Cause::OutOfStep }, None, send);
                }
            }
            _ => self.counts.repeated += 1,
        }
    }

    fn hear_parent(&mut self, now: Duration, packet: &Packet, send: &mut impl FnMut(u32, Packet)) {
        let age = self.age(packet);
        if age != Ordering::Less {
            self.parent_heard = now;
        }
        match (packet.message, age, self.state) {
            (Message::Release(value), Ordering::Equal, State::Full) => {
                self.answer(packet, Message::Released, send);
                self.exit(now, value, value, send);
            }
            (Message::Release(_), Ordering::Equal, State::Exiting) => {
                self.counts.repeated += 1;
                self.answer(packet, Message::Released, send);
            }
            (Message::Release(_), Ordering::Less, _) => {
                self.counts.repeated += 1;
                if self.is_last(packet) {
                    self.answer(packet, Message::Released, send);
                }
            }
            (Message::Ask, Ordering::Equal, State::Full) => self.report(send),
            (Message::Ask, Ordering::Equal, State::Idle | State::Filling) => {
                self.send(packet.from, Message::Status(self.state, self.waits_for()), send);
            }
            // The parent goes on while this member still releases its children.
            (Message::Ask, Ordering::Greater, State::Exiting) if self.is_next(packet) => {
                let status = Message::Status(State::Idle, self.rank);
                self.answer(packet, status, send);
            }
            (Message::Status(_, waits_for), Ordering::Equal, _) => {
                self.parent_waits_for = waits_for;
            }
            (Message::Status(..), Ordering::Greater, State::Exiting) if self.is_next(packet) => {}
            (_, Ordering::Greater, _) | (Message::Release(_), Ordering::Equal, _) => {
                // The group is further than this member can be: it is the one that came late.
                self.fail(Failure { rank: self.rank, cause: Cause::OutOfStep }, None, send);
            }
            _ => self.counts.repeated += 1,
        }
    }

    /// Ends the group, and tells the neighbors, except one that knows or is dead.
    fn fail(&mut self, failure: Failure, except: Option<u32>, send: &mut impl FnMut(u32, Packet)) {
        self.failure = Some(failure);
        self.retry_at = Duration::MAX;
        let neighbors = self.tree.parent(self.rank).into_iter();
        for rank in neighbors.chain(self.tree.children(self.rank)) {
            if Some(rank) != except {
                self.send(rank, Message::Failed(failure), send);
            }
        }
    }

    /// Sends a message about the operation that another one was about.
    fn answer(&mut self, to: &Packet, message: Message, send: &mut impl FnMut(u32, Packet)) {
        self.counts.sent += 1;
        let Self { group, rank: from, .. } = *self;
        send(to.from, Packet { group, from, transaction: to.transaction, message });
    }

    fn send(&mut self, to: u32, message: Message, send: &mut impl FnMut(u32, Packet)) {
        self.counts.sent += 1;
        let Self { group, rank: from, transaction, .. } = *self;
        send(to, Packet { group, from, transaction, message });
    }
}
