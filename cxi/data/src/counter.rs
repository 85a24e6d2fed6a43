//! Counters, and commands that wait until a counter has reached a threshold.

use std::time::Duration;

use cxi::lni::{CounterValue, CountingEvent};
use cxi_hw::{Class, CommandByte, CounterDoorbell, CtCommand, CtOp, FullDma, SLOT_BYTES};

use crate::Result;
use crate::error::in_command;
use crate::kind::{Transmit, Triggered};
use crate::queue::{Post, Queue};
use crate::wait::until;

/// A counting event: successes and failures of operations.
///
/// The NIC counts on its own. It writes the value to memory when a [`CounterCommand::read`] or a
/// [`Trigger`](crate::Trigger) requests it, when a failure is counted, and when the counter is set.
#[derive(Debug)]
pub struct Counter {
    event: CountingEvent,
    id: u16,
}

impl Counter {
    /// Takes over a counting event.
    ///
    /// # Errors
    ///
    /// Its doorbell cannot be mapped.
    pub fn new(event: CountingEvent) -> Result<Self> {
        let id = in_command("counter", event.id())?;
        event.doorbell()?;
        Ok(Self { event, id })
    }

    pub(crate) const fn id(&self) -> u16 {
        self.id
    }

    /// The value that the NIC wrote last.
    #[must_use]
    pub fn value(&self) -> CounterValue {
        self.event.value()
    }

    /// Discards the value that the NIC wrote last; [`wait`](Self::wait) waits for the next one.
    pub fn clear(&self) {
        self.event.clear();
    }

    /// Waits until the NIC has written the value since it was cleared. Spins, and yields the
    /// processor.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`](crate::Error::TimedOut).
    pub fn wait(&self, most: Duration) -> Result<CounterValue> {
        until(most, || {
            let value = self.value();
            Ok(value.written_back.then_some(value))
        })
    }

    /// Adds successes, without a command queue.
    ///
    /// # Errors
    ///
    /// The doorbell cannot be mapped.
    pub fn add(&self, successes: u64) -> Result<()> {
        self.ring(CounterDoorbell::AddSuccess, successes)
    }

    /// Sets successes and failures to 0, without a command queue.
    ///
    /// # Errors
    ///
    /// The doorbell cannot be mapped.
    pub fn reset(&self) -> Result<()> {
        self.ring(CounterDoorbell::ResetSuccess, 0)?;
        self.ring(CounterDoorbell::ResetFailure, 0)
    }

    fn ring(&self, doorbell: CounterDoorbell, value: u64) -> Result<()> {
        Ok(self.event.doorbell()?.ring(doorbell.offset(), value)?)
    }
}

/// A command for a counter, which any transmit queue takes.
#[derive(Clone, Copy, Debug)]
#[must_use = "a command does nothing until it is posted"]
pub struct CounterCommand(CtCommand);

impl CounterCommand {
    fn new(op: CtOp, counter: &Counter) -> Self {
        Self(CtCommand { command: byte(op, 1), ct: counter.id, ..CtCommand::default() })
    }

    /// Writes the value to memory, where [`Counter::wait`] sees it.
    pub fn read(counter: &Counter) -> Self {
        Self::new(CtOp::GET, counter)
    }

    /// Sets the successes, and the failures to 0.
    pub fn set(counter: &Counter, successes: u64) -> Self {
        let mut command = Self::new(CtOp::SET, counter);
        command.0.ct_success = successes;
        (command.0.set_ct_success, command.0.set_ct_failure) = (true, true);
        command
    }

    /// Adds successes.
    pub fn add(counter: &Counter, successes: u64) -> Self {
        let mut command = Self::new(CtOp::INC, counter);
        command.0.ct_success = successes;
        command
    }

    /// Discards all triggered commands that wait for the counter.
    pub fn cancel(counter: &Counter) -> Self {
        Self::new(CtOp::CANCEL, counter)
    }
}

pub(crate) const fn byte(op: CtOp, size: u8) -> CommandByte {
    CommandByte::new(Class::CT, size, op.0)
}

/// Writes a command for counters, with a DMA command behind it if it has one.
pub(crate) fn write<K>(
    queue: &mut Queue<K>,
    command: CtCommand,
    dma: Option<FullDma>,
) -> Result<()> {
    let mut bytes = [0; 4 * SLOT_BYTES];
    bytes[..CtCommand::BYTES].copy_from_slice(&command.encode());
    if let Some(dma) = dma {
        bytes[CtCommand::BYTES..][..FullDma::BYTES].copy_from_slice(&dma.encode());
    }
    queue.write(&bytes[..command.command.bytes()])
}

impl Post<Transmit> for CounterCommand {
    fn write(&self, queue: &mut Queue<Transmit>) -> Result<()> {
        write(queue, self.0, None)
    }
}

impl Post<Triggered> for CounterCommand {
    fn write(&self, queue: &mut Queue<Triggered>) -> Result<()> {
        write(queue, self.0, None)
    }
}
