//! The log of a pool that several controllers share.
//!
//! A scheduler that fails over has more than one process that may change the pool. All they share is
//! the log: an event takes effect when it is in the log, and the log accepts it only right after the
//! last event that its writer saw. So two writers never assign the same VNI, even if both believe
//! that they lead.
//!
//! [`EventLog`] is the interface of a store: two functions. [`MemoryLog`] is one for tests,
//! [`FileLog`] one for processes on one machine, and `check` (feature `testing`) tests another one.
//! [`SharedPool`] is a pool on such a log.
//!
//! A log does not grow without bound: every 5,000 changes a [`SharedPool`] appends the whole pool, and
//! a store may remove what is before that.
//!
//! Allocations never expire. A store with leases must not attach events to one: when a controller
//! dies, services with its VNIs continue to exist on the nodes.

mod file;
mod memory;
mod shared;
#[cfg(feature = "testing")]
mod tests;

pub use file::FileLog;
pub use memory::MemoryLog;
pub use shared::{ChangeError, SharedPool};
#[cfg(feature = "testing")]
#[cfg_attr(docsrs, doc(cfg(feature = "testing")))]
pub use tests::check;

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

use super::{Change, Event};

/// An event, and who logged it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The leadership under which it was written; 0 without leaders.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub epoch: u64,
    /// A name that no other writer has, nor the same one after a restart; may be empty where each
    /// append has a clear outcome.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub writer: String,
    /// The event.
    #[serde(flatten)]
    pub event: Event,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
const fn is_zero(epoch: &u64) -> bool {
    *epoch == 0
}

impl Record {
    /// Returns whether the records before this one are no longer needed.
    #[must_use]
    pub const fn is_beginning(&self) -> bool {
        matches!(self.event.change, Change::Saved { .. })
    }
}

/// Store of a pool's events, in order and without gaps.
///
/// With a record that [is a beginning](Record::is_beginning), or at any time later, a log may remove
/// those before it.
pub trait EventLog: fmt::Debug {
    /// Returns all records whose events have a number above `after`, in order; those before the last
    /// beginning may be missing. What an append has reported as done is among them.
    ///
    /// # Errors
    /// [`LogError`]: the log cannot be read.
    fn load(&mut self, after: u64) -> Result<Vec<Record>, LogError>;

    /// Appends a record in one step, if its event's number follows the last one in the log and no
    /// record in the log has a higher epoch. It is durable before this returns.
    ///
    /// # Errors
    /// [`AppendError`].
    fn append(&mut self, record: &Record) -> Result<(), AppendError>;

    /// Sets how long all calls from now on may take together, where a log waits for others: for its
    /// turn, or for an answer. Without it, or for longer, a log waits as long as it was made to.
    fn within(&mut self, time: Duration) {
        let _ = time;
    }
}

impl<L: EventLog + ?Sized> EventLog for Box<L> {
    fn load(&mut self, after: u64) -> Result<Vec<Record>, LogError> {
        (**self).load(after)
    }

    fn append(&mut self, record: &Record) -> Result<(), AppendError> {
        (**self).append(record)
    }

    fn within(&mut self, time: Duration) {
        (**self).within(time);
    }
}

/// Reason for which a log cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the log of the pool: {0}")]
pub struct LogError(#[source] pub BoxError);

/// An error of a store.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Reason for which a record was not appended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// The log ends elsewhere: another writer has appended in the meantime.
    #[error("the log of the pool has changed since it was read")]
    Moved,
    /// A later leader has written: this one must stop.
    #[error("a leader with epoch {epoch} has taken over the log of the pool")]
    Deposed {
        /// The highest epoch in the log.
        epoch: u64,
    },
    /// The record may be in the log or not, now or later: the answer of the store was lost.
    #[error("cannot tell whether the log of the pool was written: {0}")]
    Unknown(#[source] BoxError),
    /// The record is not in the log.
    #[error("cannot write the log of the pool: {0}")]
    Failed(#[source] BoxError),
}
