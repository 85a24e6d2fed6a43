//! Commands for counters, at once or when a counter reaches a threshold.

use cxi_hw::{
    CommandByte, CtCommand, CtOp, DmaAtomic, EventSize, EventType, ReturnCode, TriggeredLong,
    TriggeredShort,
};

use crate::command_queue::{Fetched, Kind};
use crate::counter::Triggered;
use crate::{Engine, EventFlags};

impl Engine {
    pub(crate) fn execute_counter(
        &mut self,
        number: u16,
        fetched: &Fetched,
    ) -> Result<(), ReturnCode> {
        let byte = fetched.byte;
        let op = CtOp(byte.opcode());
        let slots = if op == CtOp::TRIG_DMA { 4 } else { 2 };
        if byte.slots() != slots {
            return Err(ReturnCode::CMD_INVALID_ARG);
        }
        let command = CtCommand::decode(&fetched.head());
        let queue = self
            .queues
            .table
            .get(number)
            .ok_or(ReturnCode::CMD_INVALID_ARG)?;
        let (rgid, generation) = (queue.rgid, queue.generation);
        let pool = match queue.kind {
            Kind::Transmit {
                triggered: true,
                pool,
                ..
            } => Some(pool),
            _ => None,
        };
        let known = |ct| ct != 0 && self.signals.may_count(rgid, ct);
        let valid = match op {
            CtOp::NOOP => true,
            CtOp::SET | CtOp::GET | CtOp::INC | CtOp::CANCEL => known(command.ct),
            CtOp::TRIG_SET | CtOp::TRIG_INC => known(command.ct) && known(command.trig_ct),
            CtOp::TRIG_EVENT => known(command.trig_ct) && self.signals.may_report(rgid, command.eq),
            CtOp::TRIG_DMA => known(command.trig_ct),
            _ => return Err(ReturnCode::ILLEGAL_OP),
        };
        if !valid {
            return Err(ReturnCode::CMD_INVALID_ARG);
        }
        match op {
            CtOp::SET => self.signals.set(&command),
            CtOp::GET => self.signals.write_back(command.ct),
            CtOp::INC => self.signals.increment(&command),
            CtOp::CANCEL => self.cancel(command.ct),
            CtOp::TRIG_SET | CtOp::TRIG_INC | CtOp::TRIG_EVENT | CtOp::TRIG_DMA => {
                let pool = pool.ok_or(ReturnCode::ILLEGAL_OP)?;
                let dma = (op == CtOp::TRIG_DMA).then(|| {
                    let from = CtCommand::BYTES;
                    Box::new(std::array::from_fn(|at| fetched.bytes[from + at]))
                });
                let triggered = Triggered {
                    queue: number,
                    generation,
                    pool,
                    op,
                    command,
                    dma,
                };
                self.trigger(triggered)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Fires a command, or makes it wait.
    fn trigger(&mut self, triggered: Triggered) -> Result<(), ReturnCode> {
        let reached = self.signals.is_reached(&triggered.command);
        if !self.pools.take_triggered(triggered.pool) {
            return Err(ReturnCode::NO_SPACE);
        }
        if let Some(queue) = self.queues.table.get_mut(triggered.queue) {
            queue.pending += 1;
        }
        if reached {
            self.signals.fired.push_back(triggered);
        } else {
            self.signals.wait(triggered);
        }
        Ok(())
    }

    fn cancel(&mut self, ct: u16) {
        for triggered in self.signals.cancel(ct) {
            self.forget_triggered(&triggered);
        }
    }

    /// A triggered command was cancelled before it ran.
    pub(crate) fn forget_triggered(&mut self, triggered: &Triggered) {
        self.pools.give_triggered(triggered.pool);
        self.end_triggered(triggered.queue, triggered.generation);
    }

    /// A triggered command has ended.
    pub(crate) fn end_triggered(&mut self, number: u16, generation: u64) {
        if let Some(queue) = self.queues.table.get_mut(number)
            && queue.generation == generation
        {
            queue.pending = queue.pending.saturating_sub(1);
        }
    }

    /// Runs the next command that is due. Commands that it triggers come after it.
    pub(crate) fn step_triggered(&mut self) -> bool {
        let Some(triggered) = self.signals.fired.pop_front() else {
            return false;
        };
        self.pools.give_triggered(triggered.pool);
        let queue = self.queues.table.get(triggered.queue);
        if queue.is_none_or(|queue| queue.generation != triggered.generation) {
            return true;
        }
        let command = &triggered.command;
        match triggered.op {
            CtOp::TRIG_SET => self.signals.set(command),
            CtOp::TRIG_INC => self.signals.increment(command),
            CtOp::TRIG_EVENT => {
                self.signals.write_back(command.trig_ct);
                self.post_triggered(command);
            }
            _ => return self.fire_dma(&triggered),
        }
        self.end_triggered(triggered.queue, triggered.generation);
        true
    }

    fn fire_dma(&mut self, triggered: &Triggered) -> bool {
        let number = triggered.queue;
        let Some(dma) = &triggered.dma else {
            return true;
        };
        let bytes: &[u8; DmaAtomic::BYTES] = dma;
        let byte = CommandByte(bytes[0]);
        // Triggered commands are sent with LCID 0.
        let sender = self.sender(number, 0, true);
        let done = sender.and_then(|sender| {
            if byte.class() == cxi_hw::Class::DMA {
                self.execute_dma(sender, byte, bytes)
            } else {
                Err(ReturnCode::ILLEGAL_OP)
            }
        });
        if let Err(code) = done {
            self.end_triggered(number, triggered.generation);
            self.fail(number, byte, code);
        }
        true
    }

    fn post_triggered(&mut self, command: &CtCommand) {
        let event = TriggeredShort {
            threshold: command.threshold,
            ct_handle: command.trig_ct,
            event_size: EventSize::BYTES_16,
            event_type: EventType::TRIGGERED_OP,
            return_code: ReturnCode::OK,
        };
        let events = self.signals.events.get(command.eq);
        let long = events.is_some_and(|it| it.config.flags.contains(EventFlags::INITIATOR_LONG));
        if long {
            let event = TriggeredLong {
                threshold: event.threshold,
                ct_handle: event.ct_handle,
                event_size: EventSize::BYTES_32,
                event_type: event.event_type,
                return_code: event.return_code,
                ..TriggeredLong::default()
            };
            self.signals.post(command.eq, &event.encode());
        } else {
            self.signals.post(command.eq, &event.encode());
        }
    }
}
