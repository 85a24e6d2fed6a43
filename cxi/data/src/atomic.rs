//! Atomics on memory of a target: with the operand in the command, or in memory.

use cxi_hw::{
    AtomicOp, AtomicType, CState, Class, CommandByte, CompareOp, DmaFlags, DmaOp, IdcAtomic,
    SLOT_BYTES,
};

use crate::kind::Transmit;
use crate::options::options;
use crate::queue::{Post, Queue};
use crate::{Error, Report, Result, Slice, Target};

macro_rules! operands {
    ($($variant:ident($number:ty) = $code:ident,)*) => {
        /// An operand of an atomic.
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[allow(missing_docs, reason = "the variants are Rust's types")]
        pub enum Operand {
            $($variant($number),)*
        }

        impl Operand {
            const fn kind(self) -> AtomicType {
                match self {
                    $(Self::$variant(_) => AtomicType::$code,)*
                }
            }

            /// Bytes of the number.
            #[must_use]
            pub const fn size(self) -> usize {
                match self {
                    $(Self::$variant(_) => size_of::<$number>(),)*
                }
            }

            /// Two words, lower first.
            fn words(self) -> [u64; 2] {
                let mut bytes = [0; 16];
                match self {
                    $(Self::$variant(number) => {
                        bytes[..self.size()].copy_from_slice(&number.to_le_bytes());
                    })*
                }
                let value = u128::from_le_bytes(bytes);
                // The lower and the upper half.
                #[allow(clippy::cast_possible_truncation)]
                [value as u64, (value >> 64) as u64]
            }
        }

        $(impl From<$number> for Operand {
            fn from(number: $number) -> Self {
                Self::$variant(number)
            }
        })*
    };
}

operands! {
    I8(i8) = INT8_T,
    U8(u8) = UINT8_T,
    I16(i16) = INT16_T,
    U16(u16) = UINT16_T,
    I32(i32) = INT32_T,
    U32(u32) = UINT32_T,
    I64(i64) = INT64_T,
    U64(u64) = UINT64_T,
    F32(f32) = FLOAT_T,
    F64(f64) = DOUBLE_T,
    U128(u128) = UINT128_T,
}

/// An operation on a number in the list entry of a target, at a multiple of the number's size. Its
/// match bits are 0; [`DmaAtomic`] has others.
#[derive(Clone, Copy, Debug)]
#[must_use = "a command does nothing until it is posted"]
pub struct Atomic<'a> {
    op: AtomicOp,
    operand: Operand,
    to: Target,
    offset: u64,
    second: Option<(CompareOp, Operand)>,
    fetch: Option<Slice<'a>>,
    report: Report,
}

impl<'a> Atomic<'a> {
    /// An operation with one operand, such as [`AtomicOp::SUM`] or [`AtomicOp::SWAP`].
    ///
    /// An operation that the type does not have ends with
    /// [`ReturnCode::AMO_INVAL_OP_ERROR`](crate::ReturnCode::AMO_INVAL_OP_ERROR).
    pub fn new(op: AtomicOp, operand: impl Into<Operand>, to: Target) -> Self {
        Self {
            op,
            operand: operand.into(),
            to,
            offset: 0,
            second: None,
            fetch: None,
            report: Report::none(),
        }
    }

    options!(offset operands report);
}

/// Completes an atomic with more than its first operand: whether it fetches, how it compares, and
/// the second operand.
///
/// # Errors
///
/// Something that the operation needs is missing.
fn complete(
    op: AtomicOp,
    size: usize,
    second: Option<(CompareOp, Operand)>,
    fetch: Option<Slice<'_>>,
) -> Result<(DmaOp, CompareOp, [u64; 2])> {
    if fetch.is_some_and(|into| into.len < size) {
        return Err(Error::Operands("the slice is shorter than the value that is fetched"));
    }
    if matches!(op, AtomicOp::CSWAP | AtomicOp::AXOR) && second.is_none() {
        return Err(Error::Operands("the operation has two operands: one is missing"));
    }
    let kind = if fetch.is_some() { DmaOp::FETCHING_ATOMIC } else { DmaOp::ATOMIC };
    let (how, second) = second.unwrap_or((CompareOp::EQ, Operand::U64(0)));
    Ok((kind, how, second.words()))
}

impl Post<Transmit> for Atomic<'_> {
    fn write(&self, queue: &mut Queue<Transmit>) -> Result<()> {
        let (op, how, second) = complete(self.op, self.operand.size(), self.second, self.fetch)?;
        let (dfa, index_ext) = self.to.encode(queue.pid_bits);
        queue.set_state(CState {
            write_lac: self.fetch.map_or(0, |into| into.lac),
            ..self.report.state(DmaFlags::empty(), index_ext)
        })?;
        let [op1_word1, op1_word2] = self.operand.words();
        let [op2_word1, op2_word2] = second;
        let command = IdcAtomic {
            command: CommandByte::new(Class::IDC, 1, op.0),
            // The size of the command itself.
            length: 64,
            dfa,
            remote_offset: self.offset,
            local_addr: self.fetch.map_or(0, |into| into.iova),
            atomic_op: self.op,
            atomic_type: self.operand.kind(),
            cswap_op: how,
            op1_word1,
            op1_word2,
            op2_word1,
            op2_word2,
        };
        queue.write(&command.encode())
    }
}

/// An operation as [`Atomic`], with match bits and a first operand that the NIC reads
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
    /// An operation with a number of this type, which must be the whole slice. With any other
    /// length it ends with [`ReturnCode::AMO_LENGTH_ERROR`](crate::ReturnCode::AMO_LENGTH_ERROR).
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

    options!(offset match_bits header_data operands report);
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
        // A command is as long as the smallest power of two that holds it.
        let mut bytes = [0; 4 * SLOT_BYTES];
        bytes[..cxi_hw::DmaAtomic::BYTES].copy_from_slice(&command.encode());
        queue.write(&bytes)
    }
}
