//! Random numbers for tests.

use cxi_mock::SplitMix64;

/// Random numbers that are the same for the same seed.
#[derive(Clone, Debug)]
pub struct Random(SplitMix64);

impl Random {
    /// The numbers of a seed.
    pub const fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// The next number, from 0 to before `end`.
    pub fn below<N: TryInto<u64> + TryFrom<u64>>(&mut self, end: N) -> N {
        let end: u64 = end.try_into().ok().expect("a positive number");
        N::try_from(self.0.draw() % end).ok().expect("it is less than a number of that type")
    }
}
