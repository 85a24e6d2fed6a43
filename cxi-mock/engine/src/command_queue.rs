//! Command queues: rings that commands are taken from, in order.

use std::collections::VecDeque;

use cxi_hw::{
    CState, CommandByte, CommandFailure, CqStatus, EventSize, EventType, ReturnCode, SLOT_BYTES,
    launch_page,
};

use cxi_hw::command_ring::{FIRST_SLOT, UNIT_SLOTS};

use crate::table::Table;
use crate::{CommandPages, CounterDoorbell, Engine, UpdatePolicy};

/// Slots that may be read before the pointer is written back, under the lazy policy.
const LAZY_SLOTS: u32 = 32;
/// Number of the first target queue.
pub(crate) const FIRST_TARGET: u16 = 1024;
/// Bytes of the longest command.
const MAX_BYTES: usize = 8 * SLOT_BYTES;

/// What a queue is for.
#[derive(Debug)]
pub(crate) enum Kind {
    Transmit {
        lcid: u8,
        triggered: bool,
        /// Pool of entries for triggered commands.
        pool: u8,
        /// What immediate commands have in common.
        state: Box<CState>,
    },
    Target,
}

/// A command queue.
#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) kind: Kind,
    pub(crate) rgid: u16,
    eq: u16,
    slots: u32,
    read: u32,
    write: u32,
    /// Slots read since the pointer was written back.
    unreported: u32,
    policy: UpdatePolicy,
    pub(crate) pages: Box<dyn CommandPages>,
    stopped: bool,
    /// A command has not ended.
    pub(crate) busy: bool,
    /// Commands that have not ended, triggered ones included.
    pub(crate) pending: u32,
    pub(crate) generation: u64,
    /// It is in the list of those with work.
    listed: bool,
}

/// A command as it was in the ring.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub(crate) byte: CommandByte,
    pub(crate) bytes: [u8; MAX_BYTES],
}

impl Fetched {
    /// The first bytes, for a layout.
    pub(crate) fn head<const N: usize>(&self) -> [u8; N] {
        std::array::from_fn(|at| self.bytes[at])
    }
}

impl Queue {
    pub(crate) fn new(
        kind: Kind,
        (rgid, eq): (u16, u16),
        count: u32,
        policy: UpdatePolicy,
        pages: Box<dyn CommandPages>,
    ) -> Self {
        Self {
            kind,
            rgid,
            eq,
            slots: count.saturating_mul(UNIT_SLOTS),
            read: FIRST_SLOT,
            write: FIRST_SLOT,
            unreported: 0,
            policy,
            pages,
            stopped: false,
            busy: false,
            pending: 0,
            generation: 0,
            listed: false,
        }
    }

    fn has_commands(&self) -> bool {
        !self.stopped && !self.busy && self.read != self.write
    }

    /// The command at the read pointer.
    fn fetch(&self) -> Result<Fetched, (CommandByte, ReturnCode)> {
        let gone = |_| (CommandByte(0), ReturnCode::PCIE_UNSUCCESS_CMPL);
        let mut bytes = [0; MAX_BYTES];
        let offset = self.read as usize * SLOT_BYTES;
        self.pages
            .read(offset, &mut bytes[..SLOT_BYTES])
            .map_err(gone)?;
        let byte = CommandByte(bytes[0]);
        let slots = if byte.0 == 0 { 1 } else { byte.slots() };
        let end = if self.write > self.read {
            self.write
        } else {
            self.slots
        };
        let room = (end - self.read) as usize;
        if slots > room || !(self.read as usize).is_multiple_of(slots) {
            return Err((byte, ReturnCode::CMD_ALIGN_ERROR));
        }
        let rest = SLOT_BYTES..slots * SLOT_BYTES;
        if !rest.is_empty() {
            let offset = offset + SLOT_BYTES;
            self.pages.read(offset, &mut bytes[rest]).map_err(gone)?;
        }
        Ok(Fetched { byte, bytes })
    }

