//! Bytes of a short message that wait for the event about it, so that one access stores both.

use std::sync::Arc;

use crate::counter::Signals;
use crate::packet::INLINE;
use crate::translation::Segment;
use crate::{ClientMemory, MemoryFault};

/// Bytes for memory of a client.
#[derive(Debug)]
pub(crate) struct Staged {
    segment: Segment,
    bytes: [u8; INLINE],
    len: usize,
}

impl Staged {
    /// Whether they are for that memory.
    pub(crate) fn is_for(&self, memory: &Arc<dyn ClientMemory>) -> bool {
        Arc::ptr_eq(&self.segment.memory, memory)
    }

    /// Their address, and the bytes.
    pub(crate) fn part(&self) -> (u64, &[u8]) {
        (self.segment.va, &self.bytes[..self.len])
    }

    /// Stores them without an event.
    pub(crate) fn write(&self) -> Result<(), MemoryFault> {
        self.segment.memory()?.write(&[self.part()])
    }
}

impl Signals {
    /// Lets bytes for the start of a segment wait for the next event, or for
    /// [`flush`](Self::flush).
    pub(crate) fn stage(&mut self, segment: &Segment, from: &[u8]) {
        let mut bytes = [0; INLINE];
        bytes[..from.len()].copy_from_slice(from);
        self.staged = Some(Staged {
            segment: segment.clone(),
            bytes,
            len: from.len(),
        });
    }

    /// Stores bytes that still wait.
    pub(crate) fn flush(&mut self) -> Result<(), MemoryFault> {
        self.staged.take().map_or(Ok(()), |staged| staged.write())
    }
}
