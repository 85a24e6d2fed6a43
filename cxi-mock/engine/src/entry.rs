//! List entries (LEs): where a message may go.

use cxi_hw::{TargetCommand, TargetFlags};

use crate::packet::Request;

/// A list entry (LE).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) start: u64,
    pub(crate) length: u64,
    pub(crate) min_free: u32,
    pub(crate) buffer_id: u16,
    pub(crate) ct: u16,
    pub(crate) lac: u8,
    pub(crate) flags: TargetFlags,
    /// Offset of the next message, if the entry is managed locally.
    pub(crate) offset: u64,
}

impl Entry {
    pub(crate) fn new(command: &TargetCommand) -> Self {
        Self {
            start: command.start,
            length: command.length,
            min_free: command.min_free,
            buffer_id: command.buffer_id,
            ct: command.ct,
            lac: command.lac,
            flags: command.flags,
            offset: 0,
        }
    }

    pub(crate) fn managed(&self) -> bool {
        self.flags.contains(TargetFlags::MANAGE_LOCAL)
    }

    /// Bytes left behind an offset, which is the entry's own if it is managed locally.
    pub(crate) fn room(&self, remote_offset: u64) -> u64 {
        let offset = if self.managed() { self.offset } else { remote_offset };
        self.length.saturating_sub(offset)
    }

    /// Returns whether the message fits, as far as that matters for a match.
    pub(crate) fn fits(&self, remote_offset: u64, len: u64) -> bool {
        // Rule 7.9: An entry with NO_TRUNCATE does not match a message that does not fit.
        !self.flags.contains(TargetFlags::NO_TRUNCATE) || len <= self.room(remote_offset)
    }

    /// Takes bytes of an entry that is managed locally. Returns whether the entry is used up.
    pub(crate) fn consume(&mut self, len: u64) -> bool {
        if self.managed() {
            // Rule 7.7: A locally managed entry has its own offset, which advances by the bytes
            // used; a rendezvous put on the priority list uses its whole length.
            self.offset += len;
            if self.length.saturating_sub(self.offset) < self.min_free.into() {
                return true;
            }
        }
        self.used_once()
    }

    pub(crate) fn used_once(&self) -> bool {
        self.flags.contains(TargetFlags::USE_ONCE)
    }

    /// Returns the address of a message: at the entry's own offset if it is managed locally.
    pub(crate) fn address(&self, remote_offset: u64) -> u64 {
        let offset = if self.managed() { self.offset } else { remote_offset };
        // Rule 7.8: An access starts at the entry's start plus an offset; nothing is added to the
        // length, which may cover all of memory.
        self.start.wrapping_add(offset)
    }

    /// Returns whether the entry wants an event for the success or the failure of a request.
    pub(crate) fn reports(&self, request: &Request, success: bool) -> bool {
        // Rule 9.6: An entry can suppress all communication events, or those of successes, except
        // for the three of a rendezvous put, which programs with such entries wait for.
        let mut suppress = TargetFlags::EVENT_COMM_DISABLE;
        let success = success && !request.is_rendezvous();
        suppress.set(TargetFlags::EVENT_SUCCESS_DISABLE, success);
        !self.flags.intersects(suppress)
    }
}
