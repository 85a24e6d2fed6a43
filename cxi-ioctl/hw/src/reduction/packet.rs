//! The packet of a reduction: 49 bytes, whatever the operation.

/// Sequence numbers are 0 to 1021.
const SEQUENCES: u16 = 1022;

/// A sequence number of a reduction. They wrap around: of two, the newer one is less
/// than half the circle ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sequence(u16);

impl Sequence {
    /// Clears engines, and arms none.
    pub const CLEAR: Self = Self(SEQUENCES);

    /// A sequence number, modulo 1022.
    #[must_use]
    pub const fn new(number: u16) -> Self {
        Self(number % SEQUENCES)
    }

    /// The next one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self::new(self.0 + 1)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }

    /// Whether this one came after the other.
    #[must_use]
    pub const fn is_newer_than(self, other: Self) -> bool {
        let ahead = (self.0 + SEQUENCES - other.0 % SEQUENCES) % SEQUENCES;
        ahead != 0 && ahead < SEQUENCES / 2
    }
}

/// What became of an operation so far; of two, the larger one counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResultCode(pub u8);

impl ResultCode {
    /// It went well.
    pub const SUCCESS: Self = Self(0);
    /// A sum of floating point numbers was rounded.
    pub const INEXACT: Self = Self(1);
    /// A sum of floating point numbers is infinite.
    pub const OVERFLOW: Self = Self(3);
    /// A floating point number is a NaN.
    pub const INVALID: Self = Self(4);
    /// A sum of integers is too large.
    pub const INTEGER_OVERFLOW: Self = Self(6);
    /// More contributions came than there are participants.
    pub const TOO_MANY: Self = Self(7);
    /// Participants disagree on the operation.
    pub const OPERATION_MISMATCH: Self = Self(8);
}

/// A contribution, a result, or an order to arm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "its bits are the hardware's")]
pub struct ReductionPacket {
    /// Who sent it: the index of a participant, or the number of an engine that merged several.
    pub sender: u32,
    /// What it counts under; from the root, what is armed.
    pub sequence: Sequence,
    /// Engines are armed.
    pub arm: bool,
    /// The operation, 6 bits.
    pub op: u8,
    /// Contributions in it, 20 bits.
    pub count: u32,
    /// The sequence number that it answers to.
    pub answered: Sequence,
    /// What became of the operation.
    pub code: ResultCode,
    /// Exponent of a reproducible sum.
    pub repsum_m: u8,
    /// Overflow of a reproducible sum, 2 bits.
    pub repsum_overflow: u8,
    /// Participants contribute again.
    pub retry: bool,
    /// What only software reads.
    pub cookie: u32,
    /// The operands.
    pub payload: [u64; 4],
}

impl ReductionPacket {
    /// Bytes of a packet.
    pub const BYTES: usize = 49;

    /// The bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut header = Bits::default();
        header.push(self.sequence.0.into(), 10);
        header.push(self.arm.into(), 1);
        header.push(self.op.into(), 6);
        header.push(self.count.into(), 20);
        header.push(self.answered.0.into(), 10);
        header.push(self.code.0.into(), 4);
        header.push(self.repsum_m.into(), 8);
        header.push(self.repsum_overflow.into(), 2);
        header.push(self.retry.into(), 1);
        header.push(0, 2);
        header.push(self.cookie.into(), 32);
        let mut bytes = [0; Self::BYTES];
        bytes[1..5].copy_from_slice(&self.sender.to_le_bytes());
        bytes[5..17].copy_from_slice(&header.bits.to_be_bytes()[4..]);
        for (chunk, word) in bytes[17..].chunks_exact_mut(8).zip(self.payload) {
            chunk.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }

    /// Reads the bytes; None unless there are 49.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::BYTES] = bytes.try_into().ok()?;
        let mut header = [0; 16];
        header[4..].copy_from_slice(&bytes[5..17]);
        let mut header = Bits {
            bits: u128::from_be_bytes(header),
            at: 0,
        };
        let mut packet = Self {
            sender: u32::from_le_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]),
            ..Self::default()
        };
        packet.sequence = Sequence(header.take(10));
        packet.arm = header.take::<u8>(1) != 0;
        packet.op = header.take(6);
        packet.count = header.take(20);
        packet.answered = Sequence(header.take(10));
        packet.code = ResultCode(header.take(4));
        packet.repsum_m = header.take(8);
        packet.repsum_overflow = header.take(2);
        packet.retry = header.take::<u8>(1) != 0;
        header.skip(2);
        packet.cookie = header.take(32);
        for (word, chunk) in packet.payload.iter_mut().zip(bytes[17..].chunks_exact(8)) {
            *word = chunk
                .iter()
                .fold(0, |word, byte| word << 8 | u64::from(*byte));
        }
        Some(packet)
    }
}

/// The header: one number of 96 bits, from the lowest.
#[derive(Default)]
struct Bits {
    bits: u128,
    at: u32,
}

impl Bits {
    /// Bits that do not fit are cut off.
    fn push(&mut self, value: u64, width: u32) {
        self.bits |= (u128::from(value) & mask(width)) << self.at;
        self.at += width;
    }

    fn take<T: TryFrom<u128> + Default>(&mut self, width: u32) -> T {
        let value = self.bits >> self.at & mask(width);
        self.skip(width);
        T::try_from(value).unwrap_or_default()
    }

    fn skip(&mut self, width: u32) {
        self.at += width;
    }
}

const fn mask(width: u32) -> u128 {
    (1 << width) - 1
}
