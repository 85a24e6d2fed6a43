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

    /// Works until there is nothing to do but wait. Says whether there was anything.
    pub fn run_until_idle(&mut self) -> bool {
        let mut worked = false;
        while self.step() {
            worked = true;
        }
        worked
    }
}
