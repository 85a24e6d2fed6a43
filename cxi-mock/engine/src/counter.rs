//! Counters: successes, failures, and commands that wait for them.

use std::collections::{BTreeMap, VecDeque};

use cxi_hw::{CtCommand, CtOp, CtWriteback, EventType};

use crate::event_queue::Events;
use crate::staged::Staged;
use crate::table::Table;
use crate::telemetry::{Counts, EVENT_TYPES};
use crate::{Counter, CounterDoorbell, Effect, Observer};

/// Successes have 48 bits.
const SUCCESS_MASK: u64 = (1 << 48) - 1;
/// Failures have seven, and stop at the highest.
const MAX_FAILURE: u64 = 127;

/// A counter and what waits for it.
#[derive(Debug)]
pub(crate) struct Count {
    pub(crate) config: Counter,
    success: u64,
    failure: u64,
    /// By threshold, then by arrival.
    waiting: BTreeMap<(u64, u64), Triggered>,
}

/// A triggered command.
#[derive(Clone, Debug)]
pub(crate) struct Triggered {
    /// Transmit queue that it came from.
    pub(crate) queue: u16,
    /// Which of the queues that have had that number.
    pub(crate) generation: u64,
    /// Pool of the list entry that it takes while it waits.
    pub(crate) pool: u8,
    pub(crate) op: CtOp,
    pub(crate) command: CtCommand,
    /// The command of a TRIG_DMA.
    pub(crate) dma: Option<Box<[u8; 96]>>,
}

/// How the NIC reports to clients: event queues and counters.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    pub(crate) events: Table<Events>,
    pub(crate) counters: Table<Count>,
    pub(crate) effects: Vec<Effect>,
    pub(crate) staged: Option<Staged>,
    pub(crate) observer: Option<Box<dyn Observer>>,
    /// Events that were written, by type.
    pub(crate) written: Counts<EVENT_TYPES>,
    /// Stores to doorbells of counters.
    pub(crate) doorbells: u64,
    /// Triggered commands that are due, in order of arrival.
    pub(crate) fired: VecDeque<Triggered>,
    arrivals: u64,
}

impl Count {
    pub(crate) fn new(config: Counter) -> Self {
        Self {
            config,
            success: 0,
            failure: 0,
            waiting: BTreeMap::new(),
        }
    }

    fn total(&self) -> u64 {
        self.success + self.failure
    }

    fn add(&mut self, success: u64, failure: u64) {
        self.success = self.success.wrapping_add(success) & SUCCESS_MASK;
        self.failure = self.failure.saturating_add(failure).min(MAX_FAILURE);
    }

    fn write_back(&self, effects: &mut Vec<Effect>) {
        let Some(to) = &self.config.write_back else {
            return;
        };
        let word = CtWriteback {
            ct_success: self.success,
            // No more than MAX_FAILURE.
            ct_failure: self.failure.to_le_bytes()[0],
            ct_writeback: true,
        };
        if to.memory.write(&[(to.va, &word.encode())]).is_err() {
            Effect::fault(effects, self.config.rgid, to.va);
        }
    }
}

/// The type of an event, which all events have in the same place.
fn event_type(event: &[u8]) -> EventType {
    EventType(event.get(14).map_or(0, |byte| byte >> 2 & 31))
}

impl Signals {
    /// Whether events may go to that queue; 0 is none.
    pub(crate) fn may_report(&self, rgid: u16, eq: u16) -> bool {
        eq == 0 || self.events.get(eq).is_some_and(|it| it.config.rgid == rgid)
    }

    /// Whether that counter may be used; 0 is none.
    pub(crate) fn may_count(&self, rgid: u16, ct: u16) -> bool {
        ct == 0
            || self
                .counters
                .get(ct)
                .is_some_and(|it| it.config.rgid == rgid)
    }

    /// Writes an event, with the bytes that wait for it; to no queue if the number is 0 or the queue
    /// is gone. If there is no memory for the bytes, they still wait, and there is no event.
    pub(crate) fn post(&mut self, eq: u16, event: &[u8]) {
        let Some(events) = self.events.get_mut(eq) else {
            return;
        };
        let Ok(stored) = events.post(event, &mut self.staged, &mut self.effects) else {
            return;
        };
        if stored {
            self.written.add(event_type(event).0);
        }
        if let Some(observer) = &mut self.observer {
            observer.event(eq, event, !stored);
        }
    }

