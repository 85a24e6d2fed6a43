//! The data path of a NIC: an engine, and what the control plane tells it.

mod gate;
mod memory;
mod pages;
mod portals;
mod queues;
mod window;
mod window_memory;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cxi_engine::{CounterDoorbell, Effect, Engine, Settings};

pub(crate) use memory::OwnMemory;
pub(crate) use pages::{Commands, EventPage, NOT_RUNG, QueuePages};
pub(crate) use portals::ELEMENTS;
pub(crate) use window::{Doorbell, PAGE, Windows};
pub(crate) use wire::Wire;

use gate::Gate;

use cxi_hw::launch_page::WRITE_POINTER;
use cxi_ioctl::abi::device::CASSINI_2;

use crate::NicConfig;

/// Bits of a PID and its PtlTE offset together.
const INDEX_BITS: u32 = 17;
/// PtlTE offset that rendezvous gets go to: the last of a PID.
const RDZV_GET_IDX_FROM_END: u32 = 1;

/// PtlTE offsets for each PID.
pub(crate) const fn pid_granule(pid_bits: u32) -> u32 {
    1 << (INDEX_BITS - pid_bits)
}

/// The PtlTE offset from which a NIC fetches the rest of a rendezvous put.
pub(crate) const fn rendezvous_index(pid_bits: u32) -> u32 {
    pid_granule(pid_bits) - RDZV_GET_IDX_FROM_END
}

/// How many pieces of work are done with the engine locked. A command of the control plane waits no
/// longer than that.
const TURN: usize = 64;

/// The data path of a NIC. Its lock is below the control plane's, and no thread holds two.
#[derive(Debug)]
pub(crate) struct DataPath {
    state: Mutex<State>,
    /// Notified when there may be work.
    busy: Condvar,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) engine: Engine,
    wire: Arc<Wire>,
    plugged: bool,
    link_up: bool,
    /// Doorbells that have to be polled.
    polled: BTreeSet<Doorbell>,
    /// Doorbells of target queues that are or may be open, by file.
    gates: BTreeMap<u32, Gate>,
    /// Whether a thread waits for work.
    asleep: bool,
}

impl DataPath {
    /// A NIC on a wire of its own.
    pub(crate) fn new(config: &NicConfig) -> Arc<Self> {
        let wire = Arc::<Wire>::default();
        let identity = &config.identity;
        let settings = Settings {
            nid: identity.nid,
            pid_bits: config.params.pid_bits,
            rendezvous_index: rendezvous_index(config.params.pid_bits),
            rendezvous_gets: config.params.rdzv_get_en_default,
            counts_first_drop: identity.cassini_version >= CASSINI_2,
            list_entries: config.params.list_entries(),
            triggered_entries: config.totals.tles,
        };
        let state = State {
            engine: Engine::new(settings, wire.fabric().clone()),
            wire: Arc::clone(&wire),
            plugged: true,
            link_up: identity.link_up,
            polled: BTreeSet::new(),
            gates: BTreeMap::new(),
            asleep: false,
        };
        let path = Arc::new(Self {
            state: Mutex::new(state),
            busy: Condvar::new(),
        });
        path.state().show_link();
        wire.add(&path);
        path
    }

    /// Moves the NIC from its wire to another one.
    pub(crate) fn connect(self: &Arc<Self>, wire: &Arc<Wire>) {
        let mut state = self.state();
        state.engine.set_fabric(wire.fabric().clone());
        state.wire = Arc::clone(wire);
        state.show_link();
        drop(state);
        wire.add(self);
    }

    /// Takes the link up or down.
    pub(crate) fn set_link(&self, up: bool) {
        let mut state = self.state();
        state.link_up = up;
        state.show_link();
    }

    /// Unplugs the NIC or plugs it back in. While it is unplugged, it reaches no other NIC.
    pub(crate) fn set_plugged(&self, plugged: bool) {
        let mut state = self.state();
        state.plugged = plugged;
        state.show_link();
        self.wake(&mut state);
    }

    /// Whether operations wait for an answer that may have been lost.
    pub(crate) fn awaits_answers(&self) -> bool {
        self.state().engine.awaits_answers()
    }

    /// Changes how the NIC is set up.
    pub(crate) fn set_up(&self, change: impl FnOnce(&mut Settings)) {
        let mut state = self.state();
        let mut settings = *state.engine.settings();
        change(&mut settings);
        state.engine.set_settings(settings);
        state.show_link();
    }

    /// Locks the data path, and notices what was stored to open doorbells.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        state.poll_doorbells(false);
        state
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Polls the doorbells and does some of the pending work, including what it causes on other
    /// NICs. Returns whether there was any.
    pub(crate) fn step(&self) -> bool {
        let mut state = self.lock();
        state.poll_doorbells(true);
        state.engine.poll();
        Self::run_step(state)
    }