    fn advance(&mut self, slots: u32) {
        self.read += slots;
        if self.read >= self.slots {
            self.read = FIRST_SLOT;
        }
        self.unreported += slots;
        let due = match self.policy {
            UpdatePolicy::Always => true,
            UpdatePolicy::WhenEmpty => self.unreported >= LAZY_SLOTS || self.read == self.write,
        };
        if due {
            self.unreported = 0;
            self.write_status(CqStatus {
                return_code: ReturnCode::OK,
                ..CqStatus::default()
            });
        }
    }

    fn write_status(&self, status: CqStatus) {
        let status = CqStatus {
            rd_ptr: u16::try_from(self.read / UNIT_SLOTS).unwrap_or(0),
            ..status
        };
        self.pages.write_status(u64::from_le_bytes(status.encode()));
    }

    /// Stops for good at a command that cannot be executed.
    fn stop(&mut self, byte: CommandByte, code: ReturnCode) {
        self.stopped = true;
        self.write_status(CqStatus {
            fail_command: byte,
            return_code: code,
            fail_loc_32: !self.read.is_multiple_of(UNIT_SLOTS),
            ..CqStatus::default()
        });
    }
}

/// All command queues, and those that have work.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    pub(crate) table: Table<Queue>,
    target: VecDeque<u16>,
    transmit: VecDeque<u16>,
    generations: u64,
}

impl Queues {
    pub(crate) fn add(&mut self, number: u16, queue: Queue) {
        self.generations += 1;
        let generation = self.generations;
        self.table.put(
            number,
            Queue {
                generation,
                ..queue
            },
        );
    }

    pub(crate) fn has_work(&self, number: u16) -> bool {
        self.table
            .get(number)
            .is_some_and(|queue| queue.busy || queue.has_commands())
    }

    /// Whether a queue can go on.
    pub(crate) fn any_listed(&self) -> bool {
        !(self.target.is_empty() && self.transmit.is_empty())
    }

    /// Puts a queue that can go on into the list.
    pub(crate) fn list(&mut self, number: u16) {
        let Some(queue) = self.table.get_mut(number) else {
            return;
        };
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
}

impl Engine {
    /// A store of a write pointer to the doorbell of a command queue.
    pub fn ring_queue(&mut self, number: u16, value: u64) {
        let Some(queue) = self.queues.table.get_mut(number) else {
            return;
        };
        let unit = u32::from(u16::from_le_bytes([
            value.to_le_bytes()[0],
            value.to_le_bytes()[1],
        ]));
        let slot = unit * UNIT_SLOTS;
        if slot < FIRST_SLOT || slot >= queue.slots {
            self.fail(number, CommandByte(0), ReturnCode::ADDR_OUT_OF_RANGE);
            return;
        }
        queue.write = slot;
        self.queues.list(number);
    }

