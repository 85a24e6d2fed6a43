//! Memory of processes and pages that a front end supplies and a NIC shares with them.

use std::fmt;
use std::sync::Arc;

use cxi_hw::{CounterDoorbell, ReturnCode};

/// A client's memory that does not exist: it was never mapped, is unmapped, or its process has
/// ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryFault;

impl fmt::Display for MemoryFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no such memory in the client")
    }
}

impl std::error::Error for MemoryFault {}

impl From<MemoryFault> for ReturnCode {
    fn from(_: MemoryFault) -> Self {
        Self::NO_TRANSLATION
    }
}

/// The memory of a process.
///
/// The engine asks only for addresses that lie in regions, event buffers and write-backs that the
/// control plane has added.
pub trait ClientMemory: Send + Sync + fmt::Debug {
    /// The user whose process it is, if an access may take its time. The engine does not execute
    /// such accesses, but leaves them to the front end ([`Engine::take_dma`]). One object stands for
    /// one process, as the order of accesses is the object's.
    ///
    /// [`Engine::take_dma`]: crate::Engine::take_dma
    fn owner(&self) -> Option<u32> {
        None
    }

    /// Copies memory from an address.
    ///
    /// # Errors
    ///
    /// The memory does not exist; what was copied does not count.
    fn read(&self, va: u64, into: &mut [u8]) -> Result<(), MemoryFault>;

    /// Stores parts, each at an address, in that order: a client that sees a later part sees all
    /// earlier ones. A part of eight bytes at a multiple of eight is stored in one piece.
    ///
    /// # Errors
    ///
    /// The memory does not exist; some of it may have been written.
    fn write(&self, parts: &[(u64, &[u8])]) -> Result<(), MemoryFault>;

    /// Changes 1, 2, 4, 8 or 16 bytes at a multiple of their size. `change` gets the current bytes
    /// and changes them; it may be called again if another process was faster.
    ///
    /// The default implementation is atomic only with respect to the engine itself.
    ///
    /// # Errors
    ///
    /// The memory does not exist.
    fn update(
        &self,
        va: u64,
        len: usize,
        change: &mut dyn FnMut(&mut [u8]),
    ) -> Result<(), MemoryFault> {
        let mut buffer = [0; 16];
        let value = buffer.get_mut(..len).ok_or(MemoryFault)?;
        self.read(va, value)?;
        change(value);
        self.write(&[(va, value)])
    }
}

/// The pages of a command queue: its ring with the status word, and its doorbell.
pub trait CommandPages: Send + fmt::Debug {
    /// The ring, if it lies in memory of the client, and its address. Then [`read`](Self::read) and
    /// [`write_status`](Self::write_status) are not called.
    fn ring(&self) -> Option<(&Arc<dyn ClientMemory>, u64)> {
        None
    }

    /// Copies commands from an offset in the ring.
    ///
    /// # Errors
    ///
    /// The ring is gone. The queue stops.
    fn read(&self, offset: usize, into: &mut [u8]) -> Result<(), MemoryFault>;

    /// Stores the status word at the start of the ring.
    fn write_status(&self, status: u64);

    /// Takes what was stored to the doorbell since the last call, for [`Engine::poll`].
    ///
    /// [`Engine::poll`]: crate::Engine::poll
    fn take_doorbell(&self) -> Option<u64> {
        None
    }

    /// Returns whether [`Engine::poll`] looks at the low-latency windows too, with
    /// [`read_window`](Self::read_window) and [`erase`](Self::erase).
    ///
    /// [`Engine::poll`]: crate::Engine::poll
    fn polls_windows(&self) -> bool {
        false
    }

    /// Copies what is in the low-latency windows, from an offset in the launch page on. What the client
    /// stored before is visible afterward. Returns false if there is nothing.
    fn read_window(&self, offset: usize, into: &mut [u8]) -> bool {
        let _ = (offset, into);
        false
    }

    /// Fills a slot of the ring with a word. Before the client writes the ring, the front end does so with
    /// [`unwritten`](crate::unwritten) and the number of each slot.
    fn erase(&self, slot: usize, word: u64) {
        let _ = (slot, word);
    }
}

/// The page of an event queue.
pub trait EventPages: Send + fmt::Debug {
    /// The register word as the client stored it last, 0 at first.
    fn state(&self) -> u64;
}

/// The page of a counter.
pub trait CounterPages: Send + fmt::Debug {
    /// Takes what was stored to a doorbell since the last call, for [`Engine::poll`]. For a
    /// doorbell that adds, this is the sum of all stores, if the page can tell.
    ///
    /// [`Engine::poll`]: crate::Engine::poll
    fn take_doorbell(&self, doorbell: CounterDoorbell) -> Option<u64>;
}

/// Task of a front end after the engine has run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// Raise the interrupt of a wait object, by the number with which its event queue was added.
    Wake(u64),
    /// Memory for events or counters did not exist: a hint for people. Only the first fault of each
    /// RGID is reported until the effects are taken.
    Fault {
        /// The RGID of the object.
        rgid: u16,
        /// The address.
        va: u64,
    },
}
