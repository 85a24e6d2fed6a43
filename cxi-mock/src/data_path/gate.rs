//! Doorbells of target queues to which programs store without being stopped, while there is
//! traffic.
//!
//! An append matters only when a message arrives, when its program sends, or when its program waits
//! for an event of it. Doorbells whose stores have caused no events lately are therefore opened:
//! every thread polls them when it locks the data path, and one thread does so regularly. They are
//! closed when nothing was stored for a while, or when only that thread noticed a store that caused
//! an event.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cxi_engine::Engine;

use super::window_memory::WindowMemory;
use super::{DataPath, State, TURN, small};

/// Numbers of trapped stores without an event that it takes to open doorbells: at first, and at
/// most.
const STORES: (u32, u32) = (2, 4096);
/// The longest time between two such stores.
const CLOSE: Duration = Duration::from_millis(1);
/// Number of polls in a row without a store that it takes to close doorbells.
const LOOKS: u32 = 2;

/// The doorbells of the target queues of a file.
#[derive(Debug)]
pub(super) struct Gate {
    /// Trapped stores without an event, each soon after the one before, and when the last one was.
    stores: (u32, Option<Instant>),
    /// Number of them that it takes to open the doorbells.
    needed: u32,
    open: Option<Open>,
}

/// Doorbells that are open.
#[derive(Debug)]
struct Open {
    memory: Arc<WindowMemory>,
    /// The queues, by the page of their doorbell.
    queues: Vec<(usize, u16)>,
    /// `true` if there were stores since the thread last polled.
    rung: bool,
    /// `true` if that thread noticed one of them first, and it caused an event.
    awaited: bool,
    /// Polls in a row without a store.
    quiet: u32,
}

impl Default for Gate {
    fn default() -> Self {
        Self { stores: (0, None), needed: STORES.0, open: None }
    }
}

impl Gate {
    fn count(&mut self, caused_event: bool) {
        let now = Instant::now();
        let (count, last) = self.stores;
        let soon = last.is_some_and(|last| now - last < CLOSE);
        let count = match (caused_event, soon) {
            (true, _) => 0,
            (false, true) => count.saturating_add(1),
            (false, false) => 1,
        };
        self.stores = (count, Some(now));
    }

    fn close(&mut self, engine: &mut Engine) -> bool {
        let Some(open) = &self.open else { return true };
        let Some(stored) = open.memory.close() else { return false };
        ring(engine, &open.queues, &stored);
        self.open = None;
        self.stores = (0, None);
        true
    }

    /// Closes the doorbells if it is time. Returns whether they are open.
    fn tend(&mut self, engine: &mut Engine) -> bool {
        let Some(open) = &mut self.open else { return false };
        open.quiet = if open.rung { 0 } else { open.quiet + 1 };
        open.rung = false;
        let needed = match (open.awaited, open.quiet) {
            // A program was waiting for that event, so its stores should have been trapped.
            (true, _) => self.needed * 2,
            (false, LOOKS..) => self.needed / 2,
            (false, _) => return true,
        };
        self.needed = needed.clamp(STORES.0, STORES.1);
        !self.close(engine)
    }
}

/// Rings target queues and executes their commands before anything else. Returns whether that has
/// caused events.
fn ring(engine: &mut Engine, queues: &[(usize, u16)], stored: &[(usize, u64)]) -> bool {
    let before = engine.events_written();
    for (page, value) in stored {
        if let Some((_, queue)) = queues.iter().find(|(of, _)| of == page) {
            engine.ring_queue(*queue, *value);
        }
    }
    let mut steps = 0;
    while steps < TURN && engine.step_target() {
        steps += 1;
    }
    engine.events_written() != before
}

impl State {
    /// Polls the doorbells that are open.
    pub(super) fn poll_doorbells(&mut self, as_thread: bool) {
        for open in self.gates.values_mut().filter_map(|it| it.open.as_mut()) {
            let stored = open.memory.take();
            if !stored.is_empty() {
                let caused_event = ring(&mut self.engine, &open.queues, &stored);
                open.rung = true;
                open.awaited |= as_thread && caused_event;
            }
        }
    }

    /// Handles a trapped store to the doorbell of a target queue of a file.
    pub(super) fn ring_target(&mut self, file: u32, queue: u16, value: u64) {
        let caused_event = ring(&mut self.engine, &[(0, queue)], &[(0, value)]);
        self.gates.entry(file).or_default().count(caused_event);
    }

    pub(super) fn has_open(&self) -> bool {
        self.gates.values().any(|gate| gate.open.is_some())
    }

    /// Forgets the doorbell of a target queue that is gone.
    pub(super) fn forget_doorbell(&mut self, queue: u16) {
        for open in self.gates.values_mut().filter_map(|it| it.open.as_mut()) {
            open.queues.retain(|(_, known)| *known != queue);
        }
    }
}

impl DataPath {
    /// Returns whether the doorbells of a file's target queues should be opened.
    pub(crate) fn wants_open(&self, file: u32) -> bool {
        let state = self.lock();
        let gate = state.gates.get(&file);
        gate.is_some_and(|gate| gate.open.is_none() && gate.stores.0 >= gate.needed)
    }

    /// Records that the doorbells of a file's target queues have been opened.
    pub(crate) fn opened(&self, file: u32, memory: Arc<WindowMemory>, queues: &[(usize, u32)]) {
        let queues = queues.iter().map(|(page, id)| (*page, small(*id)));
        let mut state = self.state();
        state.gates.entry(file).or_default().open =
            Some(Open { memory, queues: queues.collect(), rung: true, awaited: false, quiet: 0 });
        self.wake(&mut state);
    }

    /// Closes the doorbells of a file's target queues. Returns whether they are closed.
    pub(crate) fn close_doorbells(&self, file: u32) -> bool {
        let mut state = self.state();
        let state = &mut *state;
        let gate = state.gates.get_mut(&file);
        gate.is_none_or(|gate| gate.close(&mut state.engine))
    }

    /// Forgets the doorbells of a file that is closed.
    pub(crate) fn forget_doorbells(&self, file: u32) {
        self.state().gates.remove(&file);
    }

    /// Closes doorbells that need not or must not be open any more. Returns whether any are open.
    pub(crate) fn tend_doorbells(&self) -> bool {
        let mut state = self.lock();
        let state = &mut *state;
        state.gates.values_mut().fold(false, |open, gate| gate.tend(&mut state.engine) | open)
    }
}
