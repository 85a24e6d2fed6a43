//! Errors of the data path.

use std::ops::Range;
use std::time::Duration;

use cxi::Errno;
use cxi_hw::ReturnCode;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Reason for which an operation was not performed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A command queue has no room for a command until the NIC has read earlier ones.
    #[error(
        "the command queue is full: the command takes {needed} slots of 32 bytes, {free} are free"
    )]
    Full {
        /// Slots that the command takes, including empty ones before it.
        needed: u32,
        /// Slots that are free.
        free: u32,
    },
    /// The NIC has refused a command, and no longer reads this queue.
    #[error("the command queue has stopped at a command that the NIC refused: {0}")]
    Stopped(#[source] Failure),
    /// Events were lost because an event queue was full.
    #[error("events were lost: the event queue was full")]
    Overflow,
    /// Nothing arrived in time.
    #[error("nothing arrived within {0:?}")]
    TimedOut(Duration),
    /// A range that is not inside a buffer.
    #[error("bytes {} to {}: expected a range within the {len} bytes of the buffer", .range.start, .range.end)]
    OutOfBounds {
        /// The range.
        range: Range<usize>,
        /// Bytes of the buffer.
        len: usize,
    },
    /// More bytes than fit into a command.
    #[error("{len} bytes: expected at most {most}")]
    TooLong {
        /// Number that there were.
        len: usize,
        /// Number that there may be.
        most: usize,
    },
    /// Operands of an atomic that do not fit together.
    #[error("{0}")]
    Operands(&'static str),
    /// A number of the driver that is too large for commands.
    #[error("{what} {number}: expected at most {most}")]
    Number {
        /// The kind of object: "event queue", "counter".
        what: &'static str,
        /// The number.
        number: u32,
        /// The highest.
        most: u32,
    },
    /// The event queue holds something that is not an event.
    #[error("the event queue holds something that is not an event at byte {at}")]
    NoEvent {
        /// Its position in the queue's memory, in bytes.
        at: usize,
    },
    /// The driver refused something.
    #[error(transparent)]
    Device(#[from] cxi::Error),
    /// A window or a buffer is not of the size that the driver reported.
    #[error("memory shared with the NIC is smaller than the driver reported: {0}")]
    Memory(#[from] Errno),
}

/// The highest number of an event queue, a counter or a PtlTE: commands have eleven bits for it.
const MOST: u32 = 2047;

/// The number of an object as commands have it.
pub(crate) fn in_command(what: &'static str, number: u32) -> Result<u16> {
    let fits = u16::try_from(number).ok().filter(|_| number <= MOST);
    fits.ok_or(Error::Number { what, number, most: MOST })
}

/// Result of an operation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{0}: {reason}", reason = reason(*.0))]
pub struct Failure(pub ReturnCode);

impl Failure {
    /// The result that a return code stands for.
    pub(crate) fn check(code: ReturnCode) -> Result<(), Self> {
        if code == ReturnCode::OK { Ok(()) } else { Err(Self(code)) }
    }
}

/// The meaning of the codes that programs may meet.
fn reason(code: ReturnCode) -> &'static str {
    match code {
        ReturnCode::UNDELIVERABLE => "the NIC cannot be reached",
        ReturnCode::PT_DISABLED => "the PtlTE is disabled",
        ReturnCode::DROPPED => "the message was dropped",
        ReturnCode::PERM_VIOLATION | ReturnCode::OP_VIOLATION => {
            "the list entry does not allow the operation, or ends before it"
        }
        ReturnCode::NO_MATCH => "nothing matches",
        ReturnCode::NO_SPACE => "the pool of list entries is empty",
        ReturnCode::ENTRY_NOT_FOUND => "the list entry was not found",
        ReturnCode::VNI_NOT_FOUND => "no process receives on the VNI",
        ReturnCode::PTLTE_NOT_FOUND => "no PtlTE is mapped at the PID and portal index",
        ReturnCode::PTLTE_SW_MANAGED => "software manages the lists of the PtlTE",
        ReturnCode::NO_TRANSLATION => "the address is not registered",
        ReturnCode::PAGE_PERM_ERROR => "the memory is not registered for that access",
        ReturnCode::AMO_INVAL_OP_ERROR => "the type of the operands does not have that operation",
        ReturnCode::AMO_ALIGN_ERROR => "the target of an atomic is not aligned",
        ReturnCode::ILLEGAL_OP => "the queue does not take that command",
        ReturnCode::CMD_INVALID_ARG => "the command names something that it may not use",
        ReturnCode::CANCELED | ReturnCode::MST_CANCELLED => "the operation was canceled",
        _ => "the operation failed",
    }
}

#[cfg(test)]
mod tests {
    use super::in_command;

    #[test]
    fn a_number_that_commands_cannot_hold_is_an_error() {
        assert_eq!(in_command("PtlTE", 2047).unwrap(), 2047);
        for number in [2048, 65_536, u32::MAX] {
            let error = in_command("PtlTE", number).unwrap_err().to_string();
            assert_eq!(error, format!("PtlTE {number}: expected at most 2047"));
        }
    }
}
