//! The fabric: packets between NICs, by NIC address.

mod switch;
mod tree;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::packet::Packet;
use switch::Switch;
pub use tree::MulticastTree;
use tree::Tree;

/// Faults of a fabric, each with a chance per packet out of 65,536. By default there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FabricFaults {
    /// The seed of the random numbers.
    pub seed: u64,
    /// A packet is lost.
    pub loss: u16,
    /// A packet arrives twice.
    pub duplication: u16,
    /// A packet overtakes the previous one.
    pub reordering: u16,
    /// A packet is late by a random number of ticks, at most this many.
    pub delay: u16,
}

impl FabricFaults {
    fn none(&self) -> bool {
        let Self { seed: _, loss, duplication, reordering, delay } = *self;
        loss == 0 && duplication == 0 && reordering == 0 && delay == 0
    }
}

/// Network between the NICs of a node, or of several nodes in one server. Clones are the same
/// fabric.
///
/// A packet goes to the NIC whose address it names. Its VNI is the one of the sender's
/// communication profile, and the receiver takes it only if a domain of it receives that VNI.
#[derive(Clone, Debug, Default)]
pub struct Fabric(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// Copies of the switch's state, to read without its lock.
    faulty: AtomicBool,
    needs_time: AtomicBool,
    switch: Mutex<Switch>,
}

impl Fabric {
    /// A fabric without NICs that loses nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A fabric without NICs that may lose packets at any time, because NICs, links and switches
    /// come and go. NICs keep what they send until it is answered, so that an operation ends even
    /// if something fails while it is under way. NICs notice only at a [`tick`](Self::tick).
    #[must_use]
    pub fn unreliable() -> Self {
        let fabric = Self::default();
        fabric.change(|switch| switch.unreliable = true);
        fabric
    }

    /// Sets what happens to packets from now on. Unless the fabric is [`unreliable`], operations
    /// that are under way are not sent again.
    ///
    /// [`unreliable`]: Self::unreliable
    pub fn set_faults(&self, faults: FabricFaults) {
        self.change(|switch| switch.set_faults(faults));
    }

    /// Takes the link of a NIC up or down. While it is down, packets from and to other NICs are
    /// lost; those of the NIC to itself are not.
    pub fn set_link(&self, nid: u32, up: bool) {
        self.change(|switch| switch.port(nid).down = !up);
    }

    /// Lets the switch port of a NIC drop packets in both directions, with a chance out of 65,536.
    pub fn set_port_loss(&self, nid: u32, loss: u16) {
        self.change(|switch| switch.port(nid).loss = loss);
    }

    /// Lets the switch port of a NIC delay packets in both directions, each by this many ticks.
    pub fn set_port_delay(&self, nid: u32, ticks: u16) {
        self.change(|switch| switch.port(nid).delay = ticks);
    }

    /// Partitions two sets of NIC addresses: packets between them are lost until
    /// [`heal`](Self::heal). Several partitions may be in force at once.
    pub fn partition(
        &self,
        one: impl IntoIterator<Item = u32>,
        other: impl IntoIterator<Item = u32>,
    ) {
        let cut = (one.into_iter().collect(), other.into_iter().collect());
        self.change(|switch| switch.cuts.push(cut));
    }

    /// Ends all partitions.
    pub fn heal(&self) {
        self.change(|switch| switch.cuts.clear());
    }

    /// Makes a multicast tree, or replaces the one with the same number. From now on its reductions
    /// go through [engines](crate::reduction).
    ///
    /// Packets that a NIC sends to a tree that does not exist, or that it is not in, are lost. So
    /// are those that the fabric loses: they get no answer, and are not sent again.
    pub fn set_tree(&self, id: u16, tree: &MulticastTree) {
        self.switch().trees.insert(id.into(), Tree::new(tree));
    }

    /// Removes a multicast tree, and the packets on their way there.
    pub fn remove_tree(&self, id: u16) {
        self.change(|switch| {
            switch.trees.remove(&id.into());
        });
    }

    /// Returns whether packets wait for a [`tick`](Self::tick), because they are late or a tree's
    /// engines hold them back.
    #[must_use]
    pub fn needs_time(&self) -> bool {
        self.0.needs_time.load(Ordering::Acquire)
    }

    /// Returns whether a packet from one NIC reaches another one, random faults aside.
    #[must_use]
    pub fn reaches(&self, from: u32, to: u32) -> bool {
        let switch = self.switch();
        switch.is_attached(to) && !switch.is_cut(from, to)
    }

    /// NIC addresses that have packets, lowest first.
    #[must_use]
    pub fn waiting(&self) -> Vec<u32> {
        self.switch().waiting()
    }

    /// Returns whether no packet is on its way.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.switch().is_idle()
    }

    /// Lets time pass, which delivers late packets and those that engines have held back. NICs that
    /// wait for an answer notice when they run, and send lost packets again.
    pub fn tick(&self) {
        self.change(Switch::tick);
    }

    /// Ticks so far.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.switch().now
    }

    /// Attaches a NIC. Returns a number that no NIC has had before: a NIC that comes back under the
    /// same address counts as another one.
    pub(crate) fn attach(&self, nid: u32) -> u32 {
        self.switch().attach(nid)
    }

    pub(crate) fn detach(&self, nid: u32) {
        self.switch().detach(nid);
    }

    /// Returns whether packets may get lost or come twice.
    pub(crate) fn is_faulty(&self) -> bool {
        self.0.faulty.load(Ordering::Acquire)
    }

    /// Sends a packet. Gives it back if there is no such NIC.
    pub(crate) fn send(&self, packet: Packet) -> Option<Packet> {
        let mut switch = self.switch();
        let back = switch.send(packet);
        if switch.needs_time() {
            self.0.needs_time.store(true, Ordering::Release);
        }
        back
    }

    /// Sends a packet to a multicast tree.
    pub(crate) fn multicast(&self, packet: Packet) {
        self.change(|switch| switch.multicast(packet));
    }

    pub(crate) fn has_packets(&self, nid: u32) -> bool {
        self.switch().has_packets(nid)
    }

    pub(crate) fn receive(&self, nid: u32) -> Option<Packet> {
        self.switch().receive(nid)
    }

    fn change(&self, change: impl FnOnce(&mut Switch)) {
        let mut switch = self.switch();
        change(&mut switch);
        self.0.faulty.store(switch.is_faulty(), Ordering::Release);
        let needs_time = switch.needs_time();
        self.0.needs_time.store(needs_time, Ordering::Release);
    }

    fn switch(&self) -> MutexGuard<'_, Switch> {
        self.0.switch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
