//! Counters: successes, failures, and commands that wait for them.

use std::collections::BTreeMap;
use std::sync::Arc;

use cxi_hw::{CtCommand, CtOp, CtWriteback};

use crate::dma::{Dmas, Target};
use crate::{Counter, CounterDoorbell, WriteBack};

/// Successes have 48 bits.
const SUCCESS_MASK: u64 = (1 << 48) - 1;
/// Failures have seven bits, and stop at the largest value.
const MAX_FAILURE: u64 = 127;

/// A triggered command.
#[derive(Clone, Debug)]
pub(crate) struct Triggered {
    /// Transmit queue that it came from.
    pub(crate) queue: u16,
    /// The generation of the queue: which of the queues that have had its number.
    pub(crate) generation: u64,
    /// The RGID that the queue belongs to.
    pub(crate) rgid: u16,
    /// Pool of the list entry that it takes while it waits.
    pub(crate) pool: u8,
    pub(crate) op: CtOp,
    pub(crate) command: CtCommand,
    /// The command of a TRIG_DMA.
    pub(crate) dma: Option<Box<[u8; 96]>>,
}

/// A counter and what waits for it.
#[derive(Debug)]
pub(crate) struct Count {
    pub(crate) config: Counter,
    /// As long as it is written back to the same place.
    alive: Arc<()>,
    success: u64,
    failure: u64,
    /// Waiting commands by threshold, then by arrival.
    waiting: BTreeMap<(u64, u64), Triggered>,
}

impl Count {
    pub(crate) fn new(config: Counter) -> Self {
        Self { config, alive: Arc::default(), success: 0, failure: 0, waiting: BTreeMap::new() }
    }

    /// Returns whether a command with that threshold need not wait.
    pub(crate) fn has_reached(&self, threshold: u64) -> bool {
        self.success + self.failure >= threshold
    }

    /// Adds successes and failures.
    pub(crate) fn add(&mut self, success: u64, failure: u64, dmas: &mut Dmas) {
        // Rule 4.8: Successes wrap at 48 bits; failures stop at 127, so that a failure is never
        // lost.
        self.success = self.success.wrapping_add(success) & SUCCESS_MASK;
        self.failure = self.failure.saturating_add(failure).min(MAX_FAILURE);
        // Rule 4.2: Resets, sets and failures write back; successes do not, as each would cost a
        // store.
        if failure > 0 {
            self.write_back(dmas);
        }
    }

    /// Handles a store to a doorbell.
    pub(crate) fn ring(&mut self, doorbell: CounterDoorbell, value: u64, dmas: &mut Dmas) {
        // Rule 4.3: Two doorbells add the stored value; the other two reset to 0 whatever is
        // stored.
        match doorbell {
            // Rule 4.4: Each store to a doorbell counts, even if the value is the same.
            CounterDoorbell::AddSuccess => return self.add(value & SUCCESS_MASK, 0, dmas),
            CounterDoorbell::AddFailure => {
                self.failure = (self.failure + (value & MAX_FAILURE)).min(MAX_FAILURE);
            }
            CounterDoorbell::ResetSuccess => self.success = 0,
            CounterDoorbell::ResetFailure => self.failure = 0,
        }
        self.write_back(dmas);
    }

    /// Executes SET and TRIG_SET.
    pub(crate) fn set(&mut self, command: &CtCommand, dmas: &mut Dmas) {
        // Rule 14.4: TRIG_SET and SET change only the flagged parts.
        if command.set_ct_success {
            self.success = command.ct_success;
        }
        if command.set_ct_failure {
            self.failure = command.ct_failure.into();
        }
        self.write_back(dmas);
    }

    /// Changes where it is written back.
    pub(crate) fn set_write_back(&mut self, write_back: Option<WriteBack>, dmas: &mut Dmas) {
        let old = std::mem::replace(&mut self.config.write_back, write_back);
        self.alive = Arc::default();
        if let Some(old) = old {
            dmas.release(&old.memory);
        }
    }

    pub(crate) fn write_back(&self, dmas: &mut Dmas) {
        let Some(WriteBack { memory, va }) = &self.config.write_back else { return };
        // Rule 4.1: A write-back is a single word with successes, failures and a bit that the
        // client clears to detect the next one.
        let word = CtWriteback {
            ct_success: self.success,
            // It is at most `MAX_FAILURE`, which fits one byte.
            ct_failure: self.failure.to_le_bytes()[0],
            ct_writeback: true,
        };
        let target = Target { memory, rgid: self.config.rgid, alive: &self.alive };
        dmas.store(target, &[(*va, &word.encode())]);
    }

    /// Lets a command wait for its threshold.
    pub(crate) fn wait(&mut self, arrival: u64, triggered: Triggered) {
        let key = (triggered.command.threshold, arrival);
        self.waiting.insert(key, triggered);
    }

    /// Takes the commands whose threshold is reached.
    pub(crate) fn take_reached(&mut self) -> Vec<Triggered> {
        let total = self.success + self.failure;
        let first = self.waiting.first_key_value();
        if first.is_none_or(|((threshold, _), _)| *threshold > total) {
            return Vec::new();
        }
        let rest = self.waiting.split_off(&(total + 1, 0));
        let reached = std::mem::replace(&mut self.waiting, rest);
        let mut reached: Vec<_> = reached.into_iter().collect();
        // Rule 14.1: A command fires when successes and failures together reach its threshold;
        // commands that become ready together run in order of arrival.
        reached.sort_unstable_by_key(|((_, arrival), _)| *arrival);
        reached.into_iter().map(|(_, triggered)| triggered).collect()
    }

    /// Takes the waiting commands that fit.
    pub(crate) fn take_waiting(&mut self, fits: impl Fn(&Triggered) -> bool) -> Vec<Triggered> {
        let (taken, rest) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|(_, triggered)| fits(triggered));
        self.waiting = rest;
        BTreeMap::into_values(taken).collect()
    }
}
