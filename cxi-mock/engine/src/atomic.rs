//! Atomics: how an operation changes the value at the target.

use cxi_hw::{AtomicOp, AtomicType, CompareOp, ReturnCode};

use crate::packet::Atomic;

/// Bytes of an operand; `None` for a type that does not exist.
pub(crate) fn size(ty: AtomicType) -> Option<u32> {
    // Rule 13.1: An operand has 1, 2, 4, 8 or 16 bytes, depending on its type; a complex number has
    // two parts.
    Some(match ty {
        AtomicType::INT8_T | AtomicType::UINT8_T => 1,
        AtomicType::INT16_T | AtomicType::UINT16_T => 2,
        AtomicType::INT32_T | AtomicType::UINT32_T | AtomicType::FLOAT_T => 4,
        AtomicType::INT64_T
        | AtomicType::UINT64_T
        | AtomicType::DOUBLE_T
        | AtomicType::FLOAT_COMPLEX_T => 8,
        AtomicType::DOUBLE_COMPLEX_T | AtomicType::UINT128_T => 16,
        _ => return None,
    })
}

/// The size of the operands, if there is such an operation for the type.
pub(crate) fn check(atomic: &Atomic) -> Result<u32, ReturnCode> {
    let size = size(atomic.ty).ok_or(ReturnCode::AMO_INVAL_OP_ERROR)?;
    let complex = matches!(atomic.ty, AtomicType::FLOAT_COMPLEX_T | AtomicType::DOUBLE_COMPLEX_T);
    let real = matches!(atomic.ty, AtomicType::FLOAT_T | AtomicType::DOUBLE_T);
    // Rule 13.3: Complex numbers have sums, swaps and comparisons for equality; bit operations are
    // for integers alone.
    let exists = match atomic.op {
        AtomicOp::SUM | AtomicOp::SWAP => true,
        AtomicOp::MIN | AtomicOp::MAX | AtomicOp::LOR | AtomicOp::LAND | AtomicOp::LXOR => !complex,
        AtomicOp::BOR | AtomicOp::BAND | AtomicOp::BXOR | AtomicOp::AXOR => !complex && !real,
        AtomicOp::CSWAP => match atomic.compare {
            CompareOp::EQ | CompareOp::NE => true,
            CompareOp::LE | CompareOp::LT | CompareOp::GE | CompareOp::GT => !complex,
            _ => false,
        },
        _ => false,
    };
    if exists { Ok(size) } else { Err(ReturnCode::AMO_INVAL_OP_ERROR) }
}

/// Returns whether a compare-and-swap swaps; the compare value is on the left.
// Rule 13.6: Programs read by a fetching sum with 0, and write by a swap-if-not-equal, for which
// NaN differs from everything.
fn compares<T: PartialOrd>(how: CompareOp, compare: &T, value: &T) -> bool {
    match how {
        CompareOp::EQ => compare == value,
        CompareOp::NE => compare != value,
        CompareOp::LE => compare <= value,
        CompareOp::LT => compare < value,
        CompareOp::GE => compare >= value,
        CompareOp::GT => compare > value,
        _ => false,
    }
}

/// The first bytes of an operand, or of a value of the same size.
fn bytes<const N: usize>(from: &[u8]) -> [u8; N] {
    let mut bytes = [0; N];
    for (to, from) in bytes.iter_mut().zip(from) {
        *to = *from;
    }
    bytes
}

macro_rules! integer {
    ($int:ty, $atomic:expr, $value:expr) => {{
        let value = <$int>::from_le_bytes(bytes($value));
        let operand = <$int>::from_le_bytes(bytes(&$atomic.operand));
        let second = <$int>::from_le_bytes(bytes(&$atomic.second));
        // Rule 13.2: Sums wrap, logical operations give 0 or 1, and the second operand is the mask
        // or the left side of the comparison.
        let result = match $atomic.op {
            AtomicOp::MIN => value.min(operand),
            AtomicOp::MAX => value.max(operand),
            AtomicOp::SUM => value.wrapping_add(operand),
            AtomicOp::LOR => <$int>::from(value != 0 || operand != 0),
            AtomicOp::LAND => <$int>::from(value != 0 && operand != 0),
            AtomicOp::LXOR => <$int>::from((value != 0) != (operand != 0)),
            AtomicOp::BOR => value | operand,
            AtomicOp::BAND => value & operand,
            AtomicOp::BXOR => value ^ operand,
            AtomicOp::AXOR => (value & !second) | (operand & second),
            AtomicOp::SWAP => operand,
            AtomicOp::CSWAP if compares($atomic.compare, &second, &value) => operand,
            _ => value,
        };
        $value.copy_from_slice(&result.to_le_bytes());
    }};
}

macro_rules! real {
    ($float:ty, $atomic:expr, $value:expr) => {{
        let value = <$float>::from_le_bytes(bytes($value));
        let operand = <$float>::from_le_bytes(bytes(&$atomic.operand));
        let second = <$float>::from_le_bytes(bytes(&$atomic.second));
        let truth = |truth: bool| if truth { 1.0 } else { 0.0 };
        let result = match $atomic.op {
            AtomicOp::MIN => value.min(operand),
            AtomicOp::MAX => value.max(operand),
            AtomicOp::SUM => value + operand,
            AtomicOp::LOR => truth(value != 0.0 || operand != 0.0),
            AtomicOp::LAND => truth(value != 0.0 && operand != 0.0),
            AtomicOp::LXOR => truth((value != 0.0) != (operand != 0.0)),
            AtomicOp::SWAP => operand,
            AtomicOp::CSWAP if compares($atomic.compare, &second, &value) => operand,
            _ => value,
        };
        $value.copy_from_slice(&result.to_le_bytes());
    }};
}

macro_rules! complex {
    ($float:ty, $half:literal, $atomic:expr, $value:expr) => {{
        let parts = |from: &[u8]| {
            [&from[..$half], &from[$half..]].map(|half| <$float>::from_le_bytes(bytes(half)))
        };
        let value = parts($value);
        let operand = parts(&$atomic.operand);
        let result = match $atomic.op {
            AtomicOp::SUM => [value[0] + operand[0], value[1] + operand[1]],
            AtomicOp::SWAP => operand,
            AtomicOp::CSWAP if compares($atomic.compare, &parts(&$atomic.second), &value) => {
                operand
            }
            _ => value,
        };
        for (half, result) in $value.chunks_exact_mut($half).zip(result) {
            half.copy_from_slice(&result.to_le_bytes());
        }
    }};
}

/// Changes a value of the type's size.
pub(crate) fn apply(atomic: &Atomic, value: &mut [u8]) {
    match atomic.ty {
        AtomicType::INT8_T => integer!(i8, atomic, value),
        AtomicType::UINT8_T => integer!(u8, atomic, value),
        AtomicType::INT16_T => integer!(i16, atomic, value),
        AtomicType::UINT16_T => integer!(u16, atomic, value),
        AtomicType::INT32_T => integer!(i32, atomic, value),
        AtomicType::UINT32_T => integer!(u32, atomic, value),
        AtomicType::INT64_T => integer!(i64, atomic, value),
        AtomicType::UINT64_T => integer!(u64, atomic, value),
        AtomicType::UINT128_T => integer!(u128, atomic, value),
        AtomicType::FLOAT_T => real!(f32, atomic, value),
        AtomicType::DOUBLE_T => real!(f64, atomic, value),
        AtomicType::FLOAT_COMPLEX_T => complex!(f32, 4, atomic, value),
        AtomicType::DOUBLE_COMPLEX_T => complex!(f64, 8, atomic, value),
        _ => {}
    }
}
