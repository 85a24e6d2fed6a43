//! Accesses to the memory of processes, which the front end executes without a lock on the engine.
//!
//! Each process has a lane: its accesses are executed one at a time, in order. A page that does not
//! come therefore stops only what follows in the lane of its process.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use crate::atomic;
use crate::landing::Landing;
use crate::link::Operation;
use crate::packet::{Atomic, Reply, ReplyTo, Request};
use crate::transfer::Copy;
use crate::translation::Scatter;
use crate::{ClientMemory, Effect, MemoryFault};

/// Stores that wait in a lane at most: what follows is lost. Only a process that does not answer
/// has so many, as those that it causes without waiting for an end are of its own making.
const MOST_STORES: usize = 1 << 16;
/// Buffers that are kept for later accesses.
const SPARE: usize = 8;

/// What an access does.
#[derive(Debug)]
pub(crate) enum Access {
    /// From an offset in memory into all of the bytes.
    Read(Scatter, u64, Vec<u8>),
    Write(Scatter, u64, Vec<u8>),
    /// Leaves what was there before.
    Update(Scatter, Atomic, usize, [u8; 16]),
    /// Stores that nothing but their order depends on: whose, where and what.
    Post(Arc<dyn ClientMemory>, Vec<(u16, u64, Vec<u8>)>),
}

impl Access {
    /// Whose memory it is for; `None` for no bytes. Of several processes' memory, which share an
    /// RGID then, the first one counts.
    fn memory(&self) -> Option<&Arc<dyn ClientMemory>> {
        match self {
            Self::Read(scatter, ..) | Self::Write(scatter, ..) | Self::Update(scatter, ..) => {
                scatter.memory()
            }
            Self::Post(memory, _) => Some(memory),
        }
    }

    fn run(&mut self) -> Result<(), MemoryFault> {
        match self {
            Self::Read(from, offset, bytes) => from.read(*offset, bytes),
            Self::Write(to, offset, bytes) => to.write(*offset, bytes),
            Self::Update(at, atomic, len, fetched) => at.update(*len, &mut |value| {
                fetched[..value.len()].copy_from_slice(value);
                atomic::apply(atomic, value);
            }),
            Self::Post(memory, stores) => {
                // What can be stored is stored, and what cannot be stays for a report.
                stores.retain(|(_, va, bytes)| memory.write(&[(*va, bytes)]).is_err());
                Ok(())
            }
        }
    }
}

/// What an access was for.
#[derive(Debug)]
pub(crate) enum Then {
    /// Commands of a queue, by number and generation, were read.
    Commands(u16, u64),
    /// The data of a request was read, to a NIC.
    Gathered(u32, Operation, Request),
    /// The data of a request was stored.
    Landed(Landing),
    /// A piece of a copy was read.
    Read(Copy),
    /// A piece of that many bytes was stored.
    Written(Copy, usize),
    /// The fetched value of an operation was stored.
    Fetched(Operation, Reply),
    /// What waited for stores can go on.
    Posted(Vec<After>),
}

/// What has to come after the stores before it.
#[derive(Debug)]
pub(crate) enum After {
    Wake(u64),
    Reply(ReplyTo, Reply),
}

/// An access to the memory of a process, to be executed without a lock on the engine.
#[derive(Debug)]
pub struct Dma {
    lane: usize,
    number: u64,
    access: Access,
    done: Result<(), MemoryFault>,
}

impl Dma {
    /// Its number, which is not 0 and which no other has.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Executes the access, which may block.
    pub fn run(&mut self) {
        self.done = self.access.run();
    }
}

/// The end of an access.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) then: Then,
    pub(crate) access: Access,
    pub(crate) result: Result<(), MemoryFault>,
}

/// The accesses to the memory of one process.
#[derive(Debug)]
struct Lane {
    memory: Arc<dyn ClientMemory>,
    /// By number.
    waiting: VecDeque<(u64, Access, Then)>,
    /// Stores among them.
    stores: usize,
    /// The number of the one that the front end executes, and what it is for.
    running: Option<(u64, Then)>,
}

impl Lane {
    fn is_ready(&self) -> bool {
        self.running.is_none() && !self.waiting.is_empty()
    }
}

