//! The state of a fabric: its ports, the packets that wait there, and its faults.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::FabricFaults;
use super::tree::{Hop, Tree};
use crate::SplitMix64;
use crate::packet::Packet;

/// All switches of a fabric as one.
#[derive(Debug, Default)]
pub(super) struct Switch {
    pub(super) unreliable: bool,
    /// Sets of NIC addresses that cannot reach each other.
    pub(super) cuts: Vec<(BTreeSet<u32>, BTreeSet<u32>)>,
    pub(super) now: u64,
    /// By their numbers.
    pub(super) trees: BTreeMap<u32, Tree>,
    ports: BTreeMap<u32, Port>,
    attached: u32,
    faults: FabricFaults,
    random: SplitMix64,
    /// Packets that are late, by the time of their arrival.
    late: BTreeMap<u64, Vec<(Hop, Packet)>>,
}

/// Port of a NIC that is there, or was.
#[derive(Debug, Default)]
pub(super) struct Port {
    pub(super) down: bool,
    pub(super) loss: u16,
    /// Ticks by which every packet is late.
    pub(super) delay: u16,
    /// Packets for the NIC; `None` without a NIC.
    inbox: Option<VecDeque<Packet>>,
}

impl Switch {
    pub(super) fn port(&mut self, nid: u32) -> &mut Port {
        self.ports.entry(nid).or_default()
    }

    pub(super) fn attach(&mut self, nid: u32) -> u32 {
        self.port(nid).inbox.get_or_insert_default();
        self.attached = self.attached.wrapping_add(1);
        self.attached
    }

    pub(super) fn detach(&mut self, nid: u32) {
        self.port(nid).inbox = None;
    }

    pub(super) fn is_attached(&self, nid: u32) -> bool {
        self.ports.get(&nid).is_some_and(|port| port.inbox.is_some())
    }

    pub(super) fn set_faults(&mut self, faults: FabricFaults) {
        self.random = SplitMix64::new(faults.seed);
        self.faults = faults;
    }

    pub(super) fn is_faulty(&self) -> bool {
        self.unreliable
            || !self.faults.none()
            || !self.cuts.is_empty()
            || self.ports.values().any(|port| port.down || port.loss > 0 || port.delay > 0)
    }

    /// Returns whether a partition or a link that is down separates two NICs.
    pub(super) fn is_cut(&self, from: u32, to: u32) -> bool {
        let down = |nid| self.ports.get(&nid).is_some_and(|port| port.down);
        let apart = |(one, other): &(BTreeSet<u32>, BTreeSet<u32>)| {
            (one.contains(&from) && other.contains(&to))
                || (one.contains(&to) && other.contains(&from))
        };
        from != to && (down(from) || down(to) || self.cuts.iter().any(apart))
    }

    pub(super) fn waiting(&self) -> Vec<u32> {
        let waits = |port: &Port| port.inbox.as_ref().is_some_and(|inbox| !inbox.is_empty());
        self.ports.iter().filter(|(_, port)| waits(port)).map(|(nid, _)| *nid).collect()
    }

    pub(super) fn is_idle(&self) -> bool {
        !self.needs_time() && self.waiting().is_empty()
    }

    /// Returns whether packets wait for a tick.
    pub(super) fn needs_time(&self) -> bool {
        !self.late.is_empty() || self.holds()
    }

    pub(super) fn tick(&mut self) {
        self.now += 1;
        let later = self.now + 1;
        let rest = self.late.split_off(&later);
        let due = std::mem::replace(&mut self.late, rest);
        for (hop, packet) in due.into_values().flatten() {
            self.deliver(hop, packet);
        }
        self.expire();
    }

    pub(super) fn has_packets(&self, nid: u32) -> bool {
        let inbox = self.ports.get(&nid).and_then(|port| port.inbox.as_ref());
        inbox.is_some_and(|inbox| !inbox.is_empty())
    }

    pub(super) fn receive(&mut self, nid: u32) -> Option<Packet> {
        self.ports.get_mut(&nid)?.inbox.as_mut()?.pop_front()
    }

    pub(super) fn send(&mut self, packet: Packet) -> Option<Packet> {
        if !self.is_attached(packet.to) {
            return Some(packet);
        }
        self.pass(Hop::Nic, packet);
        None
    }

    /// Passes a packet on once, twice or not at all.
    pub(super) fn pass(&mut self, hop: Hop, packet: Packet) {
        let faults = self.faults;
        if self.chance(faults.duplication) {
            self.pass_once(hop, packet.clone(), &faults);
        }
        self.pass_once(hop, packet, &faults);
    }

    fn pass_once(&mut self, hop: Hop, packet: Packet, faults: &FabricFaults) {
        let (from, to) = (packet.from, packet.to);
        if (hop == Hop::Nic && self.is_lost(from, to)) || self.chance(faults.loss) {
            return;
        }
        let mut delay = match faults.delay {
            0 => 0,
            most => self.random.draw() % (u64::from(most) + 1),
        };
        if hop == Hop::Nic && from != to {
            delay += self.port_delay(from) + self.port_delay(to);
        }
        if delay > 0 {
            self.late.entry(self.now + delay).or_default().push((hop, packet));
            return;
        }
        let overtakes = self.chance(faults.reordering);
        self.deliver(hop, packet);
        if overtakes
            && hop == Hop::Nic
            && let Some(inbox) = &mut self.port(to).inbox
            && let Some(before) = inbox.len().checked_sub(2)
        {
            inbox.swap(before, before + 1);
        }
    }

    /// Returns whether a packet from one NIC to another is lost: they are separated, or one of
    /// their ports drops it.
    pub(super) fn is_lost(&mut self, from: u32, to: u32) -> bool {
        self.is_cut(from, to) || self.is_dropped(from, to)
    }

    /// Returns whether one of the two ports drops a packet.
    fn is_dropped(&mut self, from: u32, to: u32) -> bool {
        let mut drops = |nid| {
            let loss = self.ports.get(&nid).map_or(0, |port| port.loss);
            self.chance(loss)
        };
        from != to && (drops(from) || drops(to))
    }

    fn port_delay(&self, nid: u32) -> u64 {
        self.ports.get(&nid).map_or(0, |port| port.delay.into())
    }

    fn deliver(&mut self, hop: Hop, packet: Packet) {
        if hop != Hop::Nic {
            self.climb(hop, packet);
        } else if let Some(inbox) = &mut self.port(packet.to).inbox {
            inbox.push_back(packet);
        }
    }

    fn chance(&mut self, of: u16) -> bool {
        of > 0 && self.random.draw() % 65_536 < of.into()
    }
}
