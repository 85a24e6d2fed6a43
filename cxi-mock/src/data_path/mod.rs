//! The data path of a NIC: an engine, and what the control plane tells it.

mod gate;
mod memory;
mod pages;
mod portals;
mod queues;
mod window;
mod window_memory;
mod wire;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cxi_engine::{ClientMemory, CounterDoorbell, Dma, Effect, Engine, Release, Settings};

pub(crate) use memory::OwnMemory;
pub(crate) use pages::{Commands, EventPage, NOT_RUNG, QueuePages};
pub(crate) use portals::ELEMENTS;
pub(crate) use window::{Doorbell, Purpose, Windows, page_bytes};
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

/// Number of pieces of work that are done with the engine locked. A command of the control plane
/// waits no longer than that.
const TURN: usize = 64;
/// The same after a trapped store, enough for the longest messages. Their program is stopped and
/// needs no processor, whereas the thread that the rest would be left to may have to wait for one.
const LONG_TURN: usize = 32 * TURN;
/// Longest wait for memory that is taken from the NIC: many times the time of an access.
const PATIENCE: Duration = Duration::from_secs(1);
/// The same for the commands of queues that are freed, as closing files wait for one another.
const FINISH: Duration = Duration::from_millis(100);

/// The data path of a NIC. Its lock is below the control plane's, and no thread holds two.
#[derive(Debug)]
pub(crate) struct DataPath {
    state: Mutex<State>,
    /// Notified when there may be work.
    busy: Condvar,
    /// Accesses to memory of processes have ended.
    accessed: Condvar,
    /// The access that [`step`](Self::step) executes, or 0.
    under_way: AtomicU64,
}

/// Processes whose memory the calling thread may touch; the rest is left to the NIC's thread.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reach {
    Nobody,
    /// Processes of a user, who may stop them in any case.
    User(u32),
    Everybody,
}

impl Reach {
    fn has(self, memory: &dyn ClientMemory) -> bool {
        match self {
            Self::Nobody => false,
            Self::User(user) => memory.owner() == Some(user),
            Self::Everybody => true,
        }
    }
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) engine: Engine,
    wire: Arc<Wire>,
    plugged: bool,
    link_up: bool,
    /// Doorbells that have to be polled, and the number of mappings for which that is so.
    polled: BTreeMap<Doorbell, u32>,
    /// Number of times that polling has found stores.
    rung: u64,
    /// Doorbells of target queues that are or may be open, by file.
    gates: BTreeMap<u32, Gate>,
    /// `true` if a thread waits for work.
    asleep: bool,
    /// Threads that wait for accesses to end.
    settling: u32,
}

