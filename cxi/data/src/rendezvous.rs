//! Rendezvous: puts that carry few bytes, and whose rest the target's NIC fetches.

use cxi::DeviceInfo;
use cxi::lni::{LeList, Pte};
use cxi_hw::{FullDma, RendezvousMatchBits};

use crate::kind::Transmit;
use crate::options::options;
use crate::queue::{Post, Queue};
use crate::{Append, Dma, Error, Rest, Result, Slice, Target, TargetFlags};

/// The most bytes that travel with a rendezvous put: its command has 20 bits for them.
const MAX_EAGER: u32 = (1 << 20) - 1;

/// The bits of the get that are the id of the put.
const ID_BITS: u64 = 0xff;

/// A put of a long message, of which only the first bytes are sent at once. When it has found a
/// list entry, the NIC of the target fetches the rest by itself. An unexpected message therefore
/// moves few bytes, and an expected one is copied only once.
///
/// Its [`Report`](crate::Report) is that of the first bytes: the rest may still have to be fetched.
///
/// Before it is posted, its bytes must be in an entry that [`Append::source`] makes. They can be
/// reused when the ACK of the put and a GET at that entry have arrived, in any order.
///
/// The receiver sees a PUT, or PUT_OVERFLOW, with [`Arrival::rendezvous`](crate::Arrival::rendezvous);
/// an [`Event::Rest`](crate::Event::Rest); and an [`Event::Received`](crate::Event::Received), with
/// which the message is complete.
#[derive(Clone, Copy, Debug)]
#[must_use = "a command does nothing until it is posted"]
pub struct Rendezvous<'a> {
    put: Dma<'a>,
    id: u8,
    eager: u32,
}

impl<'a> Rendezvous<'a> {
    /// Copies bytes to a target. No other rendezvous put of this process that is under way may have
    /// the same id.
    pub const fn put(from: Slice<'a>, to: Target, id: u8) -> Self {
        Self { put: Dma::rendezvous(from, to), id, eager: 0 }
    }

    /// Sets how many bytes are sent at once: none by default, and at most 1,048,575.
    pub const fn eager(mut self, bytes: u32) -> Self {
        self.eager = bytes;
        self
    }

    options!(put: offset match_bits header_data report);
}

impl Post<Transmit> for Rendezvous<'_> {
    fn write(&self, queue: &mut Queue<Transmit>) -> Result<()> {
        if self.eager > MAX_EAGER {
            return Err(Error::TooLong { len: self.eager as usize, most: MAX_EAGER as usize });
        }
        let command = FullDma {
            eager_length: self.eager,
            rendezvous_id: self.id,
            ..self.put.encode(queue.kind.initiator, queue.pid_bits)?
        };
        queue.write(&command.encode())
    }
}

impl<'a> Append<'a> {
    /// An entry from which the NIC of a target fetches the rest of the [`Rendezvous`] put with this
    /// id, once. The PtlTE must match, and be mapped at the portal index
    /// [`DeviceInfo::rdzv_get_idx`](cxi::DeviceInfo::rdzv_get_idx).
    pub fn source(pte: &Pte, bytes: Slice<'a>, id: u8) -> Self {
        Self::new(pte, LeList::Priority, bytes)
            .flags(TargetFlags::OP_GET | TargetFlags::USE_ONCE)
            .match_bits(id.into())
            .ignore(!ID_BITS)
    }
}

impl Rest {
    /// A get of the rest, for a NIC that does not issue it (`properties/rdzv_get_en` of the device
    /// is 0).
    pub fn get<'a>(&self, into: Slice<'a>, device: &DeviceInfo) -> Dma<'a> {
        // A portal index has fewer than 16 bits.
        let index = u16::try_from(device.rdzv_get_idx).unwrap_or(u16::MAX);
        let [.., low, high] = self.match_bits.to_le_bytes();
        let bits = RendezvousMatchBits {
            rendezvous_id: self.id,
            transaction_type: 0,
            match_bits: u16::from_le_bytes([low, high]),
        };
        Dma::get(into, self.source.portal(index))
            .match_bits(u64::from_le_bytes(bits.encode()))
            .offset(self.received.into())
    }
}
