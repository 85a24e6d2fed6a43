//! Typed commands over a [`Transport`].

#![allow(unsafe_code, reason = "commands that carry addresses are unsafe to send")]

use std::mem::offset_of;
use std::sync::Arc;

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};

use crate::abi::service::{SvcAllocResp, SvcFailInfo, SvcUpdateResp};
use crate::{DeviceMemory, Errno, Opcode, Pointers, Request, Transport};

/// A request struct that the driver understands.
pub trait Command: IntoBytes + Immutable {
    /// The opcode that the struct starts with.
    const OPCODE: Opcode;
    /// Positions of the buffers' addresses in the command.
    const POINTERS: Pointers;
    /// The driver's response; `()` for none.
    type Response: FromBytes + IntoBytes + Immutable;
}

/// A command that is safe to send with any field values: it gives the driver and the NIC no address
/// except those of its buffers.
///
/// Other commands are sent with [`execute_unchecked`], or with a function that owns the memory
/// behind the address: [`atu_map`](crate::atu_map), [`ct_alloc`](crate::ct_alloc) and the like.
///
/// # Safety
///
/// Whatever its fields contain, a driver that receives the struct with its opcode reads and writes
/// no memory except its buffers at [`Command::POINTERS`]. The response takes at most 64 bytes more
/// than its [`Response`](Command::Response), and no list is written if the list's address is null.
/// From then on the same applies to the NIC.
pub unsafe trait SafeCommand: Command {}

/// The most entries that [`fetch_list`](crate::fetch_list) makes room for: the count determines an
/// allocation in the kernel.
pub const LIST_MAX: u32 = 65_536;

/// The most commands that [`fetch_list`](crate::fetch_list) sends for one list.
pub const LIST_ROUNDS: u32 = 8;

/// Reason for which a command has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The driver refused.
    #[error("{opcode}: {errno}")]
    Refused {
        /// The command.
        opcode: Opcode,
        /// The driver's errno.
        errno: Errno,
        /// Availability that the driver wrote although it refused, as it does for SVC_ALLOC,
        /// SVC_ALLOC_PARENT and SVC_UPDATE.
        fail_info: Option<SvcFailInfo>,
    },
    /// The driver wrote more or fewer bytes than the response has: it is of another generation.
    #[error(
        "{opcode}: the driver wrote {written} bytes of response, this library expects {expected}: \
         it does not know this version of the driver's interface"
    )]
    AbiMismatch {
        /// The command.
        opcode: Opcode,
        /// Length of the response that this library knows.
        expected: usize,
        /// Number of bytes that were written, as far as can be determined.
        written: usize,
    },
    /// A list did not fit, although there was room for what the driver had announced.
    #[error(
        "{opcode}: the driver reports {count} entries after {rounds} attempts: more than can be \
         fetched (at most {limit} entries in at most {max_rounds} attempts)",
        limit = LIST_MAX, max_rounds = LIST_ROUNDS
    )]
    ListTooLong {
        /// The command.
        opcode: Opcode,
        /// Number of entries that the driver says it has.
        count: u32,
        /// Number of commands that were sent.
        rounds: u32,
    },
}

impl CommandError {
    /// Creates the error of a command that was refused with nothing but an errno.
    #[must_use]
    pub const fn refused(opcode: Opcode, errno: Errno) -> Self {
        Self::Refused { opcode, errno, fail_info: None }
    }

    /// The equivalent errno: the driver's own, EPROTO for a mismatch, EOVERFLOW for a list that
    /// does not fit.
    #[must_use]
    pub const fn errno(self) -> Errno {
        match self {
            Self::Refused { errno, .. } => errno,
            Self::AbiMismatch { .. } => Errno::EPROTO,
            Self::ListTooLong { .. } => Errno::EOVERFLOW,
        }
    }

    /// The availability that the driver wrote although it refused; what is short in a
    /// [service](crate::abi::service::SvcAllocResp) that could not be made.
    #[must_use]
    pub const fn fail_info(self) -> Option<SvcFailInfo> {
        match self {
            Self::Refused { fail_info, .. } => fail_info,
            Self::AbiMismatch { .. } | Self::ListTooLong { .. } => None,
        }
    }

    /// The command.
    #[must_use]
    pub const fn opcode(self) -> Opcode {
        match self {
            Self::Refused { opcode, .. }
            | Self::AbiMismatch { opcode, .. }
            | Self::ListTooLong { opcode, .. } => opcode,
        }
    }
}

impl From<CommandError> for std::io::Error {
    fn from(error: CommandError) -> Self {
        match error {
            CommandError::Refused { errno, .. } => errno.into(),
            _ => Self::other(error),
        }
    }
}

