//! Accesses to the memory of processes, which the front end executes without a lock on the engine.
//!
//! Each process has a lane: its accesses are executed one at a time, in order. A page that does not
//! arrive therefore stops only what follows in the lane of its process.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Weak};

use crate::landing::Landing;
use crate::link::Operation;
use crate::packet::{Atomic, Reply, ReplyTo, Request};
use crate::transfer::Copy;
use crate::translation::Scatter;
use crate::{ClientMemory, Effect, MemoryFault, atomic};

/// Bytes that wait in a lane at most. Only a process that does not answer comes near this: each
/// queue that sends has one piece of one message under way.
const MOST_BYTES: usize = 64 << 20;
/// Bytes that each access counts in addition to its own.
const OVERHEAD: usize = 1 << 10;
/// Ticks after which an access that is still running has failed, as PCIe has a completion timeout.
/// A program that waits for a slow disk must not run into it.
const MOST_TICKS: u8 = 10;
/// Buffers that are kept for later accesses.
const SPARE: usize = 8;

/// Access to memory.
#[derive(Debug)]
pub(crate) enum Access {
    /// Copies so many bytes from an offset in memory. The buffer is made when the turn of the access
    /// comes, because those that wait may be many.
    Read(Scatter, u64, usize, Vec<u8>),
    Write(Scatter, u64, Vec<u8>),
    /// Leaves the previous value.
    Update(Scatter, Atomic, usize, [u8; 16]),
    /// Stores, of which only the order matters.
    Post(Arc<dyn ClientMemory>, Vec<Store>),
}

/// Memory that an object of an RGID stores to.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) memory: &'a Arc<dyn ClientMemory>,
    pub(crate) rgid: u16,
    /// Goes with the object: its memory is free then.
    pub(crate) alive: &'a Arc<()>,
}

/// Parts that are stored one after the other for an RGID, each at an address.
#[derive(Debug)]
pub(crate) struct Store {
    rgid: u16,
    alive: Weak<()>,
    parts: Vec<(u64, Vec<u8>)>,
}

impl Store {
    fn va(&self) -> u64 {
        self.parts.first().map_or(0, |(va, _)| *va)
    }

    /// Stores the parts. Returns whether they are all there, or need not be.
    fn run(&self, memory: &dyn ClientMemory) -> bool {
        if self.alive.strong_count() == 0 {
            return true;
        }
        // A part that cannot be stored ends it: the last part of an event makes it visible.
        let store = |(va, part): &(u64, Vec<u8>)| memory.write(&[(*va, part)]).is_ok();
        self.parts.iter().all(store)
    }
}

impl Access {
    /// The process whose memory it is; `None` for no bytes.
    fn memory(&self) -> Option<&Arc<dyn ClientMemory>> {
        match self {
            Self::Read(scatter, ..) | Self::Write(scatter, ..) | Self::Update(scatter, ..) => {
                scatter.memory()
            }
            Self::Post(memory, _) => Some(memory),
        }
    }

    /// Returns the bytes that it counts while it waits.
    fn held(&self) -> usize {
        OVERHEAD
            + match self {
                Self::Write(_, _, bytes) => bytes.len(),
                Self::Read(..) | Self::Update(..) | Self::Post(..) => 0,
            }
    }

    fn run(&mut self) -> Result<(), MemoryFault> {
        match self {
            Self::Read(from, offset, _, bytes) => from.read(*offset, bytes)?,
            Self::Write(to, offset, bytes) => to.write(*offset, bytes)?,
            Self::Update(at, atomic, len, fetched) => at.update(*len, &mut |value| {
                fetched[..value.len()].copy_from_slice(value);
                atomic::apply(atomic, value);
            })?,
            // What cannot be stored is left for a report.
            Self::Post(memory, stores) => stores.retain(|store| !store.run(&**memory)),
        }
        Ok(())
    }
}

/// Continuation of an access.
#[derive(Debug)]
pub(crate) enum Then {
    /// Commands of a queue, by number and generation, were read.
    Commands(u16, u64),
    /// The data of a request was read, to a NIC.
    Gathered(u32, Operation, Request),
    /// The data of a request was stored.
    Landed(Box<Landing>),
    /// A piece of a copy was read.
    Read(Copy),
    /// A piece of that many bytes was stored.
    Written(Copy, usize),
    /// The fetched value of an operation was stored.
    Fetched(Operation, Reply),
    /// The stores are done: run the wake-ups and replies queued behind them.
    Posted(Vec<After>),
}

