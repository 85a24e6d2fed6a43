//! Messages between neighbors in the tree, and their form on the wire.

use super::{Cause, Failure, Operation, State, Value};

/// Content of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// To the parent: all members from this one down have entered.
    Ready(Operation, Value),
    /// To a child: all members have entered.
    Release(Value),
    /// To the parent: the release has arrived.
    Released,
    /// To a child that has not reported: a question about its state.
    Ask,
    /// The state of the sender, and the rank of the member that it waits for.
    Status(State, u32),
    /// The group has failed.
    Failed(Failure),
    /// A question to any process: see [`Pings`](super::Pings). A member of a group does not take it.
    Ping,
    /// The answer, with the number of the question.
    Pong,
}

/// A message with what it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Number of the group.
    pub group: u32,
    /// Rank of the sender.
    pub from: u32,
    /// Number of the operation in the group. Numbers start with 0 and wrap.
    pub transaction: u32,
    /// The content.
    pub message: Message,
}

/// The start of each packet: the protocol and its version.
const MAGIC: [u8; 4] = *b"cxC1";

const STATES: [State; 4] = [State::Idle, State::Filling, State::Full, State::Exiting];
const CAUSES: [Cause; 4] = [Cause::Silent, Cause::Late, Cause::OtherOperation, Cause::OutOfStep];

fn code<T: PartialEq>(all: &[T], item: &T) -> u8 {
    all.iter().zip(0..).find(|(one, _)| *one == item).map_or(u8::MAX, |(_, code)| code)
}

impl Packet {
    /// Length on the wire, in bytes.
    pub const BYTES: usize = 88;

    /// The form on the wire. Numbers are little-endian.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let (kind, detail, rank, value) = match self.message {
            Message::Ready(operation, value) => (0, operation.code(), 0, value),
            Message::Release(value) => (1, 0, 0, value),
            Message::Released => (2, 0, 0, [0; 8]),
            Message::Ask => (3, 0, 0, [0; 8]),
            Message::Status(state, rank) => (4, code(&STATES, &state), rank, [0; 8]),
            Message::Failed(Failure { rank, cause }) => (5, code(&CAUSES, &cause), rank, [0; 8]),
            Message::Ping => (6, 0, 0, [0; 8]),
            Message::Pong => (7, 0, 0, [0; 8]),
        };
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..6].copy_from_slice(&[kind, detail]);
        for (field, at) in
            [self.group, self.from, self.transaction, rank].iter().zip((8..).step_by(4))
        {
            bytes[at..at + 4].copy_from_slice(&field.to_le_bytes());
        }
        for (word, at) in value.iter().zip((24..).step_by(8)) {
            bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// A packet from the wire. Bytes that are not one give `None`.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (bytes, []) = bytes.split_first_chunk::<{ Self::BYTES }>()? else { return None };
        if bytes[..4] != MAGIC {
            return None;
        }
        let field =
            |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| bytes[8 + 4 * at + byte]));
        let (detail, rank) = (bytes[5], field(3));
        let value = std::array::from_fn(|word| {
            u64::from_le_bytes(std::array::from_fn(|byte| bytes[24 + 8 * word + byte]))
        });
        let message = match bytes[4] {
            0 => Message::Ready(Operation::from_code(detail)?, value),
            1 => Message::Release(value),
            2 => Message::Released,
            3 => Message::Ask,
            4 => Message::Status(*STATES.get(usize::from(detail))?, rank),
            5 => Message::Failed(Failure { rank, cause: *CAUSES.get(usize::from(detail))? }),
            6 => Message::Ping,
            7 => Message::Pong,
            _ => return None,
        };
        Some(Self { group: field(0), from: field(1), transaction: field(2), message })
    }
}
