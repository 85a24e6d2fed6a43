//! Multicast trees: what the root sends goes to all other members, and what a member sends goes to
//! the root.

use cxi_hw::reduction::{REDUCTIONS, ReductionPacket};

use super::switch::Switch;
use crate::packet::{Body, Data, Multicast, Packet};
use crate::reduction::ReductionEngines;

/// A multicast tree over NICs, as a fabric manager makes it.
#[derive(Clone, Debug)]
#[must_use]
pub struct MulticastTree {
    root: u32,
    members: Vec<u32>,
    timeout: u64,
    ports: usize,
}

impl MulticastTree {
    /// A tree over NIC addresses. Whether the root is one of the members makes no difference.
    pub fn new(root: u32, members: impl IntoIterator<Item = u32>) -> Self {
        let mut members: Vec<_> = members.into_iter().filter(|nid| *nid != root).collect();
        members.sort_unstable();
        members.dedup();
        Self { root, members, timeout: 20_000, ports: 16 }
    }

    /// Sets how many ticks an armed engine waits for contributions. The default is 20,000.
    pub fn timeout(self, ticks: u64) -> Self {
        Self { timeout: ticks, ..self }
    }

    /// Sets how many NICs or switches are below a switch: at least 2, by default 16. If there are
    /// more, there are further levels of switches above.
    pub fn ports(self, ports: usize) -> Self {
        Self { ports: ports.max(2), ..self }
    }
}

/// A switch of a tree, and what is below it.
#[derive(Debug)]
struct Node {
    engines: ReductionEngines,
    parent: Option<usize>,
    switches: Vec<usize>,
    nics: Vec<u32>,
    /// For each reduction, the packet that brought the last contribution that is held back.
    last: [Option<Packet>; REDUCTIONS],
}

/// The switches of a tree; the last one is next to the root.
#[derive(Debug)]
pub(super) struct Tree {
    root: u32,
    nodes: Vec<Node>,
}

/// Next hop of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hop {
    /// To the NIC that it is for.
    Nic,
    /// To a switch of its tree, toward the root.
    Up(usize),
    /// The same, away from the root.
    Down(usize),
}

impl Tree {
    pub(super) fn new(tree: &MulticastTree) -> Self {
        let mut nodes: Vec<Node> = Vec::new();
        let mut add = |switches: Vec<usize>, nics: &[u32], participants: usize| {
            let number = nodes.len();
            for child in &switches {
                nodes[*child].parent = Some(number);
            }
            // Participants count from 0, so switches take their numbers from the other end.
            let sender = u32::MAX - u32::try_from(number).unwrap_or(0);
            let participants = u32::try_from(participants).unwrap_or(u32::MAX);
            nodes.push(Node {
                engines: ReductionEngines::new(sender, participants, tree.timeout),
                parent: None,
                switches,
                nics: nics.to_vec(),
                last: Default::default(),
            });
            (number, participants as usize)
        };
        let edges = tree.members.chunks(tree.ports);
        let mut level: Vec<_> = edges.map(|nics| add(vec![], nics, nics.len())).collect();
        while level.len() > 1 {
            let above = level.chunks(tree.ports).map(|below| {
                let switches = below.iter().map(|(number, _)| *number).collect();
                add(switches, &[], below.iter().map(|(_, count)| count).sum())
            });
            level = above.collect();
        }
        Self { root: tree.root, nodes }
    }

    /// Returns whether contributions are held back.
    fn holds(&self) -> bool {
        self.nodes.iter().any(|node| node.engines.holds())
    }

    /// From a switch toward the root.
    fn above(&self, number: usize, mut packet: Packet) -> (Hop, Packet) {
        packet.to = self.root;
        let parent = self.nodes.get(number).and_then(|node| node.parent);
        (parent.map_or(Hop::Nic, Hop::Up), packet)
    }

    /// Enters the tree from outside; `None` for a NIC that is not a member.
    fn enter(&self, mut packet: Packet) -> Option<(Hop, Packet)> {
        if packet.from == self.root {
            let first = self.nodes.len().checked_sub(1)?;
            return Some((Hop::Down(first), packet));
        }
        let edge = |node: &Node| node.nics.contains(&packet.from);
        let edge = self.nodes.iter().position(edge)?;
        packet.to = self.root;
        Some((Hop::Up(edge), packet))
    }

