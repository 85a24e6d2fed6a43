//! Command queues: rings from which commands are taken in order.

mod polled;

use std::collections::VecDeque;
use std::sync::Arc;

use cxi_hw::command_ring::{FIRST_SLOT, UNIT_SLOTS};
use cxi_hw::{
    CState, CommandByte, CommandFailure, CqStatus, EventSize, EventType, ReturnCode, SLOT_BYTES,
    launch_page,
};

use crate::dma::{Access, Dmas, Target, Then};
use crate::link::Owner;
use crate::signals::Signals;
use crate::table::Table;
use crate::translation::Scatter;
use crate::{CommandPages, CommandQueue, MemoryFault, Transmit, UpdatePolicy};

pub(crate) use polled::OutOfRange;
pub use polled::unwritten;

/// Slots that may be read before the pointer is written back, under the lazy policy: a program
/// looks at the pointer when fewer than 16 of its slots seem free.
const LAZY_SLOTS: u32 = 32;
/// Number of the first target queue.
pub(crate) const FIRST_TARGET: u16 = 1024;
/// Bytes of the longest command.
const MAX_BYTES: usize = 8 * SLOT_BYTES;

/// Kind of a queue.
#[derive(Debug)]
pub(crate) enum Kind {
    Transmit {
        lcid: u8,
        triggered: bool,
        /// Pool of entries for triggered commands.
        pool: u8,
        /// State that immediate commands have in common.
        state: Box<CState>,
    },
    Target,
}

/// A command queue.
#[derive(Debug)]
pub(crate) struct Queue {
    kind: Kind,
    rgid: u16,
    eq: u16,
    slots: u32,
    read: u32,
    write: u32,
    /// Slots read since the pointer was written back.
    unreported: u32,
    policy: UpdatePolicy,
    pages: Box<dyn CommandPages>,
    /// Bytes that were read of a ring in memory of the client, from the read pointer on.
    ahead: Option<Result<Vec<u8>, MemoryFault>>,
    alive: Arc<()>,
    stopped: bool,
    /// A command has started and not ended.
    busy: bool,
    /// Commands that have not ended, triggered ones included.
    pending: u32,
    generation: u64,
    /// It is in the list of queues with work.
    listed: bool,
    /// Number for the next slot that is erased.
    erased: u32,
}

/// A command as it was in the ring.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub(crate) byte: CommandByte,
    pub(crate) bytes: [u8; MAX_BYTES],
}

impl Fetched {
    /// Returns whether this is a command of 32 bytes without effect, whatever else its slot
    /// contains.
    pub(crate) fn is_noop(&self) -> bool {
        // Rule 2.3: A slot whose first byte is 0 is skipped; what follows that byte may be old.
        self.byte.0 == 0
    }

    /// The first bytes, for a layout.
    pub(crate) fn head<const N: usize>(&self) -> [u8; N] {
        std::array::from_fn(|at| self.bytes[at])
    }
}

impl Queue {
    fn new(queue: CommandQueue, generation: u64) -> Self {
        let transmit = |transmit: Transmit| Kind::Transmit {
            lcid: transmit.lcid,
            triggered: transmit.triggered,
            pool: transmit.tle_pool,
            state: Box::default(),
        };
        Self {
            kind: queue.transmit.map_or(Kind::Target, transmit),
            rgid: queue.rgid,
            eq: queue.eq,
            slots: queue.count.saturating_mul(UNIT_SLOTS),
            read: FIRST_SLOT,
            write: FIRST_SLOT,
            unreported: 0,
            policy: queue.policy,
            pages: queue.pages,
            ahead: None,
            alive: Arc::default(),
            stopped: false,
            busy: false,
            pending: 0,
            generation,
            listed: false,
            erased: queue.count.saturating_mul(UNIT_SLOTS),
        }
    }

    /// The read position in units of pointers. No ring is too long for these.
    #[allow(clippy::cast_possible_truncation)]
    fn unit(&self) -> u16 {
        (self.read / UNIT_SLOTS) as u16
    }

    /// The slot that a store to the doorbell points to, if it is one of the ring.
    fn slot(&self, value: u64) -> Option<u32> {
        // Rule 2.2: The low 16 bits of a doorbell are the write pointer, in units of 64 bytes.
        let [low, high, ..] = value.to_le_bytes();
        let slot = u32::from(u16::from_le_bytes([low, high])) * UNIT_SLOTS;
        (FIRST_SLOT..self.slots).contains(&slot).then_some(slot)
    }