impl DataPath {
    /// A NIC on its own wire.
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
            polled: BTreeMap::new(),
            rung: 0,
            gates: BTreeMap::new(),
            asleep: false,
            settling: 0,
        };
        let path = Arc::new(Self {
            state: Mutex::new(state),
            busy: Condvar::new(),
            accessed: Condvar::new(),
            under_way: AtomicU64::new(0),
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

    /// Returns whether operations wait for an answer that may have been lost.
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
        state.poll();
        self.run_step(state, Reach::Everybody)
    }

    /// The same after a doorbell that was trapped, whose wake-ups the caller takes. What else is
    /// left is for the thread that waits for work, as is access to memory out of reach.
    pub(crate) fn run(&self, reach: Reach) {
        self.run_step(self.state(), reach);
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

    fn run_step<'a>(&'a self, state: MutexGuard<'a, State>, reach: Reach) -> bool {
        let (state, mut worked) = self.run_locked(state, reach);
        let wire = Arc::clone(&state.wire);
        let waits = state.engine.awaits_answers() || wire.fabric().needs_time();
        drop(state);
        if waits {
            wire.expect_answers();
        }
        // Threads that watch over a NIC's accesses look at those of this NIC alone.
        worked |= wire.run(match reach {
            Reach::Everybody => Reach::Nobody,
            reach => reach,
        });
        worked
    }

    /// Does some of the pending work.
    fn run_batch(&self, reach: Reach) -> bool {
        self.run_locked(self.state(), reach).1
    }

    fn run_locked<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        reach: Reach,
    ) -> (MutexGuard<'a, State>, bool) {
        let most = match reach {
            Reach::User(_) => LONG_TURN,
            _ => TURN,
        };
        let mut steps = 0;
        while steps < most {
            // Before steps, so that what has begun ends first.
            if let Some(dma) = state.engine.take_dma(|memory| reach.has(memory)) {
                // The access may take any time, in which nothing else may wait for this thread.
                if state.asleep && state.has_work() {
                    self.wake(&mut state);
                }
                drop(state);
                state = self.access(dma, reach);
            } else if !state.engine.step() {
                break;
            }
            steps += 1;
        }
        (state, steps > 0)
    }

    /// Executes an access, without the lock as it may block.
    fn access(&self, mut dma: Dma, reach: Reach) -> MutexGuard<'_, State> {
        let number = dma.number();
        let is_watched = matches!(reach, Reach::Everybody);
        if is_watched {
            self.under_way.store(number, Ordering::Relaxed);
        }
        dma.run();
        if is_watched {
            // Otherwise another thread has taken this one's place.
            let relaxed = Ordering::Relaxed;
            let _ = self.under_way.compare_exchange(number, 0, relaxed, relaxed);
        }
        let mut state = self.state();
        state.engine.complete_dma(dma);
        if state.settling > 0 {
            self.accessed.notify_all();
        }
        state
    }

    /// The number of the access to a process's memory that [`step`](Self::step) executes.
    pub(crate) fn access_under_way(&self) -> Option<u64> {
        Some(self.under_way.load(Ordering::Relaxed)).filter(|number| *number != 0)
    }

    /// Takes the place of the thread that executes an access, unless the access has ended. Only one
    /// thread can do so for an access.
    pub(crate) fn take_over(&self, access: u64) -> bool {
        let relaxed = Ordering::Relaxed;
        self.under_way.compare_exchange(access, 0, relaxed, relaxed).is_ok()
    }

    /// Waits while the thread that waits for work has none.
    pub(crate) fn wait_while_asleep(&self) {
        let state = self.lock();
        let waited = self.busy.wait_while(state, |state| state.asleep);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Waits until memory that was taken from the NIC is accessed no longer, if its process answers
    /// in time. What has not begun by then will not access it.
    pub(crate) fn settle(&self, releases: &[Release]) {
        let end = Instant::now() + PATIENCE;
        for release in releases {
            drop(self.wait_until(end, |engine| engine.is_settled(*release)));
        }
    }

    /// Executes what was rung on queues, as far as memory answers in time.
    pub(crate) fn finish_queues(&self, ids: &[u32]) {
        let end = Instant::now() + FINISH;
        for number in ids.iter().filter_map(|id| u16::try_from(*id).ok()) {
            drop(
                self.wait_until(end, |engine| {
                    engine.finish_queue(number) || !engine.has_accesses()
                }),
            );
        }
    }

    /// Gives up accesses that have been running for too long.
    pub(crate) fn expire_accesses(&self) {
        let mut state = self.lock();
        state.engine.expire_accesses();
        if state.has_steps() {
            self.wake(&mut state);
        }
    }

    /// Waits for accesses to end until something is the case, but not beyond a time.
    fn wait_until(
        &self,
        end: Instant,
        mut ready: impl FnMut(&mut Engine) -> bool,
    ) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        while !ready(&mut state.engine)
            && let Some(left) = end.checked_duration_since(Instant::now())
        {
            // It executes them.
            self.wake(&mut state);
            state.settling += 1;
            let waited = self.accessed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            state.settling -= 1;
        }
        state
    }

    /// The address of the NIC.
    fn nid(&self) -> u32 {
        self.state().engine.settings().nid
    }

    /// Returns whether there are doorbells that only [`step`](Self::step) sees.
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
            let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
            // Also after a timeout: another thread watches over this one while it is awake.
            self.wake(&mut state);
        }
        waits
    }

    /// Wait objects to wake, as the numbers that event queues were added with.
    pub(crate) fn take_wakes(&self) -> Vec<u64> {
        let wakes =
            self.lock().engine.take_effects().into_iter().filter_map(|effect| match effect {
                Effect::Wake(wait) => Some(wait),
                _ => None,
            });
        wakes.collect()
    }

    fn add_polled(&self, state: &mut State, doorbell: Doorbell) {
        *state.polled.entry(doorbell).or_default() += 1;
        self.wake(state);
    }

    /// Polls a doorbell because of one more mapping, until [`unpoll`](Self::unpoll).
    pub(crate) fn poll(&self, doorbell: Doorbell) {
        self.add_polled(&mut self.lock(), doorbell);
    }

    /// Takes [`poll`](Self::poll) back for some doorbells, after a last look.
    pub(crate) fn unpoll(&self, doorbells: &[Doorbell]) {
        let mut state = self.lock();
        state.poll();
        for doorbell in doorbells {
            if let Some(mappings) = state.polled.get_mut(doorbell) {
                *mappings -= 1;
                if *mappings == 0 {
                    state.polled.remove(doorbell);
                }
            }
        }
        if state.asleep && state.has_work() {
            self.wake(&mut state);
        }
    }

    /// Number of times that polling has found stores.
    pub(crate) fn times_rung(&self) -> u64 {
        self.lock().rung
    }

    /// Waits until a doorbell is polled that was not, or there is other news, but no longer than `most`.
    pub(crate) fn pause(&self, most: Duration) {
        let mut state = self.lock();
        state.asleep = true;
        let waited = self.busy.wait_timeout(state, most);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        self.wake(&mut state);
    }
}

