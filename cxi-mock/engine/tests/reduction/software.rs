//! The same reductions without a network.

use cxi_hw::reduction::{ReduceOp, ResultCode};

/// Returns the result of all contributions; integers in a width in which nothing overflows.
pub(crate) fn reduce(op: ReduceOp, contributions: &[[u64; 4]]) -> ([u64; 4], ResultCode) {
    let lane = |lane: usize| contributions.iter().map(move |words| words[lane]);
    let lanes = |fold: &dyn Fn(Vec<u64>) -> u64| std::array::from_fn(|at| fold(lane(at).collect()));
    let signed = |words: Vec<u64>| words.into_iter().map(u64::cast_signed);
    let floats = |words: Vec<u64>| words.into_iter().map(f64::from_bits);
    let mut code = ResultCode::SUCCESS;
    let result = match op {
        ReduceOp::And => lanes(&|words| words.into_iter().fold(u64::MAX, |all, word| all & word)),
        ReduceOp::Or => lanes(&|words| words.into_iter().fold(0, |all, word| all | word)),
        ReduceOp::Xor => lanes(&|words| words.into_iter().fold(0, |all, word| all ^ word)),
        ReduceOp::Min => lanes(&|words| signed(words).min().unwrap().cast_unsigned()),
        ReduceOp::Max => lanes(&|words| signed(words).max().unwrap().cast_unsigned()),
        ReduceOp::Sum => {
            let sums: [i128; 4] =
                std::array::from_fn(|at| signed(lane(at).collect()).map(i128::from).sum());
            if sums.iter().any(|sum| i64::try_from(*sum).is_err()) {
                code = ResultCode::INTEGER_OVERFLOW;
            }
            sums.map(|sum| (sum as i64).cast_unsigned())
        }
        ReduceOp::FloatMin => lanes(&|words| floats(words).fold(f64::INFINITY, f64::min).to_bits()),
        ReduceOp::FloatMax => {
            lanes(&|words| floats(words).fold(f64::NEG_INFINITY, f64::max).to_bits())
        }
        ReduceOp::FloatSum => lanes(&|words| floats(words).sum::<f64>().to_bits()),
        ReduceOp::MinMaxLoc => {
            let (least, at) =
                contributions.iter().map(|words| (words[0].cast_signed(), words[1])).min().unwrap();
            let greatest =
                contributions.iter().map(|words| (words[2].cast_signed(), u64::MAX - words[3]));
            let (greatest, there) = greatest.max().unwrap();
            [least.cast_unsigned(), at, greatest.cast_unsigned(), u64::MAX - there]
        }
        _ => [0; 4],
    };
    (result, code)
}
