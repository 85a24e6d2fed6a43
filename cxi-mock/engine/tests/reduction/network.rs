//! NICs on a fabric that loses, delays and repeats, and a tree of switches over them.

use cxi_engine::{Fabric, FabricFaults, MulticastTree, PortalOptions, Settings};
use cxi_hw::reduction::{ReductionPacket, Sequence};
use cxi_hw::{DmaFlags, DmaOp, EventType, FabricAddress, IdcHeader, TargetFlags};

use crate::participant::{Completion, Contribution, Leaf, Root, Sent};
use crate::rig::{self, BUFFER, BUFFER_LEN, Rig, TARGET_EQ, TXQ, TargetWith};

/// The tree.
pub(crate) const TREE: u16 = 0x1234;
/// The NIC of the root; leaves follow.
const FIRST: u32 = 0x100;

/// Places of participants and switches.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) leaves: usize,
    /// Number of ports below a switch.
    pub(crate) ports: usize,
    /// Time that an engine waits.
    pub(crate) timeout: u64,
    /// The first sequence number.
    pub(crate) first: Sequence,
}

/// A NIC with a PtlTE that takes what comes from the tree.
pub(crate) fn member(fabric: &Fabric, nid: u32) -> Rig {
    let mut nic = Rig::on(fabric.clone(), nid, Settings::default());
    nic.portal(rig::PORTAL, 0, PortalOptions::USE_LONG_EVENT);
    nic.engine.map_multicast(1, TREE.into(), rig::PORTAL);
    nic.append(
        &rig::entry(1, BUFFER, BUFFER_LEN as u64)
            .with_flags(
                TargetFlags::OP_PUT | TargetFlags::MANAGE_LOCAL | TargetFlags::EVENT_LINK_DISABLE,
            )
            .with_min_free(64),
    );
    let quiet = DmaFlags::EVENT_SEND_DISABLE | DmaFlags::EVENT_SUCCESS_DISABLE;
    let flags = DmaFlags::RESTRICTED | DmaFlags::REDUCTION | quiet;
    nic.submit(TXQ, &[&rig::c_state(flags).encode()]);
    nic
}

/// Sends a packet to the tree.
pub(crate) fn send(nic: &mut Rig, reduction: u8, packet: &ReductionPacket) {
    // As libfabric has it: magic number, reduction, tree.
    let cookie = 0x677d << 16 | u32::from(reduction) << 13 | u32::from(TREE);
    let packet = ReductionPacket { cookie, ..*packet };
    let head = IdcHeader { dfa: FabricAddress::multicast(TREE, reduction), ..IdcHeader::default() };
    let put = rig::immediate(DmaOp::PUT, &head.encode(), &packet.encode());
    nic.submit(TXQ, &[&put]);
}

/// Returns the received results, with the reduction IDs.
pub(crate) fn received(nic: &mut Rig) -> Sent {
    nic.engine.run_until_idle();
    let mut packets = Sent::new();
    while let Some(event) = nic.try_event(TARGET_EQ) {
        assert_eq!(event.kind(), EventType::PUT);
        let event = event.long();
        let bytes = nic.memory.bytes(event.start, event.mlength as usize);
        let packet = ReductionPacket::decode(&bytes).expect("49 bytes");
        packets.push(((packet.cookie >> 13) as u8 & 7, packet));
    }
    packets
}

/// A root, leaves, and their NICs: the root's first.
pub(crate) struct Network {
    fabric: Fabric,
    root: Root,
    leaves: Vec<Leaf>,
    nics: Vec<Rig>,
    /// Faults end then: what is lost forever cannot end.
    until: u64,
    now: u64,
    pub(crate) at_root: u64,
}

impl Network {
    /// The work is the root's first, and then each leaf's.
    pub(crate) fn new(
        shape: &Shape,
        work: &[Vec<Contribution>],
        faults: FabricFaults,
        until: u64,
    ) -> Self {
        let fabric = Fabric::unreliable();
        let addresses = || FIRST..FIRST + work.len() as u32;
        let tree = MulticastTree::new(FIRST, addresses());
        fabric.set_tree(TREE, &tree.timeout(shape.timeout).ports(shape.ports));
        let nics = addresses().map(|nid| member(&fabric, nid)).collect();
        fabric.set_faults(faults);
        let leaf = |(index, work): (usize, &Vec<Contribution>)| {
            Leaf::new(index as u32 + 1, work, shape.first)
        };
        Self {
            root: Root::new(work.len() as u32, &work[0], shape.first),
            leaves: work[1..].iter().enumerate().map(leaf).collect(),
            nics,
            fabric,
            until,
            now: 0,
            at_root: 0,
        }
    }

    /// Runs until every participant has completed all of its operations; their completions.
    pub(crate) fn run(&mut self, operations: usize) -> Vec<Vec<Completion>> {
        while !self.is_done(operations) {
            assert!(self.now < 100_000, "it never ends: {:?}", self.root);
            self.step();
        }
        // What still travels changes nothing any more.
        for _ in 0..200 {
            self.step();
        }
        let leaves = self.leaves.iter().map(Leaf::completions);
        [self.root.completions()].into_iter().chain(leaves).map(<[_]>::to_vec).collect()
    }

    fn is_done(&self, operations: usize) -> bool {
        let ended = |completions: &[Completion]| completions.len() == operations;
        ended(self.root.completions()) && self.leaves.iter().all(|leaf| ended(leaf.completions()))
    }

    fn step(&mut self) {
        if self.now == self.until {
            self.fabric.set_faults(FabricFaults::default());
        }
        let sent = self.root.work(self.now);
        self.send(0, sent);
        for leaf in 0..self.leaves.len() {
            let mut sent = self.leaves[leaf].work(self.now);
            for id in self.leaves[leaf].overdue(self.now) {
                // A get of the root's memory: the NIC sees to it that it arrives.
                if let Some(saved) = self.root.saved(id) {
                    sent.extend(self.leaves[leaf].receive(id, &saved));
                }
            }
            self.send(leaf + 1, sent);
        }
        self.fabric.tick();
        for nic in 0..self.nics.len() {
            for (id, packet) in received(&mut self.nics[nic]) {
                let sent = match nic.checked_sub(1) {
                    None => {
                        self.at_root += 1;
                        self.root.receive(id, &packet)
                    }
                    Some(leaf) => self.leaves[leaf].receive(id, &packet),
                };
                self.send(nic, sent);
            }
        }
        self.now += 1;
    }

    fn send(&mut self, nic: usize, sent: Sent) {
        for (id, packet) in sent {
            send(&mut self.nics[nic], id, &packet);
        }
    }
}
