//! Commands that wait until a counter has reached a threshold.

use cxi_hw::{CtCommand, CtOp, FullDma, SLOT_BYTES};

use crate::counter::encode;
use crate::kind::Triggered;
use crate::queue::{Post, Queue};
use crate::{Counter, Dma, Events, Result};

/// A command that the NIC executes by itself when the successes and failures of a counter together
/// have reached a threshold.
#[derive(Clone, Copy, Debug)]
#[must_use = "a command does nothing until it is posted"]
pub struct Trigger<'a> {
    op: CtOp,
    command: CtCommand,
    dma: Option<Dma<'a>>,
}

impl<'a> Trigger<'a> {
    fn new(op: CtOp, counter: &Counter, threshold: u64) -> Self {
        let command = CtCommand {
            trig_ct: counter.id(),
            threshold,
            ..CtCommand::default()
        };
        Self {
            op,
            command,
            dma: None,
        }
    }

    /// Writes the counter's value to memory, where [`Counter::wait`] sees it.
    pub fn write_back(counter: &Counter, threshold: u64) -> Self {
        Self::new(CtOp::TRIG_EVENT, counter, threshold)
    }

    /// The same, and an [`Event::Triggered`](crate::Event::Triggered).
    pub fn event(counter: &Counter, threshold: u64, events: &Events) -> Self {
        let mut trigger = Self::write_back(counter, threshold);
        trigger.command.eq = events.id();
        trigger
    }

    /// Executes a put or get.
    pub fn dma(counter: &Counter, threshold: u64, dma: Dma<'a>) -> Self {
        Self {
            dma: Some(dma),
            ..Self::new(CtOp::TRIG_DMA, counter, threshold)
        }
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
        let Some(dma) = &self.dma else {
            let command = encode(self.op, 1, self.command);
            return queue.write(&command[..2 * SLOT_BYTES]);
        };
        let mut command = encode(self.op, 2, self.command);
        let dma = dma.encode(queue.kind.initiator, queue.pid_bits)?;
        // Behind the command that waits.
        let place = CtCommand::BYTES..CtCommand::BYTES + FullDma::BYTES;
        command[place].copy_from_slice(&dma.encode());
        queue.write(&command)
    }
}
