//! Reading an event queue.

use std::sync::Arc;
use std::time::Duration;

use cxi::lni::EventQueue;
use cxi::{DeviceInfo, DeviceMemory};
use cxi_hw::event_ring::{BLOCK_BYTES, FIRST_BLOCK};
use cxi_hw::{EqState, EqStatus, EventSize, EventType, InitiatorShort, ReturnCode};

use crate::error::in_command;
use crate::wait::until;
use crate::{Error, Event, Result};

const WORD: usize = size_of::<u64>();
/// Bytes of a block. The status takes exactly one.
const BLOCK: usize = EqStatus::BYTES;
const _: () = assert!(BLOCK as u64 == BLOCK_BYTES);
/// Offset of the first event.
const START: usize = FIRST_BLOCK as usize * BLOCK;

/// An event queue to read from.
#[derive(Debug)]
pub struct Events {
    queue: EventQueue,
    id: u16,
    memory: Arc<DeviceMemory>,
    pid_bits: u32,
    /// Byte of the next event.
    at: usize,
    /// Bytes read that the NIC may not write again yet.
    read: usize,
    state: EqState,
}

impl Events {
    /// Takes over a new event queue.
    ///
    /// # Errors
    ///
    /// Its registers cannot be mapped.
    pub fn new(queue: EventQueue, info: &DeviceInfo) -> Result<Self> {
        let id = in_command("event queue", queue.id())?;
        queue.registers()?;
        Ok(Self {
            memory: queue.memory(),
            queue,
            id,
            pid_bits: info.pid_bits,
            at: START,
            read: 0,
            state: EqState { rd_ptr: FIRST_BLOCK, ..EqState::default() },
        })
    }

    pub(crate) const fn id(&self) -> u16 {
        self.id
    }

    /// The queue itself, for objects that report to it.
    #[must_use]
    pub const fn queue(&self) -> &EventQueue {
        &self.queue
    }

    /// The events that have arrived. Their room is returned to the NIC when the iterator is
    /// dropped, or earlier if there is much of it.
    ///
    /// An item is an error if events were lost ([`Error::Overflow`], after the last event that was
    /// not lost) or a resize cannot be completed.
    pub fn drain(&mut self) -> Drain<'_> {
        Drain { events: self }
    }

    /// The next event. Spins, and yields the processor.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`], and those of [`drain`](Self::drain).
    pub fn wait(&mut self, most: Duration) -> Result<Event> {
        until(most, || self.drain().next().transpose())
    }

    /// Begins to move the queue to a buffer of another size (EQ_RESIZE). Reading events completes
    /// the move.
    ///
    /// # Errors
    ///
    /// As [`EventQueue::resize`].
    pub fn resize(&mut self, len: usize) -> Result<()> {
        self.queue.resize(len)?;
        Ok(())
    }

    fn next(&mut self) -> Result<Option<Event>> {
        loop {
            let Some((block, size)) = self.peek()? else { return self.lost() };
            self.take(size.bytes())?;
            match Event::decode(&block, size, self.pid_bits) {
                Event::Other(EventType::NULL_EVENT) => {}
                Event::Other(EventType::EQ_SWITCH) => self.switch()?,
                event => return Ok(Some(event)),
            }
        }
    }

    /// The next event, once all of it is there. The NIC writes its last byte last.
    fn peek(&self) -> Result<Option<([u8; BLOCK], EventSize)>> {
        let mut block = [0; BLOCK];
        let word = |offset: usize| self.memory.read_u64(self.at + offset);
        block[WORD..2 * WORD].copy_from_slice(&word(WORD)?.to_le_bytes());
        let head = std::array::from_fn(|at| block[at]);
        let size = InitiatorShort::decode(&head).event_size;
        let bytes = size.bytes();
        if bytes == 0 {
            return Ok(None);
        }
        if !self.at.is_multiple_of(bytes) {
            return Err(Error::NoEvent { at: self.at });
        }
        let last = word(bytes - WORD)?.to_le_bytes();
        if last[WORD - 1] & 0x3f == ReturnCode::default().0 {
            return Ok(None);
        }
        for (part, offset) in block[..bytes].chunks_exact_mut(WORD).zip((0..).step_by(WORD)) {
            part.copy_from_slice(&word(offset)?.to_le_bytes());
        }
        Ok(Some((block, size)))
    }

    /// Moves past an event. Its bytes are zeroed before the NIC may write there again.
    fn take(&mut self, bytes: usize) -> Result<()> {
        for offset in (0..bytes).step_by(WORD) {
            self.memory.write_u64(self.at + offset, 0)?;
        }
        self.at += bytes;
        self.read += bytes;
        if self.at >= self.memory.len() {
            self.at = START;
        }
        if self.read >= self.memory.len() / 2 {
            self.acknowledge()?;
        }
        Ok(())
    }

    /// Returns the room of the events that were read to the NIC.
    fn acknowledge(&mut self) -> Result<()> {
        let block = u32::try_from(self.at / BLOCK).unwrap_or(FIRST_BLOCK);
        self.read = 0;
        self.state.rd_ptr = block;
        let state = u64::from_le_bytes(self.state.encode());
        Ok(self.queue.registers()?.ring(0, state)?)
    }

    /// Checks whether events were lost since the last report of a loss. If so, lets the NIC
    /// continue.
    fn lost(&mut self) -> Result<Option<Event>> {
        let mut status = [0; EqStatus::BYTES];
        status[WORD..2 * WORD].copy_from_slice(&self.memory.read_u64(WORD)?.to_le_bytes());
        let status = EqStatus::decode(&status);
        let known = status.event_drop_seq_no == self.state.event_drop_seq_no;
        if !status.unackd_dropped_event || known {
            return Ok(None);
        }
        self.state.event_drop_seq_no = status.event_drop_seq_no;
        self.acknowledge()?;
        Err(Error::Overflow)
    }

    /// Continues in the other buffer.
    fn switch(&mut self) -> Result<()> {
        self.queue.complete_resize()?;
        self.memory = self.queue.memory();
        self.at = START;
        self.state.reading_buffer_b = !self.state.reading_buffer_b;
        self.acknowledge()
    }
}

/// The events that have arrived in a queue.
#[derive(Debug)]
pub struct Drain<'a> {
    events: &'a mut Events,
}

impl Iterator for Drain<'_> {
    type Item = Result<Event>;

    fn next(&mut self) -> Option<Self::Item> {
        self.events.next().transpose()
    }
}

impl Drop for Drain<'_> {
    fn drop(&mut self) {
        if self.events.read > 0 {
            // The registers were mapped before.
            let _ = self.events.acknowledge();
        }
    }
}