    /// Counts successes or failures; does nothing for number 0 or a counter that is gone.
    pub(crate) fn count(&mut self, ct: u16, success: u64, failure: u64) {
        if let Some(counter) = self.counters.get_mut(ct) {
            counter.add(success, failure);
            if failure > 0 {
                counter.write_back(&mut self.effects);
            }
            self.fire(ct);
        }
    }

    /// A store to a doorbell.
    pub(crate) fn rung(&mut self, ct: u16, doorbell: CounterDoorbell, value: u64) {
        let Some(counter) = self.counters.get_mut(ct) else {
            return;
        };
        self.doorbells += 1;
        match doorbell {
            CounterDoorbell::AddSuccess => counter.add(value & SUCCESS_MASK, 0),
            CounterDoorbell::AddFailure => counter.add(0, value & MAX_FAILURE),
            CounterDoorbell::ResetSuccess => counter.success = 0,
            CounterDoorbell::ResetFailure => counter.failure = 0,
        }
        if doorbell != CounterDoorbell::AddSuccess {
            counter.write_back(&mut self.effects);
        }
        self.fire(ct);
    }

    /// SET and TRIG_SET: what the command flags.
    pub(crate) fn set(&mut self, command: &CtCommand) {
        let Some(counter) = self.counters.get_mut(command.ct) else {
            return;
        };
        if command.set_ct_success {
            counter.success = command.ct_success;
        }
        if command.set_ct_failure {
            counter.failure = command.ct_failure.into();
        }
        counter.write_back(&mut self.effects);
        self.fire(command.ct);
    }

    /// INC and TRIG_INC.
    pub(crate) fn increment(&mut self, command: &CtCommand) {
        let (success, failure) = (command.ct_success, command.ct_failure.into());
        self.count(command.ct, success, failure);
    }

    /// GET and TRIG_EVENT.
    pub(crate) fn write_back(&mut self, ct: u16) {
        if let Some(counter) = self.counters.get_mut(ct) {
            counter.write_back(&mut self.effects);
        }
    }

    /// Whether a command that waits for a threshold need not wait.
    pub(crate) fn is_reached(&self, command: &CtCommand) -> bool {
        self.counters
            .get(command.trig_ct)
            .is_some_and(|counter| counter.total() >= command.threshold)
    }

    /// Lets a command wait.
    pub(crate) fn wait(&mut self, triggered: Triggered) {
        self.arrivals += 1;
        let CtCommand {
            trig_ct, threshold, ..
        } = triggered.command;
        if let Some(counter) = self.counters.get_mut(trig_ct) {
            counter
                .waiting
                .insert((threshold, self.arrivals), triggered);
        }
    }

    /// CANCEL: commands that waited for a counter.
    pub(crate) fn cancel(&mut self, ct: u16) -> impl Iterator<Item = Triggered> + use<> {
        let counter = self.counters.get_mut(ct);
        let waiting = counter.map(|counter| std::mem::take(&mut counter.waiting));
        waiting.into_iter().flat_map(BTreeMap::into_values)
    }

    /// Commands of a queue that still wait.
    pub(crate) fn cancel_of_queue(&mut self, queue: u16, generation: u64) -> Vec<Triggered> {
        let mut cancelled = Vec::new();
        for (_, counter) in self.counters.iter_mut() {
            counter.waiting.retain(|_, it| {
                let keep = (it.queue, it.generation) != (queue, generation);
                if !keep {
                    cancelled.push(it.clone());
                }
                keep
            });
        }
        cancelled
    }

    /// Finds the commands that are due, oldest first.
    fn fire(&mut self, ct: u16) {
        let Some(counter) = self.counters.get_mut(ct) else {
            return;
        };
        let total = counter.total();
        if counter
            .waiting
            .first_key_value()
            .is_none_or(|(key, _)| key.0 > total)
        {
            return;
        }
        let rest = counter.waiting.split_off(&(total + 1, 0));
        let ready = std::mem::replace(&mut counter.waiting, rest);
        let mut ready: Vec<_> = ready.into_iter().collect();
        ready.sort_unstable_by_key(|((_, arrival), _)| *arrival);
        self.fired
            .extend(ready.into_iter().map(|(_, triggered)| triggered));
    }
}
