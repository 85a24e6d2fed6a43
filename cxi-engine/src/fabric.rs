//! The fabric: packets between NICs, by NIC address.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::packet::Packet;

/// What may happen to a packet, each with a chance out of 65,536. Nothing, by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Where the random numbers start.
    pub seed: u64,
    /// It is lost.
    pub loss: u16,
    /// It comes twice.
    pub duplication: u16,
    /// It comes before the one before it.
    pub reordering: u16,
    /// It comes this many ticks later, from none to the number.
    pub delay: u16,
}

impl Faults {
    fn none(&self) -> bool {
        let Self {
            seed: _,
            loss,
            duplication,
            reordering,
            delay,
        } = *self;
        loss == 0 && duplication == 0 && reordering == 0 && delay == 0
    }
}

/// What connects the NICs of a node, or of several nodes in one server. Clones are the same fabric.
#[derive(Clone, Debug, Default)]
pub struct Fabric(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// A copy of what the switch knows, to ask without its lock.
    faulty: AtomicBool,
    switch: Mutex<Switch>,
}

#[derive(Debug, Default)]
struct Switch {
    ports: BTreeMap<u32, VecDeque<Packet>>,
    faults: Faults,
    random: u64,
    now: u64,
    /// Packets that are late, by when they come.
    late: BTreeMap<u64, Vec<Packet>>,
}

impl Fabric {
    /// A fabric without NICs that loses nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets what happens to packets from now on. Operations that are under way are not sent again.
    pub fn set_faults(&self, faults: Faults) {
        let mut switch = self.switch();
        switch.random = faults.seed;
        switch.faults = faults;
        self.0.faulty.store(!faults.none(), Ordering::Release);
    }

    /// NIC addresses that have packets, lowest first.
    #[must_use]
    pub fn waiting(&self) -> Vec<u32> {
        let switch = self.switch();
        let ports = switch.ports.iter();
        ports
            .filter(|(_, inbox)| !inbox.is_empty())
            .map(|(nid, _)| *nid)
            .collect()
    }

    /// Whether no packet is on its way.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let switch = self.switch();
        switch.late.is_empty() && switch.ports.values().all(VecDeque::is_empty)
    }

    /// Lets time pass, which brings late packets. NICs that wait for an answer see it when they
    /// run, and send again what was lost.
    pub fn tick(&self) {
        let mut switch = self.switch();
        switch.now += 1;
        let later = switch.now + 1;
        let rest = switch.late.split_off(&later);
        let due = std::mem::replace(&mut switch.late, rest);
        for packet in due.into_values().flatten() {
            switch.deliver(packet);
        }
    }

    /// Ticks so far.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.switch().now
    }

    pub(crate) fn attach(&self, nid: u32) {
        self.switch().ports.entry(nid).or_default();
    }

    pub(crate) fn detach(&self, nid: u32) {
        self.switch().ports.remove(&nid);
    }

    /// Whether packets may get lost or come twice.
    pub(crate) fn is_faulty(&self) -> bool {
        self.0.faulty.load(Ordering::Acquire)
    }

    /// Sends a packet. Says whether there is such a NIC.
    pub(crate) fn send(&self, packet: Packet) -> bool {
        let mut switch = self.switch();
        if !switch.ports.contains_key(&packet.to) {
            return false;
        }
        if switch.faults.none() {
            switch.deliver(packet);
            return true;
        }
        let faults = switch.faults;
        if switch.chance(faults.duplication) {
            switch.send_faulty(packet.clone(), &faults);
        }
        switch.send_faulty(packet, &faults);
        true
    }

    pub(crate) fn receive(&self, nid: u32) -> Option<Packet> {
        self.switch().ports.get_mut(&nid)?.pop_front()
    }

    fn switch(&self) -> MutexGuard<'_, Switch> {
        self.0.switch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Switch {
    fn send_faulty(&mut self, packet: Packet, faults: &Faults) {
        if self.chance(faults.loss) {
            return;
        }
        let delay = match faults.delay {
            0 => 0,
            most => self.next() % (u64::from(most) + 1),
        };
        if delay > 0 {
            self.late.entry(self.now + delay).or_default().push(packet);
            return;
        }
        let overtakes = self.chance(faults.reordering);
        let to = packet.to;
        self.deliver(packet);
        if overtakes
            && let Some(inbox) = self.ports.get_mut(&to)
            && let Some(before) = inbox.len().checked_sub(2)
        {
            inbox.swap(before, before + 1);
        }
    }

    fn deliver(&mut self, packet: Packet) {
        if let Some(inbox) = self.ports.get_mut(&packet.to) {
            inbox.push_back(packet);
        }
    }

    fn chance(&mut self, of: u16) -> bool {
        of > 0 && self.next() % 65_536 < of.into()
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
