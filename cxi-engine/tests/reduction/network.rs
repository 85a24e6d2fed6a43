//! A tree of switches with links that lose, delay and repeat.

use std::collections::BTreeMap;

use cxi_engine::reduction::{ReductionEngines, ReductionPacket, Sequence};

use crate::participant::{Completion, Contribution, Leaf, Root, Sent};

/// Chances out of 256, and the longest delay.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) seed: u64,
    pub(crate) loss: u8,
    pub(crate) duplication: u8,
    pub(crate) delay: u64,
    /// Faults end then: what is lost for ever cannot end.
    pub(crate) until: u64,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Root,
    Switch(usize),
    Leaf(usize),
}

/// Who is below a switch, and who above.
#[derive(Debug)]
struct Switch {
    engines: ReductionEngines,
    up: Place,
    down: Vec<Place>,
}

#[derive(Debug)]
struct Travelling {
    to: Place,
    upward: bool,
    reduction: u8,
    bytes: [u8; 49],
}

/// A root, leaves, and switches between them.
#[derive(Debug)]
pub(crate) struct Network {
    root: Root,
    leaves: Vec<Leaf>,
    homes: Vec<usize>,
    switches: Vec<Switch>,
    faults: Faults,
    random: u64,
    now: u64,
    order: u64,
    travelling: BTreeMap<(u64, u64), Travelling>,
    pub(crate) at_root: u64,
}

/// Where participants and switches are.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    /// The switch above each switch but the first, which is the root's.
    pub(crate) parents: Vec<usize>,
    /// The switch of each leaf.
    pub(crate) homes: Vec<usize>,
    /// How long an engine waits.
    pub(crate) timeout: u64,
    /// The first sequence number.
    pub(crate) first: Sequence,
}

impl Network {
    /// The work is the root's first, and then each leaf's.
    pub(crate) fn new(shape: &Shape, work: &[Vec<Contribution>], faults: Faults) -> Self {
        let count = shape.parents.len() + 1;
        let mut down = vec![Vec::new(); count];
        let mut below = vec![0; count];
        for (leaf, home) in shape.homes.iter().enumerate() {
            down[*home].push(Place::Leaf(leaf));
            let mut at = *home;
            below[at] += 1;
            while at > 0 {
                at = shape.parents[at - 1];
                below[at] += 1;
            }
        }
        for (child, parent) in (1..).zip(&shape.parents) {
            down[*parent].push(Place::Switch(child));
        }
        let switch = |(number, down)| Switch {
            engines: ReductionEngines::new(1000 + number as u32, below[number], shape.timeout),
            up: if number == 0 {
                Place::Root
            } else {
                Place::Switch(shape.parents[number - 1])
            },
            down,
        };
        let leaf = |(index, work): (usize, &Vec<Contribution>)| {
            Leaf::new(index as u32 + 1, work, shape.first)
        };
        Self {
            root: Root::new(work.len() as u32, &work[0], shape.first),
            leaves: work[1..].iter().enumerate().map(leaf).collect(),
            homes: shape.homes.clone(),
            switches: down.into_iter().enumerate().map(switch).collect(),
            random: faults.seed,
            faults,
            now: 0,
            order: 0,
            travelling: BTreeMap::new(),
            at_root: 0,
        }
    }

    /// Runs until every participant has completed all of its operations; their completions.
    pub(crate) fn run(&mut self, operations: usize) -> Vec<Vec<Completion>> {
        while !self.is_done(operations) {
            assert!(self.now < 1_000_000, "it never ends: {self:?}");
            self.step();
        }
        // What still travels changes nothing any more.
        for _ in 0..500 {
            self.step();
        }
        let leaves = self.leaves.iter().map(Leaf::completions);
        [self.root.completions()]
            .into_iter()
            .chain(leaves)
            .map(<[_]>::to_vec)
            .collect()
    }

    fn is_done(&self, operations: usize) -> bool {
        self.root.completions().len() == operations
            && self
                .leaves
                .iter()
                .all(|leaf| leaf.completions().len() == operations)
    }

    fn step(&mut self) {
        let sent = self.root.work(self.now);
        self.multicast(sent);
        for leaf in 0..self.leaves.len() {
            let sent = self.leaves[leaf].work(self.now);
            self.send_up(leaf, sent);
            for id in self.leaves[leaf].overdue(self.now) {
                // A get of the root's memory: the NIC sees to it that it arrives.
                if let Some(saved) = self.root.saved(id) {
                    let sent = self.leaves[leaf].receive(id, &saved);
                    self.send_up(leaf, sent);
                }
            }
        }
        for switch in 0..self.switches.len() {
            let up = self.switches[switch].up;
            for (id, packet) in self.switches[switch].engines.expire(self.now) {
                self.send(up, true, id, &packet);
            }
        }
        while let Some(entry) = self.travelling.first_entry() {
            if entry.key().0 > self.now {
                break;
            }
            let travelling = entry.remove();
            self.arrive(&travelling);
        }
        self.now += 1;
    }

    fn multicast(&mut self, sent: Sent) {
        for (id, packet) in sent {
            self.send(Place::Switch(0), false, id, &packet);
        }
    }

    fn send_up(&mut self, leaf: usize, sent: Sent) {
        for (id, packet) in sent {
            self.send(Place::Switch(self.homes[leaf]), true, id, &packet);
        }
    }

    fn arrive(&mut self, travelling: &Travelling) {
        let packet = ReductionPacket::decode(&travelling.bytes).expect("49 bytes");
        let id = travelling.reduction;
        match (travelling.to, travelling.upward) {
            (Place::Root, _) => {
                self.at_root += 1;
                let sent = self.root.receive(id, &packet);
                self.multicast(sent);
            }
            (Place::Leaf(leaf), _) => {
                let sent = self.leaves[leaf].receive(id, &packet);
                self.send_up(leaf, sent);
            }
            (Place::Switch(switch), true) => {
                let up = self.switches[switch].up;
                if let Some(packet) = self.switches[switch].engines.contribute(id, &packet) {
                    self.send(up, true, id, &packet);
                }
            }
            (Place::Switch(switch), false) => {
                self.switches[switch].engines.arm(id, &packet, self.now);
                for to in self.switches[switch].down.clone() {
                    self.send(to, false, id, &packet);
                }
            }
        }
    }

    fn send(&mut self, to: Place, upward: bool, reduction: u8, packet: &ReductionPacket) {
        let faulty = self.now < self.faults.until;
        let copies = 1 + u64::from(faulty && self.chance(self.faults.duplication));
        for _ in 0..copies {
            if faulty && self.chance(self.faults.loss) {
                continue;
            }
            let late = if faulty {
                self.next() % (self.faults.delay + 1)
            } else {
                0
            };
            self.order += 1;
            let bytes = packet.encode();
            let travelling = Travelling {
                to,
                upward,
                reduction,
                bytes,
            };
            self.travelling
                .insert((self.now + 1 + late, self.order), travelling);
        }
    }

    fn chance(&mut self, of: u8) -> bool {
        self.next() % 256 < of.into()
    }

    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