/// Sends a command and returns the driver's response.
///
/// No command is ever sent twice: EINTR and EAGAIN are returned as they are. Most commands change
/// something, and only the caller knows whether repeating one is right. The driver itself returns
/// neither.
///
/// # Errors
///
/// [`CommandError::Refused`] with the driver's errno, or with EINVAL for a struct whose opcode was
/// changed; [`CommandError::AbiMismatch`] if the response does not have the expected length.
pub fn execute<C: SafeCommand>(
    transport: &dyn Transport,
    command: &C,
) -> Result<C::Response, CommandError> {
    // SAFETY: that is what a `SafeCommand` promises; there is no list.
    unsafe { submit(transport, command, Extra::default()) }
}

/// Sends any command, including one that gives the NIC an address or removes its bounds.
///
/// # Safety
///
/// The addresses in the command must be valid for what the driver and the NIC do with them, and
/// remain so until a command that takes them away has succeeded. MAP_CSRS must not be followed by a
/// mapping through which the NIC is made to use any other memory.
///
/// # Errors
///
/// As [`execute`].
#[inline]
pub unsafe fn execute_unchecked<C: Command>(
    transport: &(impl Transport + ?Sized),
    command: &C,
) -> Result<C::Response, CommandError> {
    // SAFETY: the caller answers for the addresses; there is no list.
    unsafe { submit(transport, command, Extra::default()) }
}

/// Side buffers of a command, besides its struct.
pub(crate) struct Extra<'a, R> {
    /// Part of the response that the driver reads before it answers (PTE_STATUS).
    pub(crate) input: Option<&'a R>,
    /// Buffer for a list.
    pub(crate) list: &'a mut [u8],
    /// The memory that the command gives to the NIC.
    pub(crate) memory: Option<&'a Arc<DeviceMemory>>,
}

impl<R> Default for Extra<'_, R> {
    fn default() -> Self {
        Self { input: None, list: &mut [], memory: None }
    }
}

/// Room for the largest response and the headroom behind it.
pub(crate) const RESPONSE_ROOM: usize = 256;

/// Room behind a response for what another driver generation may write there.
const HEADROOM: usize = 64;

/// Number of bytes at the end of a response that may be mistaken for untouched.
///
/// A response byte that happens to equal its canary looks untouched, so the end of what was written
/// is not exact. A number of half the width must be distinguishable from a full one; nothing in the
/// interface is one byte shorter than a number.
const SLACK: usize = 1;

/// A byte that differs from its neighbors and is neither zero, a small number, all ones nor ASCII,
/// so that what the driver wrote can be distinguished from what it left alone.
const fn canary(index: usize) -> u8 {
    #[allow(clippy::cast_possible_truncation, reason = "only the low bits are wanted")]
    let mixed = (index as u8).wrapping_mul(0x6D) ^ (index >> 3) as u8;
    0xA0 | (mixed & 0x1F)
}

/// Content of a response buffer before the driver writes to it.
pub(crate) const CANARIES: [u8; RESPONSE_ROOM] = {
    let mut bytes = [0; RESPONSE_ROOM];
    let mut index = 0;
    while index < RESPONSE_ROOM {
        bytes[index] = canary(index);
        index += 1;
    }
    bytes
};

/// Counts the bytes from the start of a canary-filled buffer that were overwritten.
#[cold]
fn written(room: &[u8]) -> usize {
    touched(&CANARIES, room)
}

/// A response, and room behind it. A type rather than a slice of [`CANARIES`], so that the compiler
/// knows all lengths and copies and compares in place.
#[derive(FromBytes, IntoBytes, Immutable)]
#[repr(C, packed)]
struct Room<R> {
    response: R,
    headroom: [u8; HEADROOM],
}

impl<R: FromBytes + IntoBytes + Immutable> Room<R> {
    const LEN: usize = size_of::<R>();

    #[inline]
    fn new() -> Self {
        const { assert!(size_of::<Self>() <= RESPONSE_ROOM) };
        Self::read_from_prefix(&CANARIES).map_or_else(|_| Self::new_zeroed(), |(room, _)| room)
    }

    /// Returns whether the driver wrote the response to its end, and no more.
    #[inline]
    fn is_whole(&self) -> bool {
        let (tail, end) = (Self::LEN.saturating_sub(SLACK + 1), Self::LEN);
        // Nothing is written where there is no response.
        if end == 0 {
            return true;
        }
        let bytes = self.as_bytes();
        // Compared in parts of a length that the compiler compares in place.
        let (headroom, canaries) = (bytes[end..].as_chunks::<32>(), CANARIES[end..].as_chunks());
        let mut parts = headroom.0.iter().zip(canaries.0);
        bytes[tail..end] != CANARIES[tail..end] && parts.all(|(now, canary)| now == canary)
    }
}

