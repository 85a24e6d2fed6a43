//! Typed commands over a [`Transport`].

use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::{Errno, Opcode, Pointers, Request, Transport};

/// A request struct that a driver understands.
pub trait Command: IntoBytes + Immutable {
    /// What the struct starts with.
    const OPCODE: Opcode;
    /// Where the addresses of the buffers go.
    const POINTERS: Pointers;
    /// What the driver answers; `()` for nothing.
    type Response: FromBytes + IntoBytes + Immutable;
}

/// Why a command has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The driver refused.
    #[error("{opcode}: {errno}")]
    Refused {
        /// The command.
        opcode: Opcode,
        /// The driver's answer.
        errno: Errno,
    },
    /// The driver wrote more or fewer bytes than the response has: another driver generation.
    #[error(
        "{opcode}: the driver wrote {written} bytes of response, this library knows {expected}: \
         the driver's interface is of a generation that this library does not know"
    )]
    AbiMismatch {
        /// The command.
        opcode: Opcode,
        /// Length of the response that this library knows.
        expected: usize,
        /// Bytes found written, as far as can be seen.
        written: usize,
    },
}

impl CommandError {
    /// The errno that says the same: the driver's own, or EPROTO for a mismatch.
    #[must_use]
    pub const fn errno(self) -> Errno {
        match self {
            Self::Refused { errno, .. } => errno,
            Self::AbiMismatch { .. } => Errno::EPROTO,
        }
    }

    /// The command.
    #[must_use]
    pub const fn opcode(self) -> Opcode {
        match self {
            Self::Refused { opcode, .. } | Self::AbiMismatch { opcode, .. } => opcode,
        }
    }
}

impl From<CommandError> for std::io::Error {
    fn from(error: CommandError) -> Self {
        match error {
            CommandError::Refused { errno, .. } => errno.into(),
            CommandError::AbiMismatch { .. } => Self::other(error),
        }
    }
}

/// A refused command, with what the driver wrote into the response all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal<R> {
    /// What went wrong.
    pub error: CommandError,
    /// The response, if the driver wrote one; SVC_ALLOC says there what was short.
    pub response: Option<R>,
}

/// Sends a command and returns the driver's response.
///
/// # Errors
///
/// [`CommandError::Refused`] with the driver's errno, [`CommandError::AbiMismatch`] if the
/// response does not have the length this library knows.
pub fn execute<C: Command>(
    transport: &dyn Transport,
    command: &C,
) -> Result<C::Response, CommandError> {
    execute_list(transport, command, &mut [])
}

/// Sends a command that fills a list besides its response.
///
/// # Errors
///
/// As [`execute`].
pub fn execute_list<C: Command>(
    transport: &dyn Transport,
    command: &C,
    list: &mut [u8],
) -> Result<C::Response, CommandError> {
    submit(transport, command, None, list).map_err(|refusal| refusal.error)
}

/// Sends a command whose response the driver reads before it answers (PTE_STATUS).
///
/// # Errors
///
/// As [`execute`].
pub fn execute_inout<C: Command>(
    transport: &dyn Transport,
    command: &C,
    input: &C::Response,
    list: &mut [u8],
) -> Result<C::Response, CommandError> {
    submit(transport, command, Some(input), list).map_err(|refusal| refusal.error)
}

/// Sends a command whose response says why it was refused (SVC_ALLOC, SVC_UPDATE).
///
/// # Errors
///
/// As [`execute`], with the response if the driver wrote one.
pub fn execute_explained<C: Command>(
    transport: &dyn Transport,
    command: &C,
) -> Result<C::Response, Refusal<C::Response>> {
    submit(transport, command, None, &mut [])
}

/// Room behind a response for what another driver generation may write there.
const HEADROOM: usize = 64;

/// Room for the largest response and the headroom behind it.
const RESPONSE_ROOM: usize = 256;

/// Bytes that differ from their neighbours and are rare in responses, so that what the driver
/// wrote can be told from what it left alone.
const CANARIES: [u8; RESPONSE_ROOM] = {
    let mut bytes = [0; RESPONSE_ROOM];
    let mut index = 0;
    let mut canary = 0xA5_u8;
    while index < RESPONSE_ROOM {
        bytes[index] = canary;
        canary = canary.wrapping_add(0x6D);
        index += 1;
    }
    bytes
};

/// How many bytes from the start of a canary-filled buffer were written over.
fn written(buffer: &[u8]) -> usize {
    buffer
        .iter()
        .zip(&CANARIES)
        .rposition(|(byte, canary)| byte != canary)
        .map_or(0, |last| last + 1)
}

/// Whether the driver wrote a response of just this length. The last bytes of a response may
/// happen to equal the canaries; the last four of them do not.
fn is_complete(buffer: &[u8], expected: usize) -> bool {
    let tail = expected.saturating_sub(4)..expected;
    buffer[tail.clone()] != CANARIES[tail] && buffer[expected..] == CANARIES[expected..buffer.len()]
}

fn submit<C: Command>(
    transport: &dyn Transport,
    command: &C,
    input: Option<&C::Response>,
    list: &mut [u8],
) -> Result<C::Response, Refusal<C::Response>> {
    const { assert!(size_of::<C::Response>() + HEADROOM <= RESPONSE_ROOM) };
    let expected = size_of::<C::Response>();
    let mut canaries = CANARIES;
    // A command without a response has no pointer that a driver could write through.
    let room = if expected == 0 {
        &mut [][..]
    } else {
        &mut canaries[..expected + HEADROOM]
    };
    if let Some(input) = input {
        room[..expected].copy_from_slice(input.as_bytes());
    }
    let result = transport.submit(Request {
        opcode: C::OPCODE,
        command: command.as_bytes(),
        pointers: C::POINTERS,
        response: room,
        list,
    });
    let complete = expected == 0 || is_complete(room, expected);
    let response = C::Response::read_from_bytes(&room[..expected])
        .ok()
        .filter(|_| complete);
    match (result, response) {
        (Ok(()), Some(response)) => Ok(response),
        (Ok(()), None) => Err(Refusal {
            error: CommandError::AbiMismatch {
                opcode: C::OPCODE,
                expected,
                written: written(room),
            },
            response: None,
        }),
        (Err(errno), response) => Err(Refusal {
            error: CommandError::Refused {
                opcode: C::OPCODE,
                errno,
            },
            response,
        }),
    }
}
