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
    offset: u64,
    match_bits: u64,
    header_data: u64,
    flags: DmaFlags,
    report: Report,
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

    options!(offset match_bits header_data restricted report);

    /// Ends when all that was put before can be seen at the target.
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

/// A restricted put or get in half the room of a [`Dma`]. Only failures are events, without a
/// token; successes count.
#[derive(Clone, Copy, Debug)]
#[must_use = "a command does nothing until it is posted"]
pub struct Nomatch<'a> {
    op: DmaOp,
    local: Slice<'a>,
    to: Target,
    offset: u64,
    report: Report,
}

impl<'a> Nomatch<'a> {
    const fn new(op: DmaOp, local: Slice<'a>, to: Target) -> Self {
        Self {
            op,
            local,
            to,
            offset: 0,
            report: Report::none(),
        }
    }

    /// Copies bytes to a target.
    pub const fn put(from: Slice<'a>, to: Target) -> Self {
        Self::new(DmaOp::NOMATCH_PUT, from, to)
    }

    /// Copies bytes from a target.
    pub const fn get(into: Slice<'a>, from: Target) -> Self {
        Self::new(DmaOp::NOMATCH_GET, into, from)
    }

    options!(offset report);
}

impl Post<Transmit> for Nomatch<'_> {
    fn write(&self, queue: &mut Queue<Transmit>) -> Result<()> {
        let (dfa, index_ext) = self.to.encode(queue.pid_bits);
        let command = NomatchDma {
            command: CommandByte::new(Class::DMA, 0, self.op.0),
            index_ext,
            lac: self.local.lac,
            flags: self.report.flags | DmaFlags::RESTRICTED,
            dfa,
            remote_offset: self.offset,
            local_addr: self.local.iova,
            request_len: self.local.request_len()?,
            ct: self.report.ct,
            eq: self.report.eq,
        };
        queue.write(&command.encode())
    }
}