/// Counts the bytes from the start up to the last one that changed.
pub(crate) fn touched(before: &[u8], after: &[u8]) -> usize {
    before.iter().zip(after).rposition(|(old, new)| old != new).map_or(0, |last| last + 1)
}

/// Sends a command with a canary-filled buffer; for responses of more than one length.
///
/// Returns the driver's answer, the buffer, and how many bytes of it were written.
pub(crate) fn submit_measured<C: SafeCommand>(
    transport: &dyn Transport,
    command: &C,
) -> (Result<(), Errno>, [u8; RESPONSE_ROOM], usize) {
    let mut room = CANARIES;
    // SAFETY: that is what a `SafeCommand` promises; there is no list.
    let result = unsafe { send(transport, command, &mut room, &mut [], None) };
    (result, room, written(&room))
}

/// # Safety
///
/// As [`Request::from_raw`], except for the opcode and for addresses in `memory`.
#[inline]
unsafe fn send<C: Command>(
    transport: &(impl Transport + ?Sized),
    command: &C,
    response: &mut [u8],
    list: &mut [u8],
    memory: Option<&Arc<DeviceMemory>>,
) -> Result<(), Errno> {
    let bytes = command.as_bytes();
    // The number is a public field; with another value it would be another command.
    if bytes.first_chunk() != Some(&C::OPCODE.number().to_ne_bytes()) {
        return Err(Errno::EINVAL);
    }
    // SAFETY: the opcode was checked, and the caller vouches for the rest.
    let request = unsafe { Request::from_raw(C::OPCODE, bytes, C::POINTERS, response, list) };
    transport.submit(request.with_memory(memory))
}

/// Sends a command with a response buffer that has headroom.
///
/// # Safety
///
/// The driver writes no more to the list than there is room for. All other addresses in the command
/// are in `memory`, or the caller guarantees them.
#[inline]
pub(crate) unsafe fn submit<C: Command>(
    transport: &(impl Transport + ?Sized),
    command: &C,
    Extra { input, list, memory }: Extra<'_, C::Response>,
) -> Result<C::Response, CommandError> {
    let mut room = Room::<C::Response>::new();
    let expected = Room::<C::Response>::LEN;
    if let Some(input) = input {
        room.as_mut_bytes()[..expected].copy_from_slice(input.as_bytes());
    }
    // A command without a response has no pointer that a driver could write through.
    let buffer = if expected == 0 { &mut [] } else { room.as_mut_bytes() };
    // SAFETY: the room is that of the response and its headroom; the caller vouches for the list
    // and for other addresses.
    let result = unsafe { send(transport, command, buffer, list, memory) };

    if result.is_ok() && room.is_whole() {
        return Ok(room.response);
    }
    Err(refusal(C::OPCODE, result, (expected > 0).then_some(&room)))
}

/// Returns the place in the response to a command where the driver says what was short. It writes
/// that also when it refuses.
const fn fail_info_offset(opcode: Opcode) -> Option<usize> {
    match opcode {
        Opcode::SVC_ALLOC | Opcode::SVC_ALLOC_PARENT => Some(offset_of!(SvcAllocResp, fail_info)),
        Opcode::SVC_UPDATE => Some(offset_of!(SvcUpdateResp, fail_info)),
        _ => None,
    }
}

/// Returns the error of a command that has failed, or whose response is wrong.
#[cold]
#[inline(never)]
fn refusal<R: FromBytes + IntoBytes + Immutable>(
    opcode: Opcode,
    result: Result<(), Errno>,
    room: Option<&Room<R>>,
) -> CommandError {
    match result {
        Ok(()) => CommandError::AbiMismatch {
            opcode,
            expected: Room::<R>::LEN,
            written: room.map_or(0, |room| written(room.as_bytes())),
        },
        Err(errno) => {
            let whole = room.filter(|room| room.is_whole());
            let place = whole.zip(fail_info_offset(opcode));
            let info = place.and_then(|(room, offset)| room.as_bytes().get(offset..));
            let info = info.and_then(|bytes| SvcFailInfo::read_from_prefix(bytes).ok());
            CommandError::Refused { opcode, errno, fail_info: info.map(|(info, _)| info) }
        }
    }
}

#[cfg(test)]
#[path = "command/tests.rs"]
mod tests;