    fn has_commands(&self) -> bool {
        // Rule 2.5: A command starts when the previous one of its queue has ended, so a fence has
        // nothing to wait for.
        !self.stopped && !self.busy && self.read != self.write
    }

    /// The command at the read pointer.
    pub(crate) fn fetch(&self) -> Result<Fetched, (CommandByte, ReturnCode)> {
        // Rule 2.15: A ring may lie in the program's memory; if that memory is gone, the queue
        // stops.
        let gone = |_| (CommandByte(0), ReturnCode::PCIE_UNSUCCESS_CMPL);
        let mut bytes = [0; MAX_BYTES];
        self.read_ring(0, &mut bytes[..SLOT_BYTES]).map_err(gone)?;
        let byte = CommandByte(bytes[0]);
        let slots = if byte.0 == 0 { 1 } else { byte.slots() };
        let end = if self.write > self.read { self.write } else { self.slots };
        let room = (end - self.read) as usize;
        // Rule 2.4: A command starts at a multiple of its size, and reaches neither beyond the write
        // pointer nor beyond the end of the ring.
        if slots > room || !(self.read as usize).is_multiple_of(slots) {
            return Err((byte, ReturnCode::CMD_ALIGN_ERROR));
        }
        let rest = SLOT_BYTES..slots * SLOT_BYTES;
        if !rest.is_empty() {
            self.read_ring(SLOT_BYTES, &mut bytes[rest]).map_err(gone)?;
        }
        Ok(Fetched { byte, bytes })
    }

    /// Copies commands from an offset behind the read pointer.
    fn read_ring(&self, offset: usize, into: &mut [u8]) -> Result<(), MemoryFault> {
        match &self.ahead {
            None => self.pages.read(self.read as usize * SLOT_BYTES + offset, into),
            Some(ahead) => {
                let from = ahead.as_ref().map_err(|fault| *fault)?.get(offset..offset + into.len());
                into.copy_from_slice(from.ok_or(MemoryFault)?);
                Ok(())
            }
        }
    }

    /// The access that reads the next command, if it lies in memory of the client.
    fn to_read(&self) -> Option<Access> {
        let unread = self.ahead.is_none() && self.has_commands();
        let (memory, va) = self.pages.ring().filter(|_| unread)?;
        let ring = Scatter::of(memory, va, u64::from(self.slots) * SLOT_BYTES as u64);
        let offset = u64::from(self.read) * SLOT_BYTES as u64;
        // Up to the end of the ring, as more may be rung meanwhile.
        let len = ((self.slots - self.read) as usize * SLOT_BYTES).min(MAX_BYTES);
        Some(Access::Read(ring, offset, len, Vec::new()))
    }

    fn advance(&mut self, slots: u32, dmas: &mut Dmas) {
        self.ahead = None;
        self.erase(slots);
        self.read += slots;
        if self.read >= self.slots {
            // Rule 2.1: The ring wraps to the first slot after the status area.
            self.read = FIRST_SLOT;
        }
        self.unreported += slots;
        // Rule 2.6: The read pointer is written back after each command or, under a lazy policy,
        // every 32 slots and whenever the queue is empty.
        let due = match self.policy {
            UpdatePolicy::Always => true,
            UpdatePolicy::WhenEmpty => self.unreported >= LAZY_SLOTS || self.read == self.write,
        };
        if due {
            self.unreported = 0;
            let status = CqStatus { return_code: ReturnCode::OK, ..CqStatus::default() };
            self.write_status(status, dmas);
        }
    }

    fn write_status(&self, status: CqStatus, dmas: &mut Dmas) {
        let status = CqStatus { rd_ptr: self.unit(), ..status };
        let bytes = status.encode();
        if let Some((memory, va)) = self.pages.ring() {
            let target = Target { memory, rgid: self.rgid, alive: &self.alive };
            dmas.store(target, &[(va, &bytes)]);
        } else {
            self.pages.write_status(u64::from_le_bytes(bytes));
        }
    }

    /// Stops for good at a command that cannot be executed.
    fn stop(&mut self, byte: CommandByte, code: ReturnCode, dmas: &mut Dmas) {
        self.stopped = true;
        let status = CqStatus {
            fail_command: byte,
            return_code: code,
            fail_loc_32: !self.read.is_multiple_of(UNIT_SLOTS),
            ..CqStatus::default()
        };
        self.write_status(status, dmas);
    }
}

