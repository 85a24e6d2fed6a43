//! A root and leaves.

use std::collections::VecDeque;

use cxi_hw::reduction::{REDUCTIONS, ReductionPacket, ResultCode, Sequence};

/// Time that a root waits for contributions, and a leaf for a result.
pub(crate) const RETRY: u64 = 60;
pub(crate) const FETCH: u64 = 200;

/// Contribution of a participant to an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contribution {
    pub(crate) op: u8,
    pub(crate) payload: [u64; 4],
}

impl Contribution {
    fn packet(self) -> ReductionPacket {
        ReductionPacket {
            op: self.op,
            count: 1,
            payload: self.payload,
            ..ReductionPacket::default()
        }
    }
}

/// An operation that ended.
pub(crate) type Completion = (usize, [u64; 4], ResultCode);

/// Operations of a participant, handed to reduction ids in turn, completed in order.
#[derive(Debug)]
struct Turns {
    waiting: VecDeque<Contribution>,
    started: usize,
    ended: [Option<Completion>; REDUCTIONS],
    completions: Vec<Completion>,
}

impl Turns {
    fn new(work: &[Contribution]) -> Self {
        Self {
            waiting: work.iter().copied().collect(),
            started: 0,
            ended: [None; REDUCTIONS],
            completions: Vec::new(),
        }
    }

    /// The next operation, if its reduction id is not busy.
    fn start(&mut self) -> Option<(usize, Contribution)> {
        if self.started - self.completions.len() == REDUCTIONS {
            return None;
        }
        let next = self.waiting.pop_front()?;
        self.started += 1;
        Some(((self.started - 1) % REDUCTIONS, next))
    }

    fn end(&mut self, id: usize, result: &ReductionPacket) {
        let mut operation = self.completions.len();
        while operation % REDUCTIONS != id {
            operation += 1;
        }
        assert!(self.ended[id].is_none(), "one operation ends twice");
        self.ended[id] = Some((operation, result.payload, result.code));
        while let Some(next) = self.ended[self.completions.len() % REDUCTIONS].take() {
            self.completions.push(next);
        }
    }
}

#[derive(Debug, Default)]
struct RootReduction {
    /// Number under which the operation began, and the current one.
    base: Sequence,
    now: Sequence,
    armed: bool,
    own: Option<Contribution>,
    others: Option<ReductionPacket>,
    timer: u64,
    saved: Option<ReductionPacket>,
}

/// The participant that finishes reductions.
#[derive(Debug)]
pub(crate) struct Root {
    participants: u32,
    turns: Turns,
    reductions: [RootReduction; REDUCTIONS],
}

/// Packets to send, each with its reduction id.
pub(crate) type Sent = Vec<(u8, ReductionPacket)>;

impl Root {
    pub(crate) fn new(participants: u32, work: &[Contribution], first: Sequence) -> Self {
        let reduction = |_| RootReduction { base: first, now: first, ..RootReduction::default() };
        Self { participants, turns: Turns::new(work), reductions: std::array::from_fn(reduction) }
    }

    pub(crate) fn completions(&self) -> &[Completion] {
        &self.turns.completions
    }

    pub(crate) fn work(&mut self, now: u64) -> Sent {
        let mut sent = Sent::new();
        while let Some((id, contribution)) = self.turns.start() {
            let reduction = &mut self.reductions[id];
            reduction.own = Some(contribution);
            reduction.timer = now + RETRY;
            if reduction.armed {
                self.finish(id, &mut sent);
            } else {
                reduction.armed = true;
                reduction.ask_again(id, &mut sent);
            }
        }
        for (id, reduction) in self.reductions.iter_mut().enumerate() {
            if reduction.own.is_some() && reduction.timer <= now {
                reduction.timer = now + RETRY;
                reduction.ask_again(id, &mut sent);
            }
        }
        sent
    }

    pub(crate) fn receive(&mut self, id: u8, packet: &ReductionPacket) -> Sent {
        let mut sent = Sent::new();
        let id = usize::from(id);
        let reduction = &mut self.reductions[id];
        if packet.answered == reduction.now {
            match &mut reduction.others {
                None => reduction.others = Some(*packet),
                Some(others) => others.add(packet),
            }
            self.finish(id, &mut sent);
        }
        sent
    }

