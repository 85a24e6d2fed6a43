//! The messages between a program and whoever serves a node, as packets of a SOCK_SEQPACKET socket.
//! Both are on one machine, so numbers have its byte order.
//!
//! A question is one packet: a [`Head`] and what it is about. An answer is a packet with a [`Head`]
//! and the response, followed by as many packets as the list needs. Descriptors travel with the first
//! packet.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The version of the messages.
const VERSION: u32 = 1;

/// Bytes of a list in one packet; less than any kernel's limit for a packet.
pub const PACKET: usize = 32 << 10;

/// Bytes of the longest question after its head.
pub const LONGEST_QUESTION: usize = 16 << 10;

/// Bytes of the longest response, apart from the list.
pub const LONGEST_RESPONSE: usize = 16 << 10;

/// Bytes of the longest list.
pub const LONGEST_LIST: usize = 16 << 20;

/// Identity of an open file for another process that has it, too. An open file of a node that has files
/// tells its own when exactly this many bytes are read from it.
pub type Token = [u8; 16];

/// The start of each question and answer.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
#[allow(clippy::exhaustive_structs, reason = "its fields are the protocol")]
pub struct Head {
    /// Of a question, [`Question::code`]; of an answer, an errno, or 0.
    pub kind: u32,
    /// Depends on the question.
    pub number: u32,
    /// Number of bytes of response that follow, or fit.
    pub response: u32,
    /// Number of bytes of a list that follow, or fit.
    pub list: u32,
}

/// A question of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Question {
    /// Opens the NIC `number`; comes with the memory of the process, if it has it. The response is a
    /// [`Token`].
    Open,
    /// Joins an open file by its token, after a fork or a change of the user, or for the windows of a
    /// device file; comes with the memory of the process, if it has it.
    Join,
    /// A command of `number` bytes, followed by the contents of the response buffer if the driver
    /// reads it.
    Command,
    /// Asks for the memory of the windows of the open file, an offset and a length (two 64-bit words)
    /// in it; it comes with the answer. The answer's number is 1 if the window is a doorbell.
    Map,
    /// Reads the file of sysfs with that path; the list is its contents.
    Read,
    /// Lists the directory of sysfs with that path: names, each with a null byte behind it.
    List,
    /// The target of the link of sysfs with that path.
    Link,
    /// Returns whether there is a file of sysfs with that path; the response is its length (a 64-bit word).
    Length,
    /// Writes a file of sysfs: a path of `number` bytes, and the contents.
    Write,
    /// Watches the wait object whose file of sysfs has that path. A descriptor comes with the answer,
    /// which reports POLLPRI when the object is woken, until the program has received what it got.
    Watch,
    /// Lets the server wait for stores to a doorbell, whose window was mapped: the offset, the address and
    /// the length (three 64-bit words). It comes with a userfaultfd of the process.
    Trap,
}

impl Question {
    const ALL: [Self; 11] = [
        Self::Open,
        Self::Join,
        Self::Command,
        Self::Map,
        Self::Read,
        Self::List,
        Self::Link,
        Self::Length,
        Self::Write,
        Self::Watch,
        Self::Trap,
    ];

    /// The number that stands for it in a [`Head`]. It contains the version.
    #[must_use]
    pub fn code(self) -> u32 {
        VERSION << 16 | self as u32
    }

    /// The question with that number; `None` if it is of another version.
    #[must_use]
    pub fn of(code: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|question| question.code() == code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_lead_back_to_their_questions() {
        for question in Question::ALL {
            assert_eq!(Question::of(question.code()), Some(question));
            assert_eq!(Question::of(question.code() ^ 1 << 16), None);
        }
        assert_eq!(Question::of(0), None);
    }
}
