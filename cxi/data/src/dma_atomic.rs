//! Atomics with match bits, whose operand is in memory.

use cxi_hw::{AtomicOp, AtomicType, Class, CommandByte, CompareOp};

use crate::atomic::complete;
use crate::kind::Transmit;
use crate::options::options;
use crate::queue::{Post, Queue};
use crate::{Operand, Report, Result, Slice, Target};

/// An operation as [`Atomic`](crate::Atomic), with match bits and a first operand that the NIC reads
/// from registered memory.
#[derive(Clone, Copy, Debug)]
#[must_use = "a command does nothing until it is posted"]
pub struct DmaAtomic<'a> {
    op: AtomicOp,
    kind: AtomicType,
    operand: Slice<'a>,
    to: Target,
    offset: u64,
    match_bits: u64,
    header_data: u64,
    second: Option<(CompareOp, Operand)>,
    fetch: Option<Slice<'a>>,
    report: Report,
}

impl<'a> DmaAtomic<'a> {
    /// An operation with a number of that type, which is the whole slice. With another length it
    /// ends with [`ReturnCode::AMO_LENGTH_ERROR`](crate::ReturnCode::AMO_LENGTH_ERROR).
    pub const fn new(op: AtomicOp, kind: AtomicType, operand: Slice<'a>, to: Target) -> Self {
        Self {
            op,
            kind,
            operand,
            to,
            offset: 0,
            match_bits: 0,
            header_data: 0,
            second: None,
            fetch: None,
            report: Report::none(),
        }
    }

    /// For [`AtomicOp::CSWAP`]: what the value at the target is compared with, on the left.
    pub fn compare(mut self, how: CompareOp, expected: impl Into<Operand>) -> Self {
        self.second = Some((how, expected.into()));
        self
    }

    /// For [`AtomicOp::AXOR`]: the bits that are stored.
    pub fn mask(self, mask: impl Into<Operand>) -> Self {
        self.compare(CompareOp::EQ, mask)
    }

    /// Copies the previous value to the start of a slice.
    pub const fn fetch(mut self, into: Slice<'a>) -> Self {
        self.fetch = Some(into);
        self
    }

    options!(offset match_bits header_data report);
}

impl Post<Transmit> for DmaAtomic<'_> {
    fn write(&self, queue: &mut Queue<Transmit>) -> Result<()> {
        let (op, how, second) = complete(self.op, self.operand.len, self.second, self.fetch)?;
        let (dfa, index_ext) = self.to.encode(queue.pid_bits);
        let [op2_word1, op2_word2] = second;
        let command = cxi_hw::DmaAtomic {
            command: CommandByte::new(Class::DMA, 2, op.0),
            index_ext,
            lac: self.operand.lac,
            flags: self.report.flags,
            dfa,
            remote_offset: self.offset,
            local_read_addr: self.operand.iova,
            request_len: self.operand.request_len()?,
            ct: self.report.ct,
            eq: self.report.eq,
            initiator: queue.kind.initiator,
            match_bits: self.match_bits,
            header_data: self.header_data,
            user_ptr: self.report.token,
            local_write_addr: self.fetch.map_or(0, |into| into.iova),
            atomic_op: self.op,
            atomic_type: self.kind,
            cswap_op: how,
            write_lac: self.fetch.map_or(0, |into| into.lac),
            op2_word1,
            op2_word2,
        };
        // A command is as long as the power of two that holds it.
        let mut bytes = [0; 4 * cxi_hw::SLOT_BYTES];
        bytes[..cxi_hw::DmaAtomic::BYTES].copy_from_slice(&command.encode());
        queue.write(&bytes)
    }
}
