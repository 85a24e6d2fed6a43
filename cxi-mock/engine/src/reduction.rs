//! The reduction engines of a switch: they merge what participants of a multicast tree send toward
//! its root. A [`Fabric`](crate::Fabric) has them for each [`MulticastTree`](crate::MulticastTree).
//!
//! A tree has one root, whose software finishes each reduction, and switches on the way to it. A
//! switch has eight engines for a tree, one for each reduction id. The root *arms* them for a
//! sequence number when it multicasts the result of the previous reduction, or an order to
//! contribute again.
//!
//! An armed engine holds back contributions with that number and merges them. It sends one packet
//! on when it has as many contributions as there are participants below, or when its time is over.
//! All other packets pass unchanged. No result depends on the engines: they only spare the root
//! packets.
//!
//! A packet that arrives twice counts once, because its sender is known. Links of the real fabric
//! do not deliver twice, but a faulty fabric of this model does.
//!
//! ```
//! use cxi_engine::reduction::ReductionEngines;
//! use cxi_hw::reduction::{ReduceOp, ReductionPacket, Sequence};
//!
//! let mut switch = ReductionEngines::new(100, 2, 1000);
//! let order = ReductionPacket { sequence: Sequence::new(1), arm: true, ..Default::default() };
//! switch.arm(0, &order, 0);
//! let contribution = |sender| ReductionPacket {
//!     sender,
//!     sequence: Sequence::new(1),
//!     op: ReduceOp::Sum.number(),
//!     count: 1,
//!     payload: [20, 0, 0, 0],
//!     ..Default::default()
//! };
//! assert_eq!(switch.contribute(0, &contribution(1)), None);
//! let merged = switch.contribute(0, &contribution(2)).unwrap();
//! assert_eq!((merged.count, merged.payload[0]), (2, 40));
//! ```

use std::collections::BTreeSet;

use cxi_hw::reduction::{REDUCTIONS, ReduceOp, ReductionPacket, ResultCode, Sequence};

/// Engines of a switch for a tree.
#[derive(Clone, Debug)]
pub struct ReductionEngines {
    number: u32,
    participants: u32,
    timeout: u64,
    engines: [ReductionEngine; REDUCTIONS],
}

#[derive(Clone, Debug, Default)]
struct ReductionEngine {
    armed: Option<Armed>,
    /// The newest number that was armed. Orders that are late or repeated arm nothing.
    last_armed: Option<Sequence>,
    /// The newest number under which a packet was sent, and the senders.
    newest: Option<Sequence>,
    seen: BTreeSet<u32>,
}

#[derive(Clone, Debug)]
struct Armed {
    sequence: Sequence,
    deadline: u64,
    merged: Option<ReductionPacket>,
}

impl ReductionEngines {
    /// The engines of a switch with this many participants below it. Merged packets are sent under
    /// `number`, which no participant and no other switch of the tree has. An engine waits for
    /// `timeout` from the time when it is armed.
    #[must_use]
    pub fn new(number: u32, participants: u32, timeout: u64) -> Self {
        Self { number, participants, timeout, engines: Default::default() }
    }

    /// Handles a packet from the root, which may arm an engine or clear it. Reduction ids are taken
    /// modulo 8.
    pub fn arm(&mut self, reduction: u8, packet: &ReductionPacket, now: u64) {
        let engine = &mut self.engines[usize::from(reduction) % REDUCTIONS];
        let sequence = packet.sequence;
        if !packet.arm {
            return;
        }
        if sequence == Sequence::CLEAR {
            engine.armed = None;
        } else if engine.last_armed.is_none_or(|last| sequence.is_newer_than(last)) {
            engine.last_armed = Some(sequence);
            engine.armed = Some(Armed { sequence, deadline: now + self.timeout, merged: None });
        }
    }

    /// Handles a packet from below. Returns the packet that goes on toward the root, if any.
    pub fn contribute(
        &mut self,
        reduction: u8,
        packet: &ReductionPacket,
    ) -> Option<ReductionPacket> {
        let engine = &mut self.engines[usize::from(reduction) % REDUCTIONS];
        if engine.newest.is_none_or(|newest| packet.sequence.is_newer_than(newest)) {
            engine.newest = Some(packet.sequence);
            engine.seen.clear();
        }
        if engine.newest == Some(packet.sequence) && !engine.seen.insert(packet.sender) {
            return None;
        }
        let armed = engine.armed.as_mut().filter(|armed| armed.sequence == packet.sequence);
        let Some(armed) = armed else { return Some(*packet) };
        if ReduceOp::from_number(packet.op).is_none() {
            return Some(*packet);
        }
        let mut merged = armed.merged.unwrap_or(ReductionPacket { sender: self.number, ..*packet });
        if armed.merged.is_some() {
            merged.add(packet);
        }
        armed.merged = Some(merged);
        if merged.count < self.participants {
            return None;
        }
        engine.armed = None;
        let code = if merged.count > self.participants {
            merged.code.max(ResultCode::TOO_MANY)
        } else {
            merged.code
        };
        Some(ReductionPacket { code, ..merged })
    }

    /// The packets of engines whose time is over, with the reduction ids.
    pub fn expire(&mut self, now: u64) -> Vec<(u8, ReductionPacket)> {
        let over = |(reduction, engine): (u8, &mut ReductionEngine)| {
            let armed = engine.armed.take_if(|armed| armed.deadline <= now)?;
            Some((reduction, armed.merged?))
        };
        (0..).zip(&mut self.engines).filter_map(over).collect()
    }

    /// Returns whether contributions are held back.
    pub(crate) fn holds(&self) -> bool {
        let mut armed = self.engines.iter().filter_map(|it| it.armed.as_ref());
        armed.any(|armed| armed.merged.is_some())
    }

    /// When the next engine's time is over.
    #[must_use]
    pub fn deadline(&self) -> Option<u64> {
        let armed = self.engines.iter().filter_map(|engine| engine.armed.as_ref());
        armed.map(|armed| armed.deadline).min()
    }
}
