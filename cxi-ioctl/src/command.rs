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

/// Room for the largest response and for what another driver generation may write behind it.
const RESPONSE_ROOM: usize = 256;

/// A byte that differs from its neighbours and is rare in responses, so that what the driver
/// wrote can be told from what it left alone.
const fn canary(index: usize) -> u8 {
    #[allow(
        clippy::cast_possible_truncation,
        reason = "only the low bits are wanted"
    )]
    let mixed = (index as u8).wrapping_mul(0x6D);
    mixed ^ 0xA5
}

const CANARIES: [u8; RESPONSE_ROOM] = {
    let mut bytes = [0; RESPONSE_ROOM];
    let mut index = 0;
    while index < RESPONSE_ROOM {
        bytes[index] = canary(index);
        index += 1;
    }
    bytes
};

/// How many bytes from the start of a canary-filled buffer were written over.
pub(crate) fn written(buffer: &[u8]) -> usize {
    buffer
        .iter()
        .zip(&CANARIES)
        .rposition(|(byte, canary)| byte != canary)
        .map_or(0, |last| last + 1)
}

fn submit<C: Command>(
    transport: &dyn Transport,
    command: &C,
    input: Option<&C::Response>,
    list: &mut [u8],
) -> Result<C::Response, Refusal<C::Response>> {
    const { assert!(size_of::<C::Response>() + 64 <= RESPONSE_ROOM) };
    let expected = size_of::<C::Response>();
    let mut room = CANARIES;
    if let Some(input) = input {
        room[..expected].copy_from_slice(input.as_bytes());
    }
    let result = transport.submit(Request {
        opcode: C::OPCODE,
        command: command.as_bytes(),
        pointers: C::POINTERS,
        response: &mut room,
        list,
    });
    let written = if input.is_some() {
        written(&room).max(expected)
    } else {
        written(&room)
    };
    // The last bytes of a response may happen to equal the canaries; four of them do not.
    let complete = written <= expected && written + 3 >= expected && (written > 0 || expected == 0);
    let response = || {
        C::Response::read_from_bytes(&room[..expected])
            .ok()
            .filter(|_| complete)
    };
    match result {
        Ok(()) => response().ok_or(Refusal {
            error: CommandError::AbiMismatch {
                opcode: C::OPCODE,
                expected,
                written,
            },
            response: None,
        }),
        Err(errno) => Err(Refusal {
            error: CommandError::Refused {
                opcode: C::OPCODE,
                errno,
            },
            response: response(),
        }),
    }
}
