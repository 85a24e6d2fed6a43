//! Operations and the values that they combine.

/// Eight words that a member contributes, or that an operation results in.
pub type Value = [u64; 8];

/// Combination of two values, word by word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Combine {
    /// The sum, which wraps.
    Sum,
    /// The minimum.
    Min,
    /// The maximum.
    Max,
    /// The bits that both have.
    And,
    /// The bits that either has.
    Or,
}

impl Combine {
    /// Combines two values.
    #[must_use]
    pub fn apply(self, left: &Value, right: &Value) -> Value {
        std::array::from_fn(|word| {
            let (left, right) = (left[word], right[word]);
            match self {
                Self::Sum => left.wrapping_add(right),
                Self::Min => left.min(right),
                Self::Max => left.max(right),
                Self::And => left & right,
                Self::Or => left | right,
            }
        })
    }
}

/// A collective operation. No member leaves one before all have entered it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// Combines nothing.
    Barrier,
    /// All members get the value of the root, the member of rank 0.
    Broadcast,
    /// The root gets the combination of all values; the others get zeros.
    Reduce(Combine),
    /// All members get the combination of all values.
    Allreduce(Combine),
}

/// All operations, in the order of their codes on the wire, which begin with 1.
const ALL: [Operation; 12] = [
    Operation::Barrier,
    Operation::Broadcast,
    Operation::Reduce(Combine::Sum),
    Operation::Reduce(Combine::Min),
    Operation::Reduce(Combine::Max),
    Operation::Reduce(Combine::And),
    Operation::Reduce(Combine::Or),
    Operation::Allreduce(Combine::Sum),
    Operation::Allreduce(Combine::Min),
    Operation::Allreduce(Combine::Max),
    Operation::Allreduce(Combine::And),
    Operation::Allreduce(Combine::Or),
];

impl Operation {
    /// The combination of values on the way up, if any.
    pub(super) const fn combine(self) -> Option<Combine> {
        match self {
            Self::Barrier | Self::Broadcast => None,
            Self::Reduce(combine) | Self::Allreduce(combine) => Some(combine),
        }
    }

    /// The result of the root, of its own value and those of the others combined.
    pub(super) const fn result(self, combined: Value) -> Value {
        match self {
            Self::Barrier => [0; 8],
            Self::Broadcast | Self::Reduce(_) | Self::Allreduce(_) => combined,
        }
    }

    /// The value that the root sends down.
    pub(super) const fn released(self, result: Value) -> Value {
        match self {
            Self::Barrier | Self::Reduce(_) => [0; 8],
            Self::Broadcast | Self::Allreduce(_) => result,
        }
    }

    pub(super) fn code(self) -> u8 {
        ALL.iter().zip(1..).find(|(operation, _)| **operation == self).map_or(0, |(_, code)| code)
    }

    pub(super) fn from_code(code: u8) -> Option<Self> {
        ALL.get(usize::from(code).checked_sub(1)?).copied()
    }
}