    /// As [`step`](Self::step), after a trapped store to a doorbell. The caller takes its wake-ups.
    /// The thread that waits for work does everything else that is left.
    pub(crate) fn run(&self) {
        Self::run_step(self.state());
        let mut state = self.lock();
        if state.asleep && state.has_steps() {
            self.wake(&mut state);
        }
    }

    /// Leaves work and notifications to the thread that waits for work.
    fn leave_rest(&self) {
        let mut state = self.lock();
        if state.asleep && state.has_work() {
            self.wake(&mut state);
        }
    }

    /// Wakes the thread that waits for work.
    fn wake(&self, state: &mut State) {
        if std::mem::take(&mut state.asleep) {
            self.busy.notify_all();
        }
    }

    /// Handles a store to a doorbell of a file, at a place in its page. Returns whether it rang.
    pub(crate) fn ring(
        &self,
        file: u32,
        (doorbell, place): (Doorbell, usize),
        value: Option<u64>,
    ) -> bool {
        let mut state = self.state();
        let engine = &mut state.engine;
        match (doorbell, value) {
            (Doorbell::Target(_), _) if place != WRITE_POINTER => return false,
            (Doorbell::Queue(id), _) if place != WRITE_POINTER => {
                engine.ring_window(small(id), place);
            }
            (Doorbell::Target(id), Some(value)) => state.ring_target(file, small(id), value),
            (Doorbell::Queue(id), Some(value)) => engine.ring_queue(small(id), value),
            (Doorbell::Counter(id), Some(value)) => match CounterDoorbell::at(place) {
                Some(doorbell) => engine.ring_counter(small(id), doorbell, value),
                None => return false,
            },
            (_, None) => return false,
        }
        true
    }

    fn run_step(mut state: MutexGuard<'_, State>) -> bool {
        let mut worked = state.run_batch();
        let wire = Arc::clone(&state.wire);
        let waits = state.engine.awaits_answers() || wire.fabric().needs_time();
        drop(state);
        if waits {
            wire.expect_answers();
        }
        worked |= wire.run();
        worked
    }

    /// Does some of the pending work.
    fn run_batch(&self) -> bool {
        self.state().run_batch()
    }

    /// The address of the NIC.
    fn nid(&self) -> u32 {
        self.state().engine.settings().nid
    }

    /// Whether there are doorbells that only [`step`](Self::step) sees.
    pub(crate) fn is_polled(&self) -> bool {
        !self.lock().polled.is_empty()
    }

    /// Waits for work, but no longer than `most`. Returns whether it had to wait.
    pub(crate) fn wait_for_work(&self, most: Duration) -> bool {
        let mut state = self.lock();
        let waits = !state.has_work();
        if waits {
            state.asleep = true;
            let waited = self.busy.wait_timeout(state, most);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
        }
        waits
    }

    /// Wait objects to wake, as the numbers that event queues were added with.
    pub(crate) fn take_wakes(&self) -> Vec<u64> {
        let effects = self.lock().engine.take_effects();
        let wakes = effects.into_iter().filter_map(|effect| match effect {
            Effect::Wake(wait) => Some(wait),
            _ => None,
        });
        wakes.collect()
    }

    fn add_polled(&self, state: &mut State, doorbell: Doorbell) {
        state.polled.insert(doorbell);
        self.wake(state);
    }
}

impl State {
    /// Whether there is work without a notification.
    fn has_work(&self) -> bool {
        self.engine.has_effects() || self.has_steps()
    }

    /// Whether there is work, apart from wake-ups.
    fn has_steps(&self) -> bool {
        !self.polled.is_empty()
            || self.has_open()
            || self.engine.has_work()
            || self.engine.awaits_registers()
    }

    fn run_batch(&mut self) -> bool {
        let mut steps = 0;
        while steps < TURN && self.engine.step() {
            steps += 1;
        }
        steps > 0
    }

    /// Tells the fabric whether the NIC has a link.
    fn show_link(&self) {
        let nid = self.engine.settings().nid;
        let up = self.plugged && self.link_up;
        self.wire.fabric().set_link(nid, up);
    }
}

/// A number of the driver, as the engine has it. A device has fewer than 2^16 of everything that
/// the engine numbers, because configurations with more are refused when the driver is loaded.
#[expect(clippy::cast_possible_truncation, reason = "a device has fewer")]
pub(crate) fn small(number: u32) -> u16 {
    debug_assert!(u16::try_from(number).is_ok(), "the number {number}");
    number as u16
}
