//! Immediate commands (IDC): bytes travel in the command, and no memory is registered.

use cxi_hw::reduction::ReductionPacket;
use cxi_hw::{
    CState, Class, CommandByte, DmaFlags, DmaOp, FabricAddress, IdcHeader, IdcMessage,
    MAX_IDC_PAYLOAD, SLOT_BYTES,
};

use crate::kind::Transmit;
use crate::options::options;
use crate::queue::{Post, Queue};
use crate::{Error, Report, Result, Target};

/// The most bytes of a command that is not restricted.
const MAX_UNRESTRICTED: usize = 192;
/// Bytes of the longest command.
const MAX_BYTES: usize = 8 * SLOT_BYTES;

/// The parts of an immediate put.
struct Put<'a> {
    bytes: &'a [u8],
    to: (FabricAddress, u8),
    offset: u64,
    flags: DmaFlags,
    report: Report,
}

impl Queue<Transmit> {
    fn write_put(&mut self, put: &Put<'_>) -> Result<()> {
        let (dfa, index_ext) = put.to;
        self.set_state(put.report.state(put.flags, index_ext))?;
        let head = IdcHeader { dfa, remote_offset: put.offset, ..IdcHeader::default() };
        let most = if put.flags.contains(DmaFlags::RESTRICTED) {
            MAX_IDC_PAYLOAD
        } else {
            MAX_UNRESTRICTED
        };
        self.write_immediate(DmaOp::PUT, &head.encode(), put.bytes, most)
    }

    /// Sets what the immediate commands that follow have in common, unless the NIC has it.
    pub(crate) fn set_state(&mut self, state: CState) -> Result<()> {
        let state = CState {
            command: CommandByte::new(Class::IDC, 0, DmaOp::CSTATE.0),
            // The size of the command itself.
            length: 32,
            initiator: self.kind.initiator,
            ..state
        };
        if self.kind.state != state {
            self.write(&state.encode())?;
            self.kind.state = state;
        }
        Ok(())
    }

    /// Writes a head and the bytes after it as the shortest command with room for them.
    fn write_immediate(&mut self, op: DmaOp, head: &[u8], bytes: &[u8], most: usize) -> Result<()> {
        let (len, end) = (bytes.len(), head.len() + bytes.len());
        let mut command = [0; MAX_BYTES];
        if len > most {
            return Err(Error::TooLong { len, most });
        }
        // A message never goes into a single slot.
        let slots = end.max(head.len() + 1).div_ceil(SLOT_BYTES).next_power_of_two();
        command[..head.len()].copy_from_slice(head);
        command[head.len()..end].copy_from_slice(bytes);
        let size = u8::try_from(slots.ilog2()).unwrap_or(u8::MAX);
        command[0] = CommandByte::new(Class::IDC, size, op.0).0;
        command[1] = u8::try_from(end).unwrap_or(u8::MAX);
        self.write(&command[..slots * SLOT_BYTES])
    }
}

/// A put of a few bytes: at most 192, or 224 if it is restricted. Its match bits are 0.
#[derive(Clone, Copy, Debug)]
#[must_use = "a command does nothing until it is posted"]
pub struct ImmediatePut<'a> {
    bytes: &'a [u8],
    to: Target,
    offset: u64,
    flags: DmaFlags,
    report: Report,
}

impl<'a> ImmediatePut<'a> {
    /// Copies bytes to a target.
    pub const fn new(bytes: &'a [u8], to: Target) -> Self {
        Self { bytes, to, offset: 0, flags: DmaFlags::empty(), report: Report::none() }
    }

    options!(offset restricted report);
}

impl Post<Transmit> for ImmediatePut<'_> {
    fn write(&self, queue: &mut Queue<Transmit>) -> Result<()> {
        queue.write_put(&Put {
            bytes: self.bytes,
            to: self.to.encode(queue.pid_bits),
            offset: self.offset,
            flags: self.flags,
            report: self.report,
        })
    }
}

/// A put of at most 192 bytes with match bits.
#[derive(Clone, Copy, Debug)]
#[must_use = "a command does nothing until it is posted"]
pub struct Message<'a> {
    bytes: &'a [u8],
    to: Target,
    match_bits: u64,
    header_data: u64,
    report: Report,
}

impl<'a> Message<'a> {
    /// Sends bytes to a target.
    pub const fn new(bytes: &'a [u8], to: Target) -> Self {
        Self { bytes, to, match_bits: 0, header_data: 0, report: Report::none() }
    }

    options!(match_bits header_data report);
}

impl Post<Transmit> for Message<'_> {
    fn write(&self, queue: &mut Queue<Transmit>) -> Result<()> {
        let (dfa, index_ext) = self.to.encode(queue.pid_bits);
        queue.set_state(CState {
            // The message carries its own pointer, so that the state can stay as it is.
            user_ptr: 0,
            ..self.report.state(DmaFlags::empty(), index_ext)
        })?;
        let head = IdcMessage {
            dfa,
            match_bits: self.match_bits,
            header_data: self.header_data,
            user_ptr: self.report.token,
            ..IdcMessage::default()
        };
        let head = head.encode();
        queue.write_immediate(DmaOp::SMALL_MESSAGE, &head, self.bytes, MAX_UNRESTRICTED)
    }
}

/// Sends a packet to a multicast tree. What the root sends goes to all other members, and what a
/// member sends goes to the root; switches may merge it on the way.
///
/// There is no response: its completion means that it was sent. It arrives where a PtlTE is mapped
/// to the tree's number ([`Pte::map_multicast`](cxi::lni::Pte::map_multicast)), as an event if the
/// list entry is [managed locally](crate::Append::managed).
#[derive(Clone, Copy, Debug)]
#[must_use = "a command does nothing until it is posted"]
pub struct Reduce<'a> {
    packet: &'a ReductionPacket,
    to: FabricAddress,
    report: Report,
}

impl<'a> Reduce<'a> {
    /// A packet of one of the eight reductions of a tree. Numbers of trees are cut to 13 bits, and
    /// numbers of reductions to 3.
    pub const fn new(packet: &'a ReductionPacket, tree: u16, reduction: u8) -> Self {
        Self { packet, to: FabricAddress::multicast(tree, reduction), report: Report::none() }
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
