//! Reports of the end of an operation to its initiator.

use cxi_hw::{CState, DmaFlags};

use crate::{Counter, Events};

/// Way in which the initiator is notified of the end of an operation. By default it is not.
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
        Self { eq: 0, ct: 0, token: 0, flags: DmaFlags::EVENT_SEND_DISABLE }
    }

    /// A [`Completion`](crate::Completion) with a token.
    #[must_use]
    pub fn event(events: &Events, token: u64) -> Self {
        Self { eq: events.id(), token, ..Self::none() }
    }

    /// Counts the end in a counter, as a success or a failure; for puts, gets and atomics alike.
    #[must_use]
    pub fn counted(mut self, counter: &Counter) -> Self {
        self.ct = counter.id();
        self.flags |= DmaFlags::EVENT_CT_ACK | DmaFlags::EVENT_CT_REPLY;
        self
    }

    /// Counts bytes instead of operations.
    #[must_use]
    pub fn counted_in_bytes(self, counter: &Counter) -> Self {
        let mut report = self.counted(counter);
        report.flags |= DmaFlags::EVENT_CT_BYTES;
        report
    }

    /// The state that immediate commands with this report share.
    pub(crate) fn state(self, flags: DmaFlags, index_ext: u8) -> CState {
        CState {
            flags: flags | self.flags,
            index_ext,
            user_ptr: self.token,
            ct: self.ct,
            eq: self.eq,
            ..CState::default()
        }
    }

    /// Reports only failures as events; successes may still be counted.
    #[must_use]
    pub fn failures_only(mut self) -> Self {
        self.flags |= DmaFlags::EVENT_SUCCESS_DISABLE;
        self
    }
}
