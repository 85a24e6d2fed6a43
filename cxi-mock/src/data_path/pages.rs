//! Pages that a client shares with the NIC.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use cxi_engine::{
    ClientMemory, CommandPages, CounterDoorbell, CounterPages, EventPages, MemoryFault, unwritten,
};
use cxi_hw::launch_page::WRITE_POINTER;
use cxi_hw::{SLOT_BYTES, command_ring};
use cxi_ioctl::Mapping;

use super::window::{Doorbell, Page};

/// The value of a doorbell that has not been rung: no write pointer, and no number to add.
pub(crate) const NOT_RUNG: u64 = u64::MAX;
const WORD: usize = size_of::<u64>();

/// Takes what was stored to a doorbell. A store is one word, and only the last one counts.
pub(crate) fn take(page: &Mapping, offset: usize) -> Option<u64> {
    let unrung = |value: &u64| *value != NOT_RUNG;
    page.read_u64(offset).ok().filter(unrung)?;
    let value = page.swap_u64(offset, NOT_RUNG).ok().filter(unrung)?;
    // Rule 2.7: The ring is read after the write pointer, as the client stored it before.
    fence(Ordering::Acquire);
    Some(value)
}

/// Makes a page of a doorbell that has not been rung.
pub(crate) fn arm(page: &Mapping, doorbell: Doorbell) {
    let offsets: &[usize] = match doorbell {
        Doorbell::Queue(_) | Doorbell::Target(_) => &[WRITE_POINTER],
        Doorbell::Counter(_) => &CounterDoorbell::ALL.map(CounterDoorbell::offset),
    };
    for offset in offsets {
        // The word is inside the page.
        let _ = page.write_u64(*offset, NOT_RUNG);
    }
}

/// Fills a slot of a ring.
fn fill(ring: &Mapping, slot: usize, word: u64) {
    for at in (slot * SLOT_BYTES..).step_by(WORD).take(SLOT_BYTES / WORD) {
        // The NIC executes slots that are inside.
        let _ = ring.write_u64(at, u64::from_le(word));
    }
}

/// Makes a ring one in which no command has been written.
pub(crate) fn clear(ring: &Mapping) {
    let slots = (0..).take(ring.len() / SLOT_BYTES).skip(command_ring::FIRST_SLOT as usize);
    slots.for_each(|slot: u32| fill(ring, slot as usize, unwritten(slot)));
}

/// Place of a queue's commands.
#[derive(Debug)]
pub(crate) enum Commands {
    /// In a window.
    Window(Page),
    /// In memory that the client brought.
    Client(Arc<dyn ClientMemory>, u64),
}

/// A ring of commands and its launch page.
#[derive(Debug)]
pub(crate) struct QueuePages {
    pub(crate) commands: Commands,
    /// None if stores to it are trapped.
    pub(crate) launch: Option<Page>,
}

impl QueuePages {
    fn window(&self) -> Option<&Mapping> {
        match &self.commands {
            Commands::Window(ring) => ring.get(),
            Commands::Client(..) => None,
        }
    }
}

impl CommandPages for QueuePages {
    fn ring(&self) -> Option<(&Arc<dyn ClientMemory>, u64)> {
        match &self.commands {
            Commands::Window(_) => None,
            Commands::Client(memory, va) => Some((memory, *va)),
        }
    }

    fn read(&self, offset: usize, into: &mut [u8]) -> Result<(), MemoryFault> {
        let ring = self.window().ok_or(MemoryFault)?;
        for (at, word) in (offset..).step_by(WORD).zip(into.as_chunks_mut::<WORD>().0) {
            *word = ring.read_u64(at).map_err(|_| MemoryFault)?.to_ne_bytes();
        }
        Ok(())
    }

    fn write_status(&self, status: u64) {
        // A client without its ring is about to disappear.
        if let Some(ring) = self.window() {
            let _ = ring.write_u64(0, status);
        }
    }

    fn take_doorbell(&self) -> Option<u64> {
        take(self.launch.as_ref()?.get()?, WRITE_POINTER)
    }

    fn polls_windows(&self) -> bool {
        matches!(self.commands, Commands::Window(_))
            && self.launch.as_ref().is_some_and(|launch| launch.get().is_some())
    }

    fn read_window(&self, offset: usize, into: &mut [u8]) -> bool {
        let Some(launch) = self.launch.as_ref().and_then(|launch| launch.get()) else {
            return false;
        };
        for (at, word) in (offset..).step_by(WORD).zip(into.as_chunks_mut::<WORD>().0) {
            let Ok(stored) = launch.read_u64(at) else { return false };
            *word = stored.to_ne_bytes();
        }
        fence(Ordering::Acquire);
        true
    }

    fn erase(&self, slot: usize, word: u64) {
        if let Some(ring) = self.window() {
            fill(ring, slot, word);
        }
    }
}

/// The page with the register word of an event queue.
#[derive(Debug)]
pub(crate) struct EventPage(pub(crate) Page);

impl EventPages for EventPage {
    fn state(&self) -> u64 {
        let page = self.0.get();
        page.map_or(0, |page| page.read_u64(0).unwrap_or(0))
    }
}

/// The page with the doorbells of a counter.
#[derive(Debug)]
pub(super) struct CounterPage(pub(super) Page);

impl CounterPages for CounterPage {
    fn take_doorbell(&self, doorbell: CounterDoorbell) -> Option<u64> {
        take(self.0.get()?, doorbell.offset())
    }
}
