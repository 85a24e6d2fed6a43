//! The operations of reductions.

use super::{ReductionPacket, ResultCode};

/// An operation that the model of a switch merges. Reproducible sums, and sums that round otherwise
/// than to the nearest, it lets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u8)]
pub enum ReduceOp {
    /// The count alone.
    Barrier = 0x00,
    /// Bitwise and.
    And = 0x01,
    /// Bitwise or.
    Or = 0x02,
    /// Bitwise exclusive or.
    Xor = 0x03,
    /// Least of signed integers.
    Min = 0x10,
    /// Greatest of signed integers.
    Max = 0x11,
    /// Least and greatest of signed integers, and where: value, place, value, place.
    MinMaxLoc = 0x12,
    /// Sum of signed integers.
    Sum = 0x14,
    /// Least of floating point numbers.
    FloatMin = 0x24,
    /// Greatest of floating point numbers.
    FloatMax = 0x25,
    /// Least and greatest of floating point numbers, and where.
    FloatMinMaxLoc = 0x26,
    /// Sum of floating point numbers, rounded to the nearest.
    FloatSum = 0x28,
}

impl ReduceOp {
    /// Its number in packets.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The operation with this number, if engines merge it.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        let all = [
            Self::Barrier,
            Self::And,
            Self::Or,
            Self::Xor,
            Self::Min,
            Self::Max,
            Self::MinMaxLoc,
            Self::Sum,
            Self::FloatMin,
            Self::FloatMax,
            Self::FloatMinMaxLoc,
            Self::FloatSum,
        ];
        all.into_iter().find(|op| op.number() == number)
    }

    /// Merges two payloads.
    #[must_use]
    pub fn merge(self, one: [u64; 4], other: [u64; 4]) -> ([u64; 4], ResultCode) {
        let mut code = ResultCode::SUCCESS;
        let mut each = |merge: &dyn Fn(u64, u64) -> (u64, ResultCode)| {
            let mut merged = one;
            for (word, other) in merged.iter_mut().zip(other) {
                let (value, result) = merge(*word, other);
                *word = value;
                code = code.max(result);
            }
            merged
        };
        let plain = |value| (value, ResultCode::SUCCESS);
        let signed = |merge: fn(i64, i64) -> i64| {
            move |one: u64, other: u64| {
                plain(merge(one.cast_signed(), other.cast_signed()).cast_unsigned())
            }
        };
        let merged = match self {
            Self::Barrier => one,
            Self::And => each(&|one, other| plain(one & other)),
            Self::Or => each(&|one, other| plain(one | other)),
            Self::Xor => each(&|one, other| plain(one ^ other)),
            Self::Min => each(&signed(i64::min)),
            Self::Max => each(&signed(i64::max)),
            Self::Sum => each(&sum),
            Self::FloatMin => each(&|one, other| float(one, other, f64::min)),
            Self::FloatMax => each(&|one, other| float(one, other, f64::max)),
            Self::FloatSum => each(&float_sum),
            Self::MinMaxLoc => {
                places(one, other, |one, other| one.cast_signed() < other.cast_signed())
            }
            Self::FloatMinMaxLoc => {
                let values = [one[0], one[2], other[0], other[2]];
                if values.into_iter().any(|value| f64::from_bits(value).is_nan()) {
                    code = ResultCode::INVALID;
                }
                places(one, other, |one, other| f64::from_bits(one) < f64::from_bits(other))
            }
        };
        (merged, code)
    }
}

fn sum(one: u64, other: u64) -> (u64, ResultCode) {
    let (sum, over) = one.cast_signed().overflowing_add(other.cast_signed());
    let code = if over { ResultCode::INTEGER_OVERFLOW } else { ResultCode::SUCCESS };
    (sum.cast_unsigned(), code)
}

fn float(one: u64, other: u64, choose: fn(f64, f64) -> f64) -> (u64, ResultCode) {
    let (one, other) = (f64::from_bits(one), f64::from_bits(other));
    let code =
        if one.is_nan() || other.is_nan() { ResultCode::INVALID } else { ResultCode::SUCCESS };
    (choose(one, other).to_bits(), code)
}

fn float_sum(one: u64, other: u64) -> (u64, ResultCode) {
    let (one, other) = (f64::from_bits(one), f64::from_bits(other));
    let sum = one + other;
    // What the sum left out, exactly.
    let kept = sum - one;
    let lost = (one - (sum - kept)) + (other - kept);
    let code = if sum.is_nan() {
        ResultCode::INVALID
    } else if sum.is_infinite() && one.is_finite() && other.is_finite() {
        ResultCode::OVERFLOW
    } else if lost != 0.0 && sum.is_finite() {
        ResultCode::INEXACT
    } else {
        ResultCode::SUCCESS
    };
    (sum.to_bits(), code)
}

/// Minimum and maximum with their places; of equal values, the one with the lower place.
fn places(one: [u64; 4], other: [u64; 4], less: impl Fn(u64, u64) -> bool) -> [u64; 4] {
    let [least, at, greatest, there] = one;
    let [other_least, other_at, other_greatest, other_there] = other;
    let takes_least = less(other_least, least) || (!less(least, other_least) && other_at < at);
    let takes_greatest =
        less(greatest, other_greatest) || (!less(other_greatest, greatest) && other_there < there);
    let (least, at) = if takes_least { (other_least, other_at) } else { (least, at) };
    let (greatest, there) =
        if takes_greatest { (other_greatest, other_there) } else { (greatest, there) };
    [least, at, greatest, there]
}

impl ReductionPacket {
    /// Adds a contribution to those that are in this packet. The larger result code counts;
    /// [`ResultCode::OPERATION_MISMATCH`] if the operations differ, or are not of [`ReduceOp`].
    pub fn add(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.code = self.code.max(other.code);
        match ReduceOp::from_number(other.op) {
            Some(op) if other.op == self.op => {
                let (payload, code) = op.merge(self.payload, other.payload);
                self.payload = payload;
                self.code = self.code.max(code);
            }
            _ => self.code = self.code.max(ResultCode::OPERATION_MISMATCH),
        }
    }
}