impl State {
    /// Takes what was stored to doorbells that are polled.
    fn poll(&mut self) {
        if self.engine.poll() {
            self.rung += 1;
        }
    }

    /// Returns whether there is work without a notification.
    fn has_work(&self) -> bool {
        self.engine.has_effects() || self.has_steps()
    }

    /// Returns whether there is work, apart from wake-ups.
    fn has_steps(&self) -> bool {
        !self.polled.is_empty()
            || self.has_open()
            || self.engine.has_work()
            || self.engine.has_dma()
            || self.engine.awaits_registers()
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{RecvTimeoutError, channel};
    use std::thread;

    use cxi_engine::{CommandPages, CommandQueue, Counter, MemoryFault, UpdatePolicy, WriteBack};
    use cxi_ioctl::Opcode;

    use super::*;
    use crate::nic::command;
    use crate::{CallerMemory, Credentials, MockNode};

    const LONG: Duration = Duration::from_secs(20);

    /// Memory of a user's process whose pages arrive when it is let go.
    #[derive(Debug, Default)]
    struct Absent {
        owner: u32,
        /// Stores that wait, and whether they may end.
        waiting: Mutex<(u32, bool)>,
        changed: Condvar,
    }

    impl Absent {
        fn new(owner: u32) -> Arc<Self> {
            Arc::new(Self { owner, ..Self::default() })
        }

        fn let_go(&self) {
            self.waiting.lock().unwrap().1 = true;
            self.changed.notify_all();
        }

        fn wait_for_store(&self) {
            let waiting = self.waiting.lock().unwrap();
            drop(self.changed.wait_while(waiting, |it| it.0 == 0).unwrap());
        }
    }

    impl ClientMemory for Absent {
        fn owner(&self) -> Option<u32> {
            Some(self.owner)
        }

        fn read(&self, _: u64, _: &mut [u8]) -> Result<(), MemoryFault> {
            Err(MemoryFault)
        }

        fn write(&self, _: &[(u64, &[u8])]) -> Result<(), MemoryFault> {
            let mut waiting = self.waiting.lock().unwrap();
            waiting.0 += 1;
            self.changed.notify_all();
            drop(self.changed.wait_while(waiting, |it| !it.1).unwrap());
            Ok(())
        }
    }

    /// A NIC with a counter for each memory, which is written back there when it is rung.
    fn nic(memories: &[&Arc<Absent>]) -> Arc<crate::Nic> {
        let node = MockNode::with_nics(1, &NicConfig::new()).unwrap();
        let nic = Arc::clone(&node.nics()[0]);
        for (number, memory) in (1..).zip(memories) {
            let memory = Arc::clone(*memory) as Arc<dyn ClientMemory>;
            let counter =
                Counter { rgid: 1, write_back: Some(WriteBack { memory, va: 8 }), page: None };
            nic.data_path().lock().engine.add_counter(number, counter);
        }
        nic
    }

    /// Rings a counter, without telling the thread that waits for work.
    fn ring(path: &DataPath, counter: u16) {
        let engine = &mut path.lock().engine;
        engine.ring_counter(counter, CounterDoorbell::ResetSuccess, 0);
    }

    /// Runs something in a thread. It has to end in time once it should.
    fn in_thread(run: impl FnOnce() + Send + 'static) -> impl Fn(Duration) -> bool {
        let (sender, ended) = channel::<()>();
        thread::spawn(move || {
            run();
            drop(sender);
        });
        move |most| ended.recv_timeout(most) == Err(RecvTimeoutError::Disconnected)
    }

    #[test]
    fn a_thread_that_waits_for_a_process_is_replaced_once() {
        let memories = [Absent::new(1), Absent::new(2)];
        let nic = nic(&memories.each_ref());
        ring(nic.data_path(), 1);
        let running = Arc::clone(&nic);
        let ended = in_thread(move || {
            running.data_path().step();
        });
        memories[0].wait_for_store();
        let access = nic.data_path().access_under_way().unwrap();
        assert!(!nic.data_path().take_over(access + 1));
        assert!(nic.data_path().take_over(access));
        assert!(!nic.data_path().take_over(access) && nic.data_path().access_under_way().is_none());
        // Another thread goes on with other processes.
        memories[1].let_go();
        ring(nic.data_path(), 2);
        nic.run_until_idle();
        assert_eq!(memories[1].waiting.lock().unwrap().0, 1);
        memories[0].let_go();
        assert!(ended(LONG));
    }

    /// The thread that watches over another one learns that it is awake, also if nothing woke it.
    #[test]
    fn a_thread_is_watched_after_a_pause() {
        let nic = nic(&[]);
        let waiting = Arc::clone(&nic);
        let waited = in_thread(move || {
            waiting.data_path().wait_for_work(Duration::from_millis(200));
        });
        while !nic.data_path().lock().asleep {
            thread::yield_now();
        }
        let watched = in_thread(move || nic.data_path().wait_while_asleep());
        assert!(waited(LONG) && watched(LONG));
    }

    /// A thread that waits for a process of its user leaves other work to the NIC's thread.
    #[test]
    fn work_does_not_wait_for_a_tracer() {
        let memories = [Absent::new(1), Absent::new(2)];
        let nic = nic(&memories.each_ref());
        let waiting = Arc::clone(&nic);
        let woken = in_thread(move || {
            waiting.data_path().wait_for_work(LONG * 2);
        });
        while !nic.data_path().lock().asleep {
            thread::yield_now();
        }
        ring(nic.data_path(), 1);
        ring(nic.data_path(), 2);
        let tracer = Arc::clone(&nic);
        let ended = in_thread(move || tracer.data_path().run(Reach::User(1)));
        assert!(woken(LONG));
        assert!(!ended(Duration::ZERO));
        memories[1].let_go();
        let other = in_thread(move || {
            nic.run_until_idle();
        });
        assert!(other(LONG));
        memories[0].let_go();
        assert!(ended(LONG));
    }

    /// A ring of no-ops.
    #[derive(Debug)]
    struct Noops;

    impl CommandPages for Noops {
        fn read(&self, _: usize, into: &mut [u8]) -> Result<(), MemoryFault> {
            into.fill(0);
            Ok(())
        }

        fn write_status(&self, _: u64) {}
    }

    /// A program is stopped until all that it has rung is done, as with a long message: another
    /// thread might not get a processor before the program has used up its own.
    #[test]
    fn a_trapped_store_leaves_no_work() {
        let nic = nic(&[]);
        let path = nic.data_path();
        let queue = CommandQueue {
            transmit: None,
            rgid: 1,
            eq: 0,
            count: 1024,
            policy: UpdatePolicy::Always,
            pages: Box::new(Noops),
        };
        path.add_queue(1024, queue, false);
        let pieces = 8 * TURN as u64;
        path.lock().engine.ring_queue(1024, 4 + pieces / 2);
        path.run(Reach::User(1));
        assert!(!path.lock().engine.has_work());
    }

    /// The memory of a caller that takes no answers.
    struct Nowhere;

    impl CallerMemory for Nowhere {
        fn respond(&mut self, _: &[u8]) -> Result<(), cxi_ioctl::Errno> {
            Err(cxi_ioctl::Errno::EFAULT)
        }

        fn read_response(&mut self, _: &mut [u8]) -> Result<(), cxi_ioctl::Errno> {
            Err(cxi_ioctl::Errno::EFAULT)
        }

        fn write_list(&mut self, _: &[u8]) -> Result<(), cxi_ioctl::Errno> {
            Err(cxi_ioctl::Errno::EFAULT)
        }
    }

    /// A command waits for the memory that it takes, and not for what others have left.
    #[test]
    fn commands_wait_for_their_own_memory() {
        let memories = [Absent::new(1)];
        let nic = nic(&memories.each_ref());
        ring(nic.data_path(), 1);
        let running = Arc::clone(&nic);
        let ended = in_thread(move || {
            running.data_path().step();
        });
        memories[0].wait_for_store();
        nic.data_path().lock().engine.set_write_back(1, None);
        let mut bytes = [0; 32];
        bytes[..4].copy_from_slice(&Opcode::CT_ALLOC.number().to_ne_bytes());
        let before = Instant::now();
        let root = Credentials::root();
        command::write(&nic, 0, &root, &bytes, &mut Nowhere).unwrap_err();
        assert!(before.elapsed() < PATIENCE / 2);
        memories[0].let_go();
        assert!(ended(LONG));
    }
}
