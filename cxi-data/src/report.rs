//! How the end of an operation is reported to its initiator.

use cxi_hw::DmaFlags;

use crate::{Counter, Events};

/// Where the initiator hears of the end of an operation: nowhere, unless it says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    pub(crate) eq: u16,
    pub(crate) ct: u16,
    pub(crate) token: u64,
    pub(crate) flags: DmaFlags,
}

impl Default for Report {
    fn default() -> Self {
        Self::none()
    }
}

impl Report {
    /// Nothing is reported.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            eq: 0,
            ct: 0,
            token: 0,
            flags: DmaFlags::EVENT_SEND_DISABLE,
        }
    }

    /// A [`Completion`](crate::Completion) with a token of one's choice.
    #[must_use]
    pub fn event(events: &Events, token: u64) -> Self {
        Self {
            eq: events.id(),
            token,
            ..Self::none()
        }
    }

    /// The end counts in a counter: a success or a failure, of puts, gets and atomics alike.
    #[must_use]
    pub fn counted(mut self, counter: &Counter) -> Self {
        self.ct = counter.id();
        self.flags |= DmaFlags::EVENT_CT_ACK | DmaFlags::EVENT_CT_REPLY;
        self
    }

    /// Bytes count, not operations.
    #[must_use]
    pub fn counted_in_bytes(self, counter: &Counter) -> Self {
        let mut report = self.counted(counter);
        report.flags |= DmaFlags::EVENT_CT_BYTES;
        report
    }

    /// Only failures are events; successes may still count.
    #[must_use]
    pub fn failures_only(mut self) -> Self {
        self.flags |= DmaFlags::EVENT_SUCCESS_DISABLE;
        self
    }
}
