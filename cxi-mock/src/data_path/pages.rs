//! Pages that a client shares with the NIC.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use cxi_engine::{
    ClientMemory, CommandPages, CounterDoorbell, CounterPages, EventPages, MemoryFault,
};
use cxi_hw::launch_page::WRITE_POINTER;
use cxi_ioctl::Mapping;

/// The value of a doorbell that has not been rung: no write pointer, and no number to add.
pub(crate) const NOT_RUNG: u64 = u64::MAX;
const WORD: usize = size_of::<u64>();

/// Takes what was stored to a doorbell. A store is a word, of which the last one counts.
pub(crate) fn take(page: &Mapping, offset: usize) -> Option<u64> {
    let unrung = |value: &u64| *value != NOT_RUNG;
    page.read_u64(offset).ok().filter(unrung)?;
    let value = page.swap_u64(offset, NOT_RUNG).ok().filter(unrung)?;
    // What the client stored before it rang is read after this.
    fence(Ordering::Acquire);
    Some(value)
}

/// Makes a doorbell that has not been rung.
fn arm(page: &Mapping, offset: usize) {
    // It is inside a page.
    let _ = page.write_u64(offset, NOT_RUNG);
}

/// Where the commands of a queue are.
#[derive(Debug)]
pub(super) enum Commands {
    /// In a window.
    Window(Mapping),
    /// In memory that the client brought.
    Client(Arc<dyn ClientMemory>, u64),
}

/// A ring of commands and its launch page.
#[derive(Debug)]
pub(super) struct QueuePages {
    commands: Commands,
    /// None if stores to it are trapped.
    launch: Option<Mapping>,
}

impl QueuePages {
    pub(super) fn new(commands: Commands, launch: Option<Mapping>) -> Self {
        if let Some(launch) = &launch {
            arm(launch, WRITE_POINTER);
        }
        Self { commands, launch }
    }
}

impl CommandPages for QueuePages {
    fn read(&self, offset: usize, into: &mut [u8]) -> Result<(), MemoryFault> {
        match &self.commands {
            Commands::Window(ring) => {
                for (at, word) in (offset..).step_by(WORD).zip(into.as_chunks_mut::<WORD>().0) {
                    *word = ring.read_u64(at).map_err(|_| MemoryFault)?.to_ne_bytes();
                }
                Ok(())
            }
            Commands::Client(memory, va) => memory.read(va + offset as u64, into),
        }
    }

    fn write_status(&self, status: u64) {
        // A client without its ring is on its way out.
        let _ = match &self.commands {
            Commands::Window(ring) => ring.write_u64(0, status).map_err(|_| MemoryFault),
            Commands::Client(memory, va) => memory.write(&[(*va, &status.to_ne_bytes())]),
        };
    }

    fn take_doorbell(&self) -> Option<u64> {
        take(self.launch.as_ref()?, WRITE_POINTER)
    }
}

/// The page with the register word of an event queue.
#[derive(Debug)]
pub(super) struct EventPage(pub(super) Mapping);

impl EventPages for EventPage {
    fn state(&self) -> u64 {
        self.0.read_u64(0).unwrap_or(0)
    }
}

/// The page with the doorbells of a counter.
#[derive(Debug)]
pub(super) struct CounterPage(Mapping);

impl CounterPage {
    pub(super) fn new(page: Mapping) -> Self {
        for doorbell in CounterDoorbell::ALL {
            arm(&page, doorbell.offset());
        }
        Self(page)
    }
}

impl CounterPages for CounterPage {
    fn take_doorbell(&self, doorbell: CounterDoorbell) -> Option<u64> {
        take(&self.0, doorbell.offset())
    }
}