/// Step that follows the stores before it.
#[derive(Debug)]
pub(crate) enum After {
    Wake(u64),
    Reply(ReplyTo, Reply),
}

/// An access with a place in a lane.
#[derive(Debug)]
struct Waiting {
    number: u64,
    access: Access,
    then: Then,
}

/// An access to the memory of a process, to be executed without a lock on the engine.
#[derive(Debug)]
pub struct Dma {
    lane: usize,
    number: u64,
    access: Access,
    result: Result<(), MemoryFault>,
}

impl Dma {
    /// Its number, which is not 0 and which no other has.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Executes the access, which may block.
    pub fn run(&mut self) {
        self.result = self.access.run();
    }
}

/// The end of an access.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) then: Then,
    /// `None` if it was given up.
    pub(crate) access: Option<Access>,
    pub(crate) result: Result<(), MemoryFault>,
}

/// An access that the front end executes.
#[derive(Debug)]
struct Running {
    number: u64,
    /// `None` if it was given up: nothing waits for it.
    then: Option<Then>,
    ticks: u8,
}

/// The accesses to the memory of one process.
#[derive(Debug)]
struct Lane {
    memory: Arc<dyn ClientMemory>,
    /// By number.
    waiting: VecDeque<Waiting>,
    /// Bytes that wait.
    held: usize,
    running: Option<Running>,
}

impl Lane {
    fn is_ready(&self) -> bool {
        self.running.is_none() && !self.waiting.is_empty()
    }

    /// The number of the oldest access that waits.
    fn next(&self) -> u64 {
        self.waiting.front().map_or(u64::MAX, |it| it.number)
    }

    /// Returns whether the process did not answer in time, and still does not.
    fn is_given_up(&self) -> bool {
        self.running.as_ref().is_some_and(|it| it.then.is_none())
    }

    /// Takes what waits for accesses, except for stores.
    ///
    /// Stores stay in the lane, as programs count on finding all events in a queue without a gap.
    /// Only what depends on them goes on.
    fn give_up(&mut self, done: &mut VecDeque<Done>) {
        let mut end = |then| {
            done.push_back(Done { then, access: None, result: Err(MemoryFault) });
        };
        if let Some(then) = self.running.as_mut().and_then(|it| it.then.take()) {
            end(then);
        }
        for mut waiting in std::mem::take(&mut self.waiting) {
            if let Then::Posted(after) = &mut waiting.then {
                end(Then::Posted(std::mem::take(after)));
                self.waiting.push_back(waiting);
            } else {
                self.held -= waiting.access.held();
                end(waiting.then);
            }
        }
    }
}

/// Accesses that had begun to memory of a process that was then taken from the NIC.
#[derive(Clone, Copy, Debug)]
pub struct Release {
    lane: usize,
    last: u64,
}

/// All accesses under way, and what the front end has to do.
#[derive(Debug, Default)]
pub(crate) struct Dmas {
    /// By the address of what stands for the memory, which each lane keeps.
    lanes: BTreeMap<usize, Lane>,
    done: VecDeque<Done>,
    numbers: u64,
    spare: Vec<Vec<u8>>,
    effects: Vec<Effect>,
    releases: Vec<Release>,
}

fn key(memory: &Arc<dyn ClientMemory>) -> usize {
    Arc::as_ptr(memory).addr()
}

impl Dmas {
    /// Takes a buffer back.
    pub(crate) fn give_back(&mut self, access: Access) {
        if let Access::Read(_, _, _, buffer) | Access::Write(_, _, buffer) = access
            && buffer.capacity() > 0
            && self.spare.len() < SPARE
        {
            self.spare.push(buffer);
        }
    }

    /// Makes the buffer of an access whose turn has come.
    fn prepare(&mut self, access: &mut Access) {
        if let Access::Read(_, _, len, bytes) = access
            && bytes.len() != *len
        {
            *bytes = self.spare.pop().unwrap_or_default();
            bytes.resize(*len, 0);
        }
    }

