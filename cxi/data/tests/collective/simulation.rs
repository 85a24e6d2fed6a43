//! Members of a group on a network that loses, repeats, delays and reorders messages.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroU32;
use std::time::Duration;

use cxi_data::collective::{
    Combine, Failure, Member, Operation, Packet, State, Timing, Tree, Value,
};
use cxi_mock::SplitMix64;

/// One message is sent or received by a member in this time.
pub(crate) const GAP: Duration = Duration::from_nanos(500);
/// A message is under way for this time.
pub(crate) const LATENCY: Duration = Duration::from_micros(2);

pub(crate) const TIMING: Timing = Timing {
    retry: Duration::from_millis(1),
    silence: Duration::from_millis(50),
    deadline: Duration::from_millis(150),
};

/// The network: each message meets a fate that follows from the seed, until `faults` of them have
/// met a bad one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Network {
    pub(crate) numbers: SplitMix64,
    pub(crate) faults: u32,
    /// The longest delay of a message. Other messages overtake it.
    pub(crate) delay: Duration,
    /// The longest time between operations at a member.
    pub(crate) skew: Duration,
}

impl Network {
    fn random(&mut self, below: u64) -> u64 {
        self.numbers.draw() % below.max(1)
    }

    fn up_to(&mut self, most: Duration) -> Duration {
        Duration::from_nanos(self.random(u64::try_from(most.as_nanos()).unwrap() + 1))
    }

    /// The delays of the copies that arrive.
    fn fate(&mut self) -> Vec<Duration> {
        if self.faults == 0 {
            return vec![Duration::ZERO];
        }
        match self.random(4) {
            0 => {
                self.faults -= 1;
                vec![]
            }
            1 => {
                self.faults -= 1;
                vec![Duration::ZERO, self.up_to(self.delay)]
            }
            2 => {
                self.faults -= 1;
                vec![self.up_to(self.delay)]
            }
            _ => vec![Duration::ZERO],
        }
    }
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Enter(u32),
    Arrive(u32, [u8; Packet::BYTES]),
    Take(u32, [u8; Packet::BYTES]),
    Poll(u32),
}

/// Conduct of a member, apart from taking part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conduct {
    Good,
    /// Stops for good when it has completed this many operations.
    Dies(u32),
    /// Answers, and does not enter the operation of this number.
    Stays(u32),
}

pub(crate) struct Simulation {
    pub(crate) tree: Tree,
    pub(crate) members: Vec<Member>,
    pub(crate) conduct: Vec<Conduct>,
    pub(crate) results: Vec<Vec<Result<Value, Failure>>>,
    pub(crate) now: Duration,
    /// Time of the last message.
    pub(crate) last: Duration,
    network: Network,
    operations: Vec<Operation>,
    entered: Vec<u32>,
    enters_soon: Vec<bool>,
    poll_at: Vec<Duration>,
    position: Vec<u64>,
    agenda: BinaryHeap<Reverse<(Duration, u64, Happening)>>,
    number: u64,
    free: Vec<Duration>,
    check: bool,
}

/// The value that a member contributes to an operation.
pub(crate) fn value(rank: u32, operation: u32) -> Value {
    std::array::from_fn(|word| u64::from(rank + 1) * (u64::from(operation) + 3) + word as u64)
}

impl Simulation {
    pub(crate) fn new(size: u32, width: u32, operations: &[Operation], network: Network) -> Self {
        let tree = Tree::new(NonZeroU32::new(size).unwrap(), NonZeroU32::new(width).unwrap());
        let all = size as usize;
        let mut simulation = Self {
            tree,
            members: (0..size).map(|rank| Member::new(7, tree, rank, TIMING)).collect(),
            conduct: vec![Conduct::Good; all],
            results: vec![vec![]; all],
            now: Duration::ZERO,
            last: Duration::ZERO,
            network,
            operations: operations.to_vec(),
            entered: vec![0; all],
            enters_soon: vec![false; all],
            poll_at: vec![Duration::ZERO; all],
            position: vec![0; all],
            agenda: BinaryHeap::new(),
            number: 0,
            free: vec![Duration::ZERO; all],
            check: size <= 64,
        };
        for rank in 0..size {
            simulation.enter_soon(rank);
        }
        simulation
    }

    fn plan(&mut self, at: Duration, happening: Happening) {
        self.number += 1;
        self.agenda.push(Reverse((at, self.number, happening)));
    }

    fn enter_soon(&mut self, rank: u32) {
        self.enters_soon[rank as usize] = true;
        let pause = self.network.up_to(self.network.skew);
        self.plan(self.now + pause, Happening::Enter(rank));
    }

    fn is_gone(&self, rank: u32) -> bool {
        let completed = self.members[rank as usize].completed();
        matches!(self.conduct[rank as usize], Conduct::Dies(at) if completed >= at)
    }

