//! The data path of a NIC: an engine, and what the control plane tells it.

mod events;
mod memory;
mod pages;
mod portals;
mod queues;
mod traffic;
mod wire;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cxi_engine::{Effect, Engine, Settings};

pub(crate) use events::NewEvents;
pub(crate) use memory::OwnMemory;
pub(crate) use portals::NewPortal;
pub(crate) use queues::{NewQueue, Ring};
pub(crate) use wire::Wire;

use crate::NicConfig;
use crate::nic::rendezvous_index;

/// Pieces of work that the engine is held for: a command of the control plane waits no longer.
const TURN: usize = 64;
/// The first chip of the second generation, as device information has it.
const CASSINI_2: u32 = 32;

/// The data path of a NIC. Its lock is below the control plane's, and nobody holds two.
#[derive(Debug)]
pub(crate) struct DataPath {
    state: Mutex<State>,
    /// There are queues.
    busy: Condvar,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) engine: Engine,
    wire: Arc<Wire>,
    plugged: bool,
    link_up: bool,
    /// Command queues and counters, which have doorbells.
    doorbells: usize,
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
        };
        let state = State {
            engine: Engine::new(settings, wire.fabric().clone()),
            wire: Arc::clone(&wire),
            plugged: true,
            link_up: identity.link_up,
            doorbells: 0,
        };
        let path = Arc::new(Self {
            state: Mutex::new(state),
            busy: Condvar::new(),
        });
        path.state().show_link();
        wire.add(&path);
        path
    }

    /// Takes the NIC from its wire to another one.
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

    /// Takes the NIC out or puts it back in: out, it reaches nobody.
    pub(crate) fn set_plugged(&self, plugged: bool) {
        let mut state = self.state();
        state.plugged = plugged;
        state.show_link();
        self.busy.notify_all();
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

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the doorbells and does some of what there is to do, and what it makes other NICs
    /// do. Says whether there was anything.
    pub(crate) fn step(&self) -> bool {
        let mut state = self.state();
        state.engine.poll();
        let mut worked = state.turn();
        let wire = Arc::clone(&state.wire);
        let waits = state.engine.awaits_answers();
        drop(state);
        if waits {
            wire.expect_answers();
        }
        worked |= wire.run();
        worked
    }

    /// Does some of what there is to do.
    fn turn(&self) -> bool {
        self.state().turn()
    }

    /// The address of the NIC.
    fn nid(&self) -> u32 {
        self.state().engine.settings().nid
    }

    /// Waits until there are doorbells to look at, or for that long.
    pub(crate) fn wait_for_doorbells(&self, most: Duration) {
        let state = self.state();
        if state.doorbells == 0 {
            let waited = self.busy.wait_timeout(state, most);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Wait objects to wake, as the numbers that event queues were added with.
    pub(crate) fn take_wakes(&self) -> Vec<u64> {
        let effects = self.state().engine.take_effects();
        let wakes = effects.into_iter().filter_map(|effect| match effect {
            Effect::Wake(wait) => Some(wait),
            _ => None,
        });
        wakes.collect()
    }

    fn add_doorbell(&self, state: &mut State) {
        state.doorbells += 1;
        self.busy.notify_all();
    }
}

impl State {
    fn turn(&mut self) -> bool {
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

/// A number of the driver as the engine has it; 0, which stands for none, if it is too large.
fn small(number: u32) -> u16 {
    u16::try_from(number).unwrap_or(0)
}