/// All command queues, and those that have work.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    table: Table<Queue>,
    target: VecDeque<u16>,
    transmit: VecDeque<u16>,
    generations: u64,
}

impl Queues {
    pub(crate) fn add(&mut self, number: u16, queue: CommandQueue) {
        self.generations += 1;
        self.table.put(number, Queue::new(queue, self.generations));
    }

    /// Forgets a queue. Returns its generation if some of its commands have not ended.
    pub(crate) fn remove(&mut self, number: u16, dmas: &mut Dmas) -> Option<u64> {
        let queue = self.table.remove(number)?;
        if let Some((memory, _)) = queue.pages.ring() {
            dmas.release(memory);
        }
        (queue.pending > 0).then_some(queue.generation)
    }

    /// Returns the number of commands of a queue that have not ended.
    pub(crate) fn pending(&self, number: u16) -> u32 {
        // Rule 2.14: Triggered commands that wait count as in flight.
        self.table.get(number).map_or(0, |queue| queue.pending)
    }

    pub(crate) fn kind(&self, number: u16) -> Option<&Kind> {
        Some(&self.table.get(number)?.kind)
    }

    pub(crate) fn kind_mut(&mut self, number: u16) -> Option<&mut Kind> {
        Some(&mut self.table.get_mut(number)?.kind)
    }

    pub(crate) fn has_work(&self, number: u16) -> bool {
        self.table.get(number).is_some_and(|queue| queue.busy || queue.has_commands())
    }

    /// Returns whether any queue can go on.
    pub(crate) fn any_listed(&self) -> bool {
        !(self.target.is_empty() && self.transmit.is_empty())
    }

    /// Puts a queue that can go on into the list.
    pub(crate) fn list(&mut self, number: u16) {
        let Some(queue) = self.table.get_mut(number) else { return };
        if queue.listed || !queue.has_commands() {
            return;
        }
        queue.listed = true;
        if number >= FIRST_TARGET {
            self.target.push_back(number);
        } else {
            self.transmit.push_back(number);
        }
    }

    fn unlist(&mut self, next: Option<u16>) -> Option<u16> {
        if let Some(queue) = self.table.get_mut(next?) {
            queue.listed = false;
        }
        next
    }

    /// Takes the next target queue that can go on.
    pub(crate) fn next_target(&mut self) -> Option<u16> {
        let next = self.target.pop_front();
        self.unlist(next)
    }

    /// Takes the next transmit queue that can go on.
    pub(crate) fn next_transmit(&mut self) -> Option<u16> {
        let next = self.transmit.pop_front();
        self.unlist(next)
    }

    /// A queue that can go on, with its RGID and its generation.
    pub(crate) fn ready(&self, number: u16) -> Option<(&Queue, u16, u64)> {
        let queue = self.table.get(number).filter(|it| it.has_commands())?;
        Some((queue, queue.rgid, queue.generation))
    }

    /// Starts to read the next command of a queue, if its ring lies in memory of the client.
    /// Returns whether that is so.
    pub(crate) fn read_ahead(&mut self, number: u16, dmas: &mut Dmas) -> bool {
        let Some(queue) = self.table.get_mut(number) else { return false };
        let Some(access) = queue.to_read() else { return false };
        queue.busy = true;
        dmas.start(access, Then::Commands(number, queue.generation));
        true
    }

    /// The next command of a queue has been read.
    pub(crate) fn was_read(
        &mut self,
        (number, generation): (u16, u64),
        bytes: Result<Vec<u8>, MemoryFault>,
    ) {
        let queue = self.table.get_mut(number);
        if let Some(queue) = queue.filter(|queue| queue.generation == generation) {
            queue.ahead = Some(bytes);
            queue.busy = false;
            self.list(number);
        }
    }

    /// Moves the read pointer past a command.
    pub(crate) fn advance(&mut self, number: u16, slots: u32, dmas: &mut Dmas) {
        if let Some(queue) = self.table.get_mut(number) {
            queue.advance(slots, dmas);
        }
    }

