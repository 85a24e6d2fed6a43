//! What the engine does next.

use crate::Engine;

impl Engine {
    /// Does one piece of work: goes on with a long copy, fires a triggered command, takes a packet,
    /// or executes a command. Says whether there was any.
    pub fn step(&mut self) -> bool {
        self.step_transfer()
            || self.step_triggered()
            || self.step_packets()
            || self.step_queues()
            || self.step_retries()
    }

    /// Whether [`step`](Self::step) would find work, lost packets aside.
    #[must_use]
    pub fn has_work(&self) -> bool {
        self.transfer.is_some()
            || !self.signals.fired.is_empty()
            || !self.inbox.is_empty()
            || self.fabric.has_packets(self.settings.nid)
            || self.queues.any_listed()
    }

    /// Works until there is nothing to do but wait. Returns whether there was any work.
    pub fn run_until_idle(&mut self) -> bool {
        let mut worked = false;
        while self.step() {
            worked = true;
        }
        worked
    }
}