    /// A store to a low-latency window, at an offset in the launch page, of a command that is in
    /// the ring as well. Which part of a window a command goes to follows from where it is in the
    /// ring; a store anywhere else but to the start of that part does nothing.
    pub fn ring_window(&mut self, number: u16, offset: usize) {
        let Some(queue) = self.queues.table.get_mut(number) else {
            return;
        };
        let (skipped, units) = match offset / launch_page::WINDOW_BYTES * launch_page::WINDOW_BYTES
        {
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
        if offset % launch_page::WINDOW_BYTES == launch_page::window_offset(start) as usize {
            queue.write = after(start, units);
            self.queues.list(number);
        }
    }

    /// A store to a doorbell of a counter.
    pub fn ring_counter(&mut self, number: u16, doorbell: CounterDoorbell, value: u64) {
        self.signals.rung(number, doorbell, value);
    }

    /// A store to the register word of an event queue.
    pub fn ring_event_queue(&mut self, number: u16) {
        if let Some(events) = self.signals.events.get_mut(number) {
            events.rung(&mut self.signals.effects);
        }
    }

    /// Polls all pages for doorbells, in an order that keeps the order of a thread's stores:
    /// transmit queues, target queues, counters. What is polled later is at least as new.
    pub fn poll(&mut self) {
        let mut rung = Vec::new();
        for (number, queue) in self.queues.table.iter_mut() {
            rung.extend(queue.pages.take_doorbell().map(|value| (number, value)));
        }
        self.poll_counters();
        for (number, value) in rung {
            self.ring_queue(number, value);
        }
        for (_, events) in self.signals.events.iter_mut() {
            events.polled(&mut self.signals.effects);
        }
    }

    /// Whether an event queue waits for a store to its register word that only
    /// [`poll`](Self::poll) sees: it has events, and its interrupt is masked.
    #[must_use]
    pub fn awaits_registers(&self) -> bool {
        self.signals
            .events
            .iter()
            .any(|(_, events)| events.awaits_unmask())
    }

    fn poll_counters(&mut self) {
        let mut stores = Vec::new();
        for (number, counter) in self.signals.counters.iter_mut() {
            let Some(page) = &counter.config.page else {
                continue;
            };
            for doorbell in CounterDoorbell::ALL {
                let value = page.take_doorbell(doorbell);
                stores.extend(value.map(|value| (number, doorbell, value)));
            }
        }
        for (number, doorbell, value) in stores {
            self.ring_counter(number, doorbell, value);
        }
    }

    /// Executes a command of the next target queue that has one, before all other work. Says
    /// whether there was any.
    pub fn step_target(&mut self) -> bool {
        let next = self.queues.target.pop_front();
        self.step_queue(next)
    }

    /// Executes a command of the next queue that has one: target queues come first, so that a buffer
    /// is there before what the same thread sends.
    pub(crate) fn step_queues(&mut self) -> bool {
        self.step_target() || {
            let next = self.queues.transmit.pop_front();
            self.step_queue(next)
        }
    }

    fn step_queue(&mut self, next: Option<u16>) -> bool {
        let Some(number) = next else {
            return false;
        };
        if let Some(queue) = self.queues.table.get_mut(number) {
            queue.listed = false;
        }
        self.execute(number);
        self.queues.list(number);
        true
    }

    fn execute(&mut self, number: u16) {
        let Some(queue) = self
            .queues
            .table
            .get_mut(number)
            .filter(|it| it.has_commands())
        else {
            return;
        };
        let fetched = match queue.fetch() {
            Ok(fetched) => fetched,
            Err((byte, code)) => return self.fail(number, byte, code),
        };
        let byte = fetched.byte;
        let slots = if byte.0 == 0 { 1 } else { byte.slots() };
        self.telemetry.command(byte);
        let done = if byte.0 == 0 {
            Ok(())
        } else if number >= FIRST_TARGET {
            self.execute_target(number, &fetched)
        } else {
            self.execute_transmit(number, &fetched)
        };
        if let Err(code) = done {
            return self.fail(number, byte, code);
        }
        if byte.0 != 0 {
            self.telemetry.command_ended(number, ReturnCode::OK);
        }
        if let Some(queue) = self.queues.table.get_mut(number) {
            queue.advance(u32::try_from(slots).unwrap_or(0));
        }
    }

    /// Reports a command that cannot be executed, and stops its queue.
    pub(crate) fn fail(&mut self, number: u16, byte: CommandByte, code: ReturnCode) {
        let Some(queue) = self.queues.table.get_mut(number).filter(|it| !it.stopped) else {
            return;
        };
        self.telemetry.command_ended(number, code);
        let event = CommandFailure {
            cq_id: number % FIRST_TARGET,
            is_target: number >= FIRST_TARGET,
            fail_loc: u16::try_from(queue.read / UNIT_SLOTS).unwrap_or(0),
            fail_command: byte,
            event_size: EventSize::BYTES_16,
            event_type: EventType::COMMAND_FAILURE,
            return_code: code,
        };
        queue.stop(byte, code);
        let eq = queue.eq;
        self.signals.post(eq, &event.encode());
    }
}