/// Accesses that had begun to memory that was then taken from the NIC.
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
    /// The lane whose turn was last.
    last: usize,
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
    /// A buffer of so many bytes, whatever they are.
    pub(crate) fn buffer(&mut self, len: usize) -> Vec<u8> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.resize(len, 0);
        buffer
    }

    /// A buffer with bytes.
    pub(crate) fn filled(&mut self, parts: &[&[u8]]) -> Vec<u8> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        for part in parts {
            buffer.extend_from_slice(part);
        }
        buffer
    }

    /// Takes a buffer back.
    pub(crate) fn give_back(&mut self, access: Access) {
        if let Access::Read(_, _, buffer) | Access::Write(_, _, buffer) = access
            && buffer.capacity() > 0
            && self.spare.len() < SPARE
        {
            self.spare.push(buffer);
        }
    }

    /// Starts an access: at once if the memory answers at once.
    pub(crate) fn start(&mut self, mut access: Access, then: Then) {
        match access.memory() {
            Some(memory) if memory.owner().is_some() => {
                let memory = Arc::clone(memory);
                let number = self.number();
                self.lane(&memory).waiting.push_back((number, access, then));
            }
            _ => {
                let result = access.run();
                self.done.push_back(Done {
                    then,
                    access,
                    result,
                });
            }
        }
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn lane(&mut self, memory: &Arc<dyn ClientMemory>) -> &mut Lane {
        self.lanes.entry(key(memory)).or_insert_with(|| Lane {
            memory: Arc::clone(memory),
            waiting: VecDeque::new(),
            stores: 0,
            running: None,
        })
    }

    /// Stores parts into memory of an RGID, each at an address, after all that was stored there
    /// before.
    pub(crate) fn store(
        &mut self,
        memory: &Arc<dyn ClientMemory>,
        rgid: u16,
        parts: &[(u64, &[u8])],
    ) {
        let fault = (rgid, parts.first().map_or(0, |(va, _)| *va));
        if memory.owner().is_none() {
            if memory.write(parts).is_err() {
                self.fault(fault);
            }
            return;
        }
        let number = self.number();
        let lane = self.lane(memory);
        if lane.stores + parts.len() > MOST_STORES {
            return self.fault(fault);
        }
        lane.stores += parts.len();
        let parts = parts.iter().map(|(va, part)| (rgid, *va, part.to_vec()));
        if let Some((_, Access::Post(_, stores), _)) = lane.waiting.back_mut() {
            // What waits for earlier ones may wait for these too.
            stores.extend(parts);
        } else {
            let access = Access::Post(Arc::clone(memory), parts.collect());
            let then = Then::Posted(Vec::new());
            lane.waiting.push_back((number, access, then));
        }
    }

    /// Does something after the stores to some memory; gives it back if there are none.
    pub(crate) fn after_stores(
        &mut self,
        memory: &Arc<dyn ClientMemory>,
        after: After,
    ) -> Option<After> {
        let Some(lane) = self.lanes.get_mut(&key(memory)) else {
            return Some(after);
        };
        let waiting = lane.waiting.iter_mut().rev().map(|(.., then)| then);
        let running = lane.running.iter_mut().map(|(_, then)| then);
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
    fn fault(&mut self, (rgid, va): (u16, u64)) {
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

    /// Whether accesses have ended whose operations can go on.
    pub(crate) fn has_done(&self) -> bool {
        !self.done.is_empty()
    }

    pub(crate) fn next_done(&mut self) -> Option<Done> {
        self.done.pop_front()
    }

    /// Whether accesses have not ended.
    pub(crate) fn any(&self) -> bool {
        !self.lanes.is_empty()
    }

    /// Whether an access waits for the front end.
    pub(crate) fn any_waits(&self) -> bool {
        self.lanes.values().any(Lane::is_ready)
    }

    /// Takes the next access of a process that may be accessed now.
    pub(crate) fn take(&mut self, mut may: impl FnMut(&dyn ClientMemory) -> bool) -> Option<Dma> {
        let behind = (Bound::Excluded(self.last), Bound::Unbounded);
        let lanes = self
            .lanes
            .range(behind)
            .chain(self.lanes.range(..=self.last));
        let mut ready = lanes.filter(|(_, lane)| lane.is_ready());
        let (key, _) = ready.find(|(_, lane)| may(&*lane.memory))?;
        self.last = *key;
        let lane = self.lanes.get_mut(&self.last)?;
        let (number, access, then) = lane.waiting.pop_front()?;
        if let Access::Post(_, stores) = &access {
            lane.stores -= stores.len();
        }
        lane.running = Some((number, then));
        Some(Dma {
            lane: self.last,
            number,
            access,
            done: Err(MemoryFault),
        })
    }

    /// An access has been executed.
    pub(crate) fn complete(&mut self, dma: Dma) {
        let Dma {
            lane: key,
            number,
            access,
            done: result,
        } = dma;
        let Some(lane) = self.lanes.get_mut(&key) else {
            return;
        };
        // Otherwise it was given up.
        let Some((_, then)) = lane.running.take_if(|(running, _)| *running == number) else {
            return;
        };
        if lane.waiting.is_empty() {
            self.lanes.remove(&key);
        }
        if let Access::Post(_, failed) = &access
            && let Some((rgid, va, _)) = failed.first()
        {
            self.fault((*rgid, *va));
        }
        self.done.push_back(Done {
            then,
            access,
            result,
        });
    }

    /// Memory of a process is taken from the NIC.
    pub(crate) fn release(&mut self, memory: &Arc<dyn ClientMemory>) {
        let lane = key(memory);
        if let Some(there) = self.lanes.get(&lane) {
            let running = there.running.as_ref().map(|(number, _)| *number);
            let last = there.waiting.back().map(|(number, ..)| *number);
            let last = last.or(running).unwrap_or(0);
            self.releases.push(Release { lane, last });
        }
    }

    pub(crate) fn take_releases(&mut self) -> Vec<Release> {
        std::mem::take(&mut self.releases)
    }

    /// Whether all accesses from before a release have ended.
    pub(crate) fn is_settled(&self, release: &Release) -> bool {
        self.lanes.get(&release.lane).is_none_or(|lane| {
            let running = lane.running.as_ref().map(|(number, _)| *number);
            let first = running.or(lane.waiting.front().map(|(number, ..)| *number));
            first.is_none_or(|first| first > release.last)
        })
    }

    /// Ends the accesses of a process that does not answer, after a release.
    pub(crate) fn abandon(&mut self, release: &Release) {
        if self.is_settled(release) {
            return;
        }
        let Some(lane) = self.lanes.remove(&release.lane) else {
            return;
        };
        let running = lane.running.map(|(_, then)| then);
        let waiting = lane.waiting.into_iter().map(|(.., then)| then);
        for then in running.into_iter().chain(waiting) {
            self.done.push_back(Done {
                then,
                access: Access::Post(Arc::clone(&lane.memory), Vec::new()),
                result: Err(MemoryFault),
            });
        }
    }
}
