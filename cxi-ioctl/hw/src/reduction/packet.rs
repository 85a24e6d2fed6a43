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

    /// Returns whether this one came after the other.
    #[must_use]
    pub const fn is_newer_than(self, other: Self) -> bool {
        let ahead = (self.0 + SEQUENCES - other.0 % SEQUENCES) % SEQUENCES;
        ahead != 0 && ahead < SEQUENCES / 2
    }
}

/// The outcome of an operation so far. Of two, the larger one counts.
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
    /// There were more contributions than participants.
    pub const TOO_MANY: Self = Self(7);
    /// Participants disagree on the operation.
    pub const OPERATION_MISMATCH: Self = Self(8);
}

/// A contribution, a result, or an order to arm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "its bits are the hardware's")]
pub struct ReductionPacket {
    /// The sender: the index of a participant, or the number of an engine that merged several.
    pub sender: u32,
    /// Number that the packet counts under; from the root, the one that is armed.
    pub sequence: Sequence,
    /// Engines are armed.
    pub arm: bool,
    /// The operation, 6 bits.
    pub op: u8,
    /// Contributions in it, 20 bits.
    pub count: u32,
    /// The sequence number that it answers to.
    pub answered: Sequence,
    /// Result of the operation.
    pub code: ResultCode,
    /// Exponent of a reproducible sum.
    pub repsum_m: u8,
    /// Overflow of a reproducible sum, 2 bits.
    pub repsum_overflow: u8,
    /// Participants contribute again.
    pub retry: bool,
    /// Number that only software reads.
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
        let values = [
            self.sequence.0.into(),
            self.arm.into(),
            self.op.into(),
            self.count,
            self.answered.0.into(),
            self.code.0.into(),
            self.repsum_m.into(),
            self.repsum_overflow.into(),
            self.retry.into(),
            0,
            self.cookie,
        ];
        let (mut header, mut at) = (0, 0);
        for (value, width) in values.into_iter().zip(HEADER) {
            header |= (u128::from(value) & mask(width)) << at;
            at += width;
        }
        let mut bytes = [0; Self::BYTES];
        bytes[1..5].copy_from_slice(&self.sender.to_le_bytes());
        bytes[5..17].copy_from_slice(&header.to_be_bytes()[4..]);
        for (chunk, word) in bytes[17..].chunks_exact_mut(8).zip(self.payload) {
            chunk.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }

    /// Reads the bytes; None unless there are 49.
    #[must_use]
    // A value is no wider than its field.
    #[allow(clippy::cast_possible_truncation)]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::BYTES] = bytes.try_into().ok()?;
        let mut header = [0; 16];
        header[4..].copy_from_slice(&bytes[5..17]);
        let mut rest = u128::from_be_bytes(header);
        let [sequence, arm, op, count, answered, code, m, overflow, retry, _, cookie] =
            HEADER.map(|width| {
                let value = rest & mask(width);
                rest >>= width;
                value as u32
            });
        let mut packet = Self {
            sender: u32::from_le_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]),
            sequence: Sequence(sequence as u16),
            arm: arm != 0,
            op: op as u8,
            count,
            answered: Sequence(answered as u16),
            code: ResultCode(code as u8),
            repsum_m: m as u8,
            repsum_overflow: overflow as u8,
            retry: retry != 0,
            cookie,
            payload: [0; 4],
        };
        for (word, chunk) in packet.payload.iter_mut().zip(bytes[17..].as_chunks().0) {
            *word = u64::from_be_bytes(*chunk);
        }
        Some(packet)
    }
}

/// Bits of the fields of the header, a number of 96 bits, from the lowest.
const HEADER: [u32; 11] = [10, 1, 6, 20, 10, 4, 8, 2, 1, 2, 32];

const fn mask(width: u32) -> u128 {
    (1 << width) - 1
}