    /// Returns the result that a leaf reads when it has missed one.
    pub(crate) fn saved(&self, id: u8) -> Option<ReductionPacket> {
        self.reductions[usize::from(id)].saved
    }

    fn finish(&mut self, id: usize, sent: &mut Sent) {
        let reduction = &mut self.reductions[id];
        let Some(own) = reduction.own else { return };
        let mut all = own.packet();
        if let Some(others) = &reduction.others {
            all.add(others);
        }
        assert!(all.count <= self.participants, "a contribution counts twice");
        if all.count < self.participants {
            return;
        }
        let next = reduction.now.next();
        let result = ReductionPacket { sequence: next, arm: true, answered: reduction.now, ..all };
        *reduction = RootReduction {
            base: next,
            now: next,
            armed: true,
            saved: Some(result),
            ..RootReduction::default()
        };
        self.turns.end(id, &result);
        sent.push((id as u8, result));
    }
}

impl RootReduction {
    /// Everything that came before no longer counts.
    fn ask_again(&mut self, id: usize, sent: &mut Sent) {
        self.now = self.now.next();
        self.others = None;
        let order = ReductionPacket {
            sequence: self.now,
            arm: true,
            retry: true,
            // A leaf that is an operation behind sees it here: what it has is not wanted any more.
            answered: self.base,
            ..ReductionPacket::default()
        };
        let clear = ReductionPacket { sequence: Sequence::CLEAR, ..order };
        sent.extend([(id as u8, clear), (id as u8, order)]);
    }
}

#[derive(Debug, Default)]
struct LeafReduction {
    /// Number under which the operation began.
    base: Sequence,
    /// The newest number that the root gave.
    newest: Option<Sequence>,
    own: Option<Contribution>,
    timer: u64,
}

/// A participant that sends what it has, and waits.
#[derive(Debug)]
pub(crate) struct Leaf {
    index: u32,
    turns: Turns,
    reductions: [LeafReduction; REDUCTIONS],
}

impl Leaf {
    pub(crate) fn new(index: u32, work: &[Contribution], first: Sequence) -> Self {
        let reduction = |_| LeafReduction { base: first, ..LeafReduction::default() };
        Self { index, turns: Turns::new(work), reductions: std::array::from_fn(reduction) }
    }

    pub(crate) fn completions(&self) -> &[Completion] {
        &self.turns.completions
    }

    pub(crate) fn work(&mut self, now: u64) -> Sent {
        let mut sent = Sent::new();
        while let Some((id, contribution)) = self.turns.start() {
            let reduction = &mut self.reductions[id];
            reduction.own = Some(contribution);
            reduction.timer = now + FETCH;
            // Before the first order there is nothing to send it under.
            sent.extend(reduction.contribute(self.index, id));
        }
        sent
    }

    /// Reduction ids whose result is to be fetched from the root.
    pub(crate) fn overdue(&mut self, now: u64) -> Vec<u8> {
        let mut overdue = Vec::new();
        for (id, reduction) in (0..).zip(&mut self.reductions) {
            if reduction.own.is_some() && reduction.timer <= now {
                reduction.timer = now + FETCH;
                overdue.push(id);
            }
        }
        overdue
    }

    pub(crate) fn receive(&mut self, id: u8, packet: &ReductionPacket) -> Sent {
        let id = usize::from(id);
        let reduction = &mut self.reductions[id];
        if packet.sequence == Sequence::CLEAR {
            return Sent::new();
        }
        if packet.retry {
            let newer = reduction.newest.is_none_or(|newest| packet.sequence.is_newer_than(newest));
            // Of another operation: the result is missed, or the order is old.
            if packet.answered != reduction.base || !newer {
                return Sent::new();
            }
            reduction.newest = Some(packet.sequence);
            return reduction.contribute(self.index, id).into_iter().collect();
        }
        let ours = !reduction.base.is_newer_than(packet.answered);
        if reduction.own.take_if(|_| packet.count > 0 && ours).is_some() {
            reduction.base = packet.sequence;
            reduction.newest = Some(packet.sequence);
            self.turns.end(id, packet);
        }
        Sent::new()
    }
}

impl LeafReduction {
    fn contribute(&self, index: u32, id: usize) -> Option<(u8, ReductionPacket)> {
        let (own, sequence) = (self.own?, self.newest?);
        let packet =
            ReductionPacket { sender: index, sequence, answered: sequence, ..own.packet() };
        Some((id as u8, packet))
    }
}
