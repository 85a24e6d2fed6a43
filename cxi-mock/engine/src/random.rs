//! Random numbers that are the same for the same seed, with every version of every library.

/// The generator SplitMix64, whose numbers are good for any seed. Nobody should rely on them to be
/// secret.
///
/// ```
/// use cxi_engine::SplitMix64;
///
/// let mut numbers = SplitMix64::new(0);
/// assert_eq!(numbers.draw(), 0xe220_a839_7b1d_cdaf);
/// assert_eq!(numbers.draw(), 0x6e78_9e6a_a1b9_65f4);
/// ```
#[derive(Clone, Debug, Default)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// The numbers of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    #[must_use]
    pub const fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = self.0;
        number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ (number >> 31)
    }
}
