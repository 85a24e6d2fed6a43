//! Hardware reductions.

use cxi_hw::reduction::ReductionPacket;
use cxi_hw::{DmaFlags, FabricAddress};

use crate::immediate::Put;
use crate::kind::Transmit;
use crate::options::options;
use crate::queue::{Post, Queue};
use crate::{Report, Result};

/// Sends a packet to a multicast tree: what the root sends goes to all others, what others send goes
/// to the root, and switches may merge it on the way.
///
/// Nobody answers: its end says that it has left. It arrives where a PtlTE is mapped to the tree's
/// number ([`Pte::map_multicast`](cxi::lni::Pte::map_multicast)), as an event if the list entry is
/// [managed locally](crate::Append::managed).
#[derive(Clone, Copy, Debug)]
#[must_use = "a command does nothing until it is posted"]
pub struct Reduce<'a> {
    packet: &'a ReductionPacket,
    to: FabricAddress,
    report: Report,
}

impl<'a> Reduce<'a> {
    /// A packet of one of the eight reductions of a tree. Trees have 13 bits, reductions 3; more are
    /// cut off.
    pub const fn new(packet: &'a ReductionPacket, tree: u16, reduction: u8) -> Self {
        Self {
            packet,
            to: FabricAddress::multicast(tree, reduction),
            report: Report::none(),
        }
    }

    options!(report);
}

impl Post<Transmit> for Reduce<'_> {
    fn write(&self, queue: &mut Queue<Transmit>) -> Result<()> {
        queue.write_put(&Put {
            bytes: &self.packet.encode(),
            to: (self.to, 0),
            offset: 0,
            flags: DmaFlags::RESTRICTED | DmaFlags::REDUCTION,
            report: self.report,
        })
    }
}
