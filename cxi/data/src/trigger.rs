//! Commands that a counter fires.

use cxi_hw::{CtCommand, CtOp};

use crate::counter::{byte, write};
use crate::kind::Triggered;
use crate::queue::{Post, Queue};
use crate::{Counter, Dma, Events, Result};

/// A command that the NIC executes by itself when the successes and failures of a counter together
/// have reached a threshold.
#[derive(Clone, Copy, Debug)]
#[must_use = "a command does nothing until it is posted"]
pub struct Trigger<'a> {
    command: CtCommand,
    dma: Option<Dma<'a>>,
}

impl<'a> Trigger<'a> {
    fn new(op: CtOp, counter: &Counter, threshold: u64) -> Self {
        let command = CtCommand {
            command: byte(op, 1),
            trig_ct: counter.id(),
            threshold,
            ..CtCommand::default()
        };
        Self { command, dma: None }
    }

    /// Writes the counter's value to memory, where [`Counter::wait`] sees it.
    pub fn write_back(counter: &Counter, threshold: u64) -> Self {
        Self::new(CtOp::TRIG_EVENT, counter, threshold)
    }

    /// The same, and also reports an [`Event::Triggered`](crate::Event::Triggered).
    pub fn event(counter: &Counter, threshold: u64, events: &Events) -> Self {
        let mut trigger = Self::write_back(counter, threshold);
        trigger.command.eq = events.id();
        trigger
    }

    /// Executes a put or get.
    pub fn dma(counter: &Counter, threshold: u64, dma: Dma<'a>) -> Self {
        let mut trigger = Self::new(CtOp::TRIG_DMA, counter, threshold);
        trigger.command.command = byte(CtOp::TRIG_DMA, 2);
        trigger.dma = Some(dma);
        trigger
    }

    /// Adds successes to another counter.
    pub fn add(counter: &Counter, threshold: u64, to: &Counter, successes: u64) -> Self {
        let mut trigger = Self::new(CtOp::TRIG_INC, counter, threshold);
        (trigger.command.ct, trigger.command.ct_success) = (to.id(), successes);
        trigger
    }
}

impl Post<Triggered> for Trigger<'_> {
    fn write(&self, queue: &mut Queue<Triggered>) -> Result<()> {
        let encode = |dma: Dma<'_>| dma.encode(queue.kind.initiator, queue.pid_bits);
        let dma = self.dma.map(encode).transpose()?;
        write(queue, self.command, dma)
    }
}