    /// Handles a store of a write pointer to a doorbell.
    pub(crate) fn ring(&mut self, number: u16, value: u64) -> Result<(), OutOfRange> {
        let Some(queue) = self.table.get(number) else { return Ok(()) };
        let slot = queue.slot(value).ok_or(OutOfRange)?;
        self.set_write(number, slot);
        Ok(())
    }

    /// Moves the write position of a queue.
    pub(crate) fn set_write(&mut self, number: u16, slot: u32) {
        if let Some(queue) = self.table.get_mut(number) {
            // Rule 2.8: The last of several doorbells counts, as a write pointer covers everything
            // before it.
            queue.write = slot;
            self.list(number);
        }
    }

    /// Handles a store to a low-latency window.
    pub(crate) fn ring_window(&mut self, number: u16, offset: usize) {
        let Some(queue) = self.table.get_mut(number) else { return };
        let window = offset / launch_page::WINDOW_BYTES * launch_page::WINDOW_BYTES;
        let (skipped, units) = match window {
            launch_page::WINDOW_64 => (0, 1),
            launch_page::WINDOW_128_ALIGNED => (0, 2),
            launch_page::WINDOW_128_UNALIGNED => (1, 2),
            _ => return,
        };
        let after = |slot: u32, units: u32| match slot + units * UNIT_SLOTS {
            slot if slot < queue.slots => slot,
            _ => FIRST_SLOT,
        };
        let start = after(queue.write, skipped);
        // Rule 2.9: A command stored to a low-latency window is executed from the ring, which holds
        // it too; its place in the window follows from its place in the ring.
        if offset % launch_page::WINDOW_BYTES == launch_page::window_offset(start) as usize {
            queue.write = after(start, units);
            self.list(number);
        }
    }

    /// Takes what was rung on a queue that is polled, as a write position.
    pub(crate) fn take_rung(&self, number: u16) -> Option<Result<u32, OutOfRange>> {
        self.table.get(number)?.take_rung()
    }

    /// Takes what was rung on all queues that are polled.
    pub(crate) fn take_all_rung(&self) -> Vec<(u16, Result<u32, OutOfRange>)> {
        let queues = self.table.iter();
        queues.filter_map(|(number, queue)| Some((number, queue.take_rung()?))).collect()
    }

    /// Returns whether the queue or counter that waits for an operation still exists. Its number
    /// may belong to another one by now.
    pub(crate) fn is_current(&self, number: u16, generation: u64) -> bool {
        let queue = self.table.get(number);
        queue.is_some_and(|queue| queue.generation == generation)
    }

    /// Records that a command has begun for which its queue or counter waits.
    pub(crate) fn begin(&mut self, owner: Owner) {
        match owner {
            Owner::Queue(number, _) => {
                if let Some(queue) = self.table.get_mut(number) {
                    queue.busy = true;
                    queue.pending += 1;
                }
            }
            Owner::Triggered(number, _) => {
                if let Some(queue) = self.table.get_mut(number) {
                    queue.pending += 1;
                }
            }
            Owner::Portal(..) => {}
        }
    }

    /// Records that the command has ended, so that its queue can go on.
    pub(crate) fn end(&mut self, owner: Owner) {
        let (Owner::Queue(number, generation) | Owner::Triggered(number, generation)) = owner
        else {
            return;
        };
        let queue = self.table.get_mut(number);
        let Some(queue) = queue.filter(|queue| queue.generation == generation) else { return };
        queue.pending = queue.pending.saturating_sub(1);
        if matches!(owner, Owner::Queue(..)) {
            queue.busy = false;
            self.list(number);
        }
    }

    /// Reports a command that cannot be executed, and stops its queue.
    pub(crate) fn fail(
        &mut self,
        number: u16,
        byte: CommandByte,
        code: ReturnCode,
        signals: &mut Signals,
    ) {
        let Some(queue) = self.table.get_mut(number).filter(|it| !it.stopped) else { return };
        signals.telemetry.command_ended(number, code);
        let event = CommandFailure {
            cq_id: number % FIRST_TARGET,
            is_target: number >= FIRST_TARGET,
            fail_loc: queue.unit(),
            fail_command: byte,
            event_size: EventSize::BYTES_16,
            event_type: EventType::COMMAND_FAILURE,
            return_code: code,
        };
        // Rule 2.13: A command that cannot be executed stops its queue; the status word gives the
        // reason before the event does.
        queue.stop(byte, code, &mut signals.dmas);
        signals.post(queue.eq, &event.encode());
    }
}
