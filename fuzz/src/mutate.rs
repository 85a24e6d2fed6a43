//! Mutations of inputs, the same for the same seed.

/// Boundary values.
const INTERESTING: [u64; 16] = [
    0,
    1,
    4,
    5,
    0x7F,
    0xFF,
    0x7FFF,
    0xFFEA,
    0xFFFF,
    0x1_0000,
    0x1_0001,
    0x7FFF_FFFF,
    0xFFFF_FFEA,
    0xFFFF_F001,
    0xFFFF_FFFF,
    u64::MAX,
];

/// Parts of texts.
const WORDS: [&str; 22] = [
    "0",
    "-1",
    "65535",
    "65536",
    "4294967296",
    "18446744073709551616",
    ",",
    "-",
    ":",
    "@",
    ".",
    "0x",
    "cxi0",
    "[",
    "]",
    "{",
    "}",
    "\n",
    "\"",
    "null",
    "1e309",
    "é",
];

/// A small generator of changes (xorshift64*).
#[derive(Clone, Debug)]
pub struct Changes(u64);

impl Changes {
    /// The generator of that number.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    /// A number below another.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33;
        usize::try_from(number).unwrap_or(0) % bound.max(1)
    }

    fn byte(&mut self) -> u8 {
        u8::try_from(self.below(256)).unwrap_or(0)
    }

    /// Changes an input, perhaps with parts of another.
    pub fn change(&mut self, input: &mut Vec<u8>, other: &[u8], longest: usize) {
        for _ in 0..=self.below(5) {
            self.once(input, other);
        }
        input.truncate(longest);
    }

    fn once(&mut self, input: &mut Vec<u8>, other: &[u8]) {
        let at = self.below(input.len() + 1);
        let end = at + self.below(input.len() - at + 1).min(64);
        match self.below(12) {
            0 => input.insert(at, self.byte()),
            1 => drop(input.drain(at..end)),
            2 if at < input.len() => input[at] = self.byte(),
            3 | 4 if at < input.len() => input[at] ^= 1 << self.below(8),
            5 => input.truncate(at),
            6 | 7 => {
                let number = INTERESTING[self.below(INTERESTING.len())].to_le_bytes();
                let width = 1 << self.below(4);
                for (byte, new) in input.iter_mut().skip(at).zip(&number[..width]) {
                    *byte = *new;
                }
            }
            8 => {
                let again = input[at..end].to_vec();
                let to = self.below(input.len() + 1);
                input.splice(to..to, again);
            }
            9 => {
                let word = WORDS[self.below(WORDS.len())];
                input.splice(at..at, word.bytes());
            }
            10 if at < input.len() => input[at] = input[at].wrapping_add_signed(self.step()),
            _ => {
                let from = self.below(other.len() + 1);
                let to = from + self.below(other.len() - from + 1);
                input.splice(at..at, other[from..to].iter().copied());
            }
        }
    }

    fn step(&mut self) -> i8 {
        if self.below(2) == 0 { 1 } else { -1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_number_makes_the_same_changes() {
        let run = |seed| {
            let mut changes = Changes::new(seed);
            let mut input = b"1024-2047,4096".to_vec();
            for _ in 0..1000 {
                changes.change(&mut input, b"cxi0,cxi1", 100);
                assert!(input.len() <= 100);
            }
            input
        };
        assert_eq!(run(7), run(7));
        assert_ne!(run(7), run(9));
    }
}
