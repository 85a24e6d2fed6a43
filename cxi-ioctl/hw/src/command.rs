//! Head of all commands, and their flags.

use bitflags::bitflags;

use crate::Class;
use crate::value::{Value, newtypes};

/// Bytes of a slot. Commands take one, two, four or eight, at a multiple of their own size.
pub const SLOT_BYTES: usize = 32;

/// The first byte of a command: its class, its size class and the operation in the class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CommandByte(pub u8);

impl CommandByte {
    /// A command of `32 << size` bytes.
    #[must_use]
    pub const fn new(class: Class, size: u8, opcode: u8) -> Self {
        Self((class.0 & 3) | ((size & 3) << 2) | (opcode << 4))
    }

    /// The class.
    #[must_use]
    pub const fn class(self) -> Class {
        Class(self.0 & 3)
    }

    /// The operation within the class.
    #[must_use]
    pub const fn opcode(self) -> u8 {
        self.0 >> 4
    }

    /// Slots that the command takes.
    #[must_use]
    pub const fn slots(self) -> usize {
        1 << ((self.0 >> 2) & 3)
    }

    /// Bytes that the command takes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        SLOT_BYTES * self.slots()
    }
}

newtypes!(CommandByte);

bitflags! {
    /// Flags that transmit commands have in common.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct DmaFlags: u16 {
        /// No SEND event.
        const EVENT_SEND_DISABLE = 1 << 0;
        /// Events of failures alone.
        const EVENT_SUCCESS_DISABLE = 1 << 1;
        /// SEND counts.
        const EVENT_CT_SEND = 1 << 2;
        /// REPLY counts.
        const EVENT_CT_REPLY = 1 << 3;
        /// ACK counts.
        const EVENT_CT_ACK = 1 << 4;
        /// Bytes are counted, not operations.
        const EVENT_CT_BYTES = 1 << 5;
        /// A variant of get.
        const GET_WITH_LOCAL_FLAG = 1 << 6;
        /// Unordered, without matching.
        const RESTRICTED = 1 << 7;
        /// Of a reduction.
        const REDUCTION = 1 << 8;
        /// Acknowledged only when all earlier writes are visible.
        const FLUSH = 1 << 9;
        /// A rendezvous get starts at the remote offset of the put.
        const USE_OFFSET_FOR_GET = 1 << 10;
    }

    /// Flags of a list entry: operations that it counts, reports and accepts.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct TargetFlags: u16 {
        /// Bytes are counted, not operations.
        const EVENT_CT_BYTES = 1 << 0;
        /// Unexpected messages that the entry takes count.
        const EVENT_CT_OVERFLOW = 1 << 1;
        /// Communication counts.
        const EVENT_CT_COMM = 1 << 2;
        /// No UNLINK event.
        const EVENT_UNLINK_DISABLE = 1 << 3;
        /// Events of failures alone.
        const EVENT_SUCCESS_DISABLE = 1 << 4;
        /// No events of communication.
        const EVENT_COMM_DISABLE = 1 << 5;
        /// No LINK event.
        const EVENT_LINK_DISABLE = 1 << 6;
        /// The last write may be reordered.
        const UNRESTRICTED_END_RO = 1 << 7;
        /// Writes but the last may be reordered.
        const UNRESTRICTED_BODY_RO = 1 << 8;
        /// No headers of unexpected messages are kept.
        const UNEXPECTED_HDR_DISABLE = 1 << 9;
        /// Only one match; for a search, only the first hit.
        const USE_ONCE = 1 << 10;
        /// A message that does not fit does not match.
        const NO_TRUNCATE = 1 << 11;
        /// The entry has its own offset.
        const MANAGE_LOCAL = 1 << 12;
        /// Gets may match.
        const OP_GET = 1 << 13;
        /// Puts may match.
        const OP_PUT = 1 << 14;
    }
}

macro_rules! flags {
    ($($flags:ty)*) => {$(
        impl Value for $flags {
            fn from_bits(bits: u64) -> Self {
                Self::from_bits_truncate(Value::from_bits(bits))
            }

            fn to_bits(self) -> u64 {
                self.bits().into()
            }
        }
    )*};
}

flags!(DmaFlags TargetFlags);

/// Bytes of payload that fit into an immediate command.
pub const MAX_IDC_PAYLOAD: usize = 224;