    /// Runs until nothing happens any more.
    pub(crate) fn run(&mut self) {
        while let Some(Reverse((at, _, happening))) = self.agenda.pop() {
            self.now = at;
            assert!(self.now < Duration::from_secs(60), "the operations do not end");
            let (Happening::Enter(rank)
            | Happening::Arrive(rank, _)
            | Happening::Take(rank, _)
            | Happening::Poll(rank)) = happening;
            if self.is_gone(rank) {
                continue;
            }
            if let Happening::Arrive(_, bytes) = happening {
                // A receiver takes one message at a time.
                let taken = self.free[rank as usize].max(at) + GAP;
                self.free[rank as usize] = taken;
                self.last = self.last.max(taken);
                self.plan(taken, Happening::Take(rank, bytes));
            } else {
                self.happen(rank, &happening);
            }
        }
    }

    fn happen(&mut self, rank: u32, happening: &Happening) {
        let (now, index) = (self.now, rank as usize);
        let before = u32::try_from(self.results[index].len()).unwrap();
        let mut outbox = vec![];
        let mut send = |to, packet: Packet| outbox.push((to, packet));
        let member = &mut self.members[index];
        match happening {
            Happening::Enter(_) => {
                self.enters_soon[index] = false;
                let number = self.entered[index];
                let Some(operation) = self.operations.get(number as usize) else { return };
                let stays = self.conduct[index] == Conduct::Stays(number);
                if stays || member.failure().is_some() {
                    return;
                }
                self.entered[index] += 1;
                member.enter(now, *operation, value(rank, number), &mut send).unwrap();
            }
            Happening::Arrive(_, bytes) | Happening::Take(_, bytes) => {
                member.receive(now, &Packet::decode(bytes).unwrap(), &mut send);
            }
            Happening::Poll(_) => member.poll(now, &mut send),
        }
        if let Some(outcome) = member.outcome() {
            self.results[index].push(outcome);
        }
        let next = member.next_poll();
        let idle = matches!(member.state(), State::Idle | State::Filling);
        for (to, packet) in outbox {
            self.free[index] = self.free[index].max(now) + GAP;
            let leaves = self.free[index];
            for delay in self.network.fate() {
                let arrives = leaves + LATENCY + delay;
                self.plan(arrives, Happening::Arrive(to, packet.encode()));
            }
        }
        if next < Duration::MAX && next != self.poll_at[index] {
            self.poll_at[index] = next;
            self.plan(next, Happening::Poll(rank));
        }
        let done = u32::try_from(self.results[index].len()).unwrap();
        let stays = matches!(happening, Happening::Enter(_)) && done == before;
        if idle && done == self.entered[index] && !self.enters_soon[index] && !stays {
            self.enter_soon(rank);
        }
        if self.check {
            self.check(rank);
        }
    }

    /// States only advance, nobody leaves early, and no two members are more than a step apart.
    fn check(&mut self, rank: u32) {
        let member = &self.members[rank as usize];
        let within = match member.state() {
            State::Idle => 0,
            State::Filling => 1,
            State::Full => 2,
            State::Exiting => -1,
        };
        let position = (u64::from(member.completed()) * 4).checked_add_signed(within).unwrap();
        assert!(position >= self.position[rank as usize], "member {rank} went back");
        self.position[rank as usize] = position;
        let completed = self.members.iter().map(Member::completed);
        let most = completed.clone().max().unwrap();
        assert!(most - completed.min().unwrap() <= 1, "more than one step apart");
        assert!(self.entered.iter().all(|entered| *entered >= most), "released early");
    }

    /// The result that a member must get.
    pub(crate) fn expected(&self, rank: u32, number: u32) -> Value {
        let combine = |combine: Combine| {
            let all = (0..self.tree.size()).map(|rank| value(rank, number));
            all.reduce(|left, right| combine.apply(&left, &right)).unwrap()
        };
        match self.operations[number as usize] {
            Operation::Broadcast => value(0, number),
            Operation::Allreduce(how) => combine(how),
            Operation::Reduce(how) if rank == 0 => combine(how),
            _ => [0; 8],
        }
    }

    pub(crate) fn sent(&self) -> u64 {
        self.members.iter().map(|member| member.counts().sent).sum()
    }

    pub(crate) fn all_succeed(&self) {
        let numbers = 0..u32::try_from(self.operations.len()).unwrap();
        let expected = |rank| numbers.clone().map(move |number| Ok(self.expected(rank, number)));
        let (root, others): (Vec<_>, Vec<_>) = (expected(0).collect(), expected(1).collect());
        assert_eq!(self.results[0], root);
        for (rank, results) in self.results.iter().enumerate().skip(1) {
            assert_eq!(*results, others, "member {rank}");
        }
    }
}
