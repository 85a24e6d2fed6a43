//! Puts and gets of registered memory.

use cxi_hw::{Class, CommandByte, DmaFlags, DmaOp, FullDma, MatchId, NomatchDma};

use crate::kind::Transmit;
use crate::options::options;
use crate::queue::{Post, Queue};
use crate::{Report, Result, Slice, Target};

/// A put or a get.
#[derive(Clone, Copy, Debug)]
#[must_use = "a command does nothing until it is posted"]
pub struct Dma<'a> {
    op: DmaOp,
    local: Slice<'a>,
    to: Target,
    pub(crate) offset: u64,
    pub(crate) match_bits: u64,
    pub(crate) header_data: u64,
    flags: DmaFlags,
    pub(crate) report: Report,
}

impl<'a> Dma<'a> {
    const fn new(op: DmaOp, local: Slice<'a>, to: Target) -> Self {
        Self {
            op,
            local,
            to,
            offset: 0,
            match_bits: 0,
            header_data: 0,
            flags: DmaFlags::empty(),
            report: Report::none(),
        }
    }

    /// Copies bytes to a target.
    pub const fn put(from: Slice<'a>, to: Target) -> Self {
        Self::new(DmaOp::PUT, from, to)
    }

    /// Copies bytes from a target.
    pub const fn get(into: Slice<'a>, from: Target) -> Self {
        Self::new(DmaOp::GET, into, from)
    }

    pub(crate) const fn rendezvous(from: Slice<'a>, to: Target) -> Self {
        Self::new(DmaOp::RENDEZVOUS_PUT, from, to)
    }

    options!(offset match_bits header_data restricted report);

    /// The operation ends only when all earlier puts are visible at the target.
    pub const fn flush(mut self) -> Self {
        self.flags = self.flags.union(DmaFlags::FLUSH);
        self
    }

    pub(crate) fn encode(&self, initiator: MatchId, pid_bits: u32) -> Result<FullDma> {
        let (dfa, index_ext) = self.to.encode(pid_bits);
        let restricted = self.flags.contains(DmaFlags::RESTRICTED);
        let matched = |value| if restricted { 0 } else { value };
        Ok(FullDma {
            command: CommandByte::new(Class::DMA, 1, self.op.0),
            index_ext,
            lac: self.local.lac,
            flags: self.flags | self.report.flags,
            dfa,
            remote_offset: self.offset,
            local_addr: self.local.iova,
            request_len: self.local.request_len()?,
            ct: self.report.ct,
            eq: self.report.eq,
            initiator,
            match_bits: matched(self.match_bits),
            header_data: matched(self.header_data),
            user_ptr: self.report.token,
            ..FullDma::default()
        })
    }
}

impl Post<Transmit> for Dma<'_> {
    fn write(&self, queue: &mut Queue<Transmit>) -> Result<()> {
        let command = self.encode(queue.kind.initiator, queue.pid_bits)?;
        queue.write(&command.encode())
    }
}

/// A restricted put or get that takes half the room of a [`Dma`]. Only failures are reported as
/// events, without a token; successes can be counted.
#[derive(Clone, Copy, Debug)]
#[must_use = "a command does nothing until it is posted"]
pub struct Nomatch<'a> {
    dma: Dma<'a>,
}

impl<'a> Nomatch<'a> {
    /// Copies bytes to a target.
    pub const fn put(from: Slice<'a>, to: Target) -> Self {
        let dma = Dma::new(DmaOp::NOMATCH_PUT, from, to);
        Self { dma }
    }

    /// Copies bytes from a target.
    pub const fn get(into: Slice<'a>, from: Target) -> Self {
        let dma = Dma::new(DmaOp::NOMATCH_GET, into, from);
        Self { dma }
    }

    options!(dma: offset report);
}

impl Post<Transmit> for Nomatch<'_> {
    fn write(&self, queue: &mut Queue<Transmit>) -> Result<()> {
        // A command of half the size, whose fields are in the same places.
        let command = self.dma.encode(queue.kind.initiator, queue.pid_bits)?;
        let command = FullDma {
            command: CommandByte::new(Class::DMA, 0, self.dma.op.0),
            flags: command.flags | DmaFlags::RESTRICTED | DmaFlags::EVENT_SUCCESS_DISABLE,
            ..command
        };
        queue.write(&command.encode()[..NomatchDma::BYTES])
    }
}