    /// Starts an access: at once if the memory answers at once.
    pub(crate) fn start(&mut self, mut access: Access, then: Then) {
        let memory = access.memory().filter(|memory| memory.owner().is_some());
        let result = if let Some(memory) = memory.cloned() {
            self.numbers += 1;
            let number = self.numbers;
            let lane = self.lane(&memory);
            if !lane.is_given_up() && lane.held + access.held() <= MOST_BYTES {
                lane.held += access.held();
                lane.waiting.push_back(Waiting { number, access, then });
                return;
            }
            Err(MemoryFault)
        } else {
            self.prepare(&mut access);
            access.run()
        };
        self.done.push_back(Done { then, access: Some(access), result });
    }

    fn lane(&mut self, memory: &Arc<dyn ClientMemory>) -> &mut Lane {
        self.lanes.entry(key(memory)).or_insert_with(|| Lane {
            memory: Arc::clone(memory),
            waiting: VecDeque::new(),
            held: 0,
            running: None,
        })
    }

    /// Returns whether an event may be stored to some memory. Otherwise it is lost, as in a full
    /// queue.
    pub(crate) fn has_room(&self, memory: &Arc<dyn ClientMemory>) -> bool {
        // Other stores may take twice as much, so that the status can still say so.
        let lane = self.lanes.get(&key(memory));
        lane.is_none_or(|lane| lane.held < MOST_BYTES)
    }

    /// Stores parts, each at an address, after all that was stored to the memory before.
    pub(crate) fn store(&mut self, target: Target<'_>, parts: &[(u64, &[u8])]) {
        let Target { memory, rgid, alive } = target;
        let va = parts.first().map_or(0, |(va, _)| *va);
        if memory.owner().is_none() {
            if memory.write(parts).is_err() {
                self.fault(rgid, va);
            }
            return;
        }
        self.numbers += 1;
        let number = self.numbers;
        let lane = self.lane(memory);
        if lane.held > 2 * MOST_BYTES {
            return self.fault(rgid, va);
        }
        lane.held += OVERHEAD;
        let store = Store {
            rgid,
            alive: Arc::downgrade(alive),
            parts: parts.iter().map(|(va, part)| (*va, part.to_vec())).collect(),
        };
        if let Some(Waiting { access: Access::Post(_, stores), .. }) = lane.waiting.back_mut() {
            // What waits for earlier ones may wait for these too.
            stores.push(store);
        } else {
            lane.held += OVERHEAD;
            lane.waiting.push_back(Waiting {
                number,
                access: Access::Post(Arc::clone(memory), vec![store]),
                then: Then::Posted(Vec::new()),
            });
        }
    }

    /// Does something after the stores to some memory; gives it back if there are none.
    pub(crate) fn after_stores(
        &mut self,
        memory: &Arc<dyn ClientMemory>,
        after: After,
    ) -> Option<After> {
        let lane = self.lanes.get_mut(&key(memory));
        // Others do not wait for a process that does not answer.
        let Some(lane) = lane.filter(|lane| !lane.is_given_up()) else { return Some(after) };
        let waiting = lane.waiting.iter_mut().rev().map(|it| &mut it.then);
        let running = lane.running.iter_mut().filter_map(|it| it.then.as_mut());
        let last = waiting.chain(running).find_map(|then| match then {
            Then::Posted(all) => Some(all),
            _ => None,
        });
        match last {
            Some(all) => {
                all.push(after);
                None
            }
            None => Some(after),
        }
    }

    /// Wakes a client after what was stored.
    pub(crate) fn wake(&mut self, memory: &Arc<dyn ClientMemory>, wait: u64) {
        if let Some(After::Wake(wait)) = self.after_stores(memory, After::Wake(wait)) {
            self.wake_now(wait);
        }
    }

    /// Wakes a client, once until the effects are taken.
    pub(crate) fn wake_now(&mut self, wait: u64) {
        let wake = Effect::Wake(wait);
        if !self.effects.contains(&wake) {
            self.effects.push(wake);
        }
    }

    /// Reports the first fault of an RGID.
    fn fault(&mut self, rgid: u16, va: u64) {
        let known =
            |effect: &Effect| matches!(effect, Effect::Fault { rgid: other, .. } if *other == rgid);
        if !self.effects.iter().any(known) {
            self.effects.push(Effect::Fault { rgid, va });
        }
    }

    pub(crate) fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    pub(crate) fn has_effects(&self) -> bool {
        !self.effects.is_empty()
    }

    /// Returns whether accesses have ended whose operations can go on.
    pub(crate) fn has_done(&self) -> bool {
        !self.done.is_empty()
    }