    /// Takes a contribution to a switch.
    fn up(&mut self, number: usize, packet: Packet) -> Option<(Hop, Packet)> {
        let (multicast, contribution) = contents(&packet)?;
        let Some(contribution) = contribution else { return Some(self.above(number, packet)) };
        let node = self.nodes.get_mut(number)?;
        let reduction = multicast.reduction;
        let last = node.last.get_mut(usize::from(reduction))?;
        let Some(merged) = node.engines.contribute(reduction, &contribution) else {
            *last = Some(packet);
            return None;
        };
        Some(self.above(number, with(packet, &merged)))
    }

    /// Takes a packet of the root to a switch.
    fn down(&mut self, number: usize, packet: &Packet, now: u64) -> Vec<(Hop, Packet)> {
        let Some(node) = self.nodes.get_mut(number) else { return Vec::new() };
        if let Some((multicast, Some(order))) = contents(packet) {
            node.engines.arm(multicast.reduction, &order, now);
        }
        let switches = node.switches.iter().map(|child| (Hop::Down(*child), packet.clone()));
        let nics = node.nics.iter().map(|nid| {
            let packet = Packet { to: *nid, ..packet.clone() };
            (Hop::Nic, packet)
        });
        switches.chain(nics).collect()
    }

    /// Returns the packets that switches send on because the time of an engine is over.
    fn expire(&mut self, now: u64) -> Vec<(Hop, Packet)> {
        let mut sent = Vec::new();
        for number in 0..self.nodes.len() {
            let node = &mut self.nodes[number];
            for (reduction, merged) in node.engines.expire(now) {
                let last = self.nodes[number].last[usize::from(reduction)].take();
                let packet = last.map(|packet| self.above(number, with(packet, &merged)));
                sent.extend(packet);
            }
        }
        sent
    }
}

impl Switch {
    /// Sends a packet of a NIC to a tree. If there is no such tree, the packet is lost, and no
    /// sender waits for an answer to a multicast.
    pub(super) fn multicast(&mut self, packet: Packet) {
        let Some((id, from)) = packet.multicast().map(|it| (it.id, packet.from)) else { return };
        let Some((hop, packet)) = self.trees.get(&id).and_then(|tree| tree.enter(packet)) else {
            return;
        };
        if !matches!(hop, Hop::Up(_)) || !self.is_lost(from, packet.to) {
            self.pass(hop, packet);
        }
    }

    /// Handles a packet that has come to a switch of its tree.
    pub(super) fn climb(&mut self, hop: Hop, packet: Packet) {
        let now = self.now;
        let tree = packet.multicast().map(|multicast| multicast.id);
        let Some(tree) = tree.and_then(|id| self.trees.get_mut(&id)) else { return };
        let sent = match hop {
            Hop::Up(number) => tree.up(number, packet).into_iter().collect(),
            Hop::Down(number) => tree.down(number, &packet, now),
            Hop::Nic => Vec::new(),
        };
        self.pass_all(sent);
    }

    /// Ends the wait of engines whose time is over.
    pub(super) fn expire(&mut self) {
        let now = self.now;
        let sent: Vec<_> = self.trees.values_mut().flat_map(|tree| tree.expire(now)).collect();
        self.pass_all(sent);
    }

    /// Returns whether trees hold contributions back.
    pub(super) fn holds(&self) -> bool {
        self.trees.values().any(Tree::holds)
    }

    fn pass_all(&mut self, sent: Vec<(Hop, Packet)>) {
        for (hop, packet) in sent {
            self.pass(hop, packet);
        }
    }
}

impl Packet {
    fn multicast(&self) -> Option<Multicast> {
        match &self.body {
            Body::Request(request, _) => request.multicast,
            Body::Reply(_) => None,
        }
    }
}

/// The reduction that a packet belongs to, and what it contributes if engines can read it.
fn contents(packet: &Packet) -> Option<(Multicast, Option<ReductionPacket>)> {
    let Body::Request(request, Data::Inline(bytes)) = &packet.body else { return None };
    Some((request.multicast?, ReductionPacket::decode(bytes)))
}

/// The packet with other contents of the same length.
fn with(mut packet: Packet, merged: &ReductionPacket) -> Packet {
    if let Body::Request(_, data) = &mut packet.body {
        *data = Data::Inline(merged.encode().to_vec());
    }
    packet
}