    pub(crate) fn next_done(&mut self) -> Option<Done> {
        self.done.pop_front()
    }

    /// Returns whether accesses have not ended.
    pub(crate) fn any(&self) -> bool {
        !self.lanes.is_empty()
    }

    /// Returns whether an access waits for the front end.
    pub(crate) fn any_waits(&self) -> bool {
        self.lanes.values().any(Lane::is_ready)
    }

    /// Takes the oldest access to a process that may be accessed now.
    pub(crate) fn take(&mut self, mut may: impl FnMut(&dyn ClientMemory) -> bool) -> Option<Dma> {
        let ready = self.lanes.iter_mut().filter(|(_, lane)| lane.is_ready());
        let mine = ready.filter(|(_, lane)| may(&*lane.memory));
        let (&key, lane) = mine.min_by_key(|(_, lane)| lane.next())?;
        let Waiting { number, mut access, then } = lane.waiting.pop_front()?;
        lane.held -= access.held();
        if let Access::Post(_, stores) = &access {
            lane.held -= stores.len() * OVERHEAD;
        }
        lane.running = Some(Running { number, then: Some(then), ticks: 0 });
        self.prepare(&mut access);
        Some(Dma { lane: key, number, access, result: Err(MemoryFault) })
    }

    /// Handles an access that has been executed.
    pub(crate) fn complete(&mut self, dma: Dma) {
        let Some(lane) = self.lanes.get_mut(&dma.lane) else { return };
        let Some(running) = lane.running.take_if(|it| it.number == dma.number) else { return };
        if lane.waiting.is_empty() {
            self.lanes.remove(&dma.lane);
        }
        if let Access::Post(_, failed) = &dma.access
            && let Some(store) = failed.first()
        {
            self.fault(store.rgid, store.va());
        }
        // Otherwise it was given up.
        let Some(then) = running.then else { return };
        self.done.push_back(Done { then, access: Some(dma.access), result: dma.result });
    }

    /// Notes that memory of a process is taken from the NIC.
    pub(crate) fn release(&mut self, memory: &Arc<dyn ClientMemory>) {
        let lane = key(memory);
        if self.lanes.contains_key(&lane) {
            let last = self.numbers;
            self.releases.push(Release { lane, last });
        }
    }

    pub(crate) fn take_releases(&mut self) -> Vec<Release> {
        std::mem::take(&mut self.releases)
    }

    /// Returns whether all accesses from before a release have ended or been given up.
    pub(crate) fn is_settled(&self, release: Release) -> bool {
        self.lanes.get(&release.lane).is_none_or(|lane| {
            let running = lane.running.as_ref().map_or(u64::MAX, |it| it.number);
            lane.is_given_up() || running.min(lane.next()) > release.last
        })
    }

    /// Ends accesses that have been running for too long, and those that wait for them. Call it
    /// every second.
    pub(crate) fn tick(&mut self) {
        for lane in self.lanes.values_mut() {
            if let Some(running) = &mut lane.running {
                running.ticks = running.ticks.saturating_add(1);
                if running.ticks > MOST_TICKS {
                    lane.give_up(&mut self.done);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Owned;

    impl ClientMemory for Owned {
        fn owner(&self) -> Option<u32> {
            Some(1)
        }

        fn read(&self, _: u64, _: &mut [u8]) -> Result<(), MemoryFault> {
            Ok(())
        }

        fn write(&self, _: &[(u64, &[u8])]) -> Result<(), MemoryFault> {
            Ok(())
        }
    }

    #[test]
    fn reads_that_wait_have_no_buffer() {
        let memory = Arc::new(Owned) as Arc<dyn ClientMemory>;
        let mut dmas = Dmas::default();
        let from = Scatter::of(&memory, 0, 100);
        let access = Access::Read(from, 0, 100, Vec::new());
        dmas.start(access, Then::Commands(1, 1));
        let capacity = |access: &Access| match access {
            Access::Read(_, _, _, buffer) => buffer.capacity(),
            _ => panic!("{access:?}"),
        };
        let waiting = &dmas.lanes.values().next().unwrap().waiting;
        assert_eq!(capacity(&waiting[0].access), 0);
        let dma = dmas.take(|_| true).unwrap();
        assert!(capacity(&dma.access) >= 100);
    }
}
