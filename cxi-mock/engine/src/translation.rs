//! Translation: which memory an RGID can reach, by address context.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cxi_hw::ReturnCode;

use crate::{ClientMemory, MemoryFault, Region};

/// A kind of access, with the permissions that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// None.
    Any,
    Read,
    Write,
    Both,
}

impl Access {
    fn is_allowed(self, region: &Region) -> bool {
        match self {
            Self::Any => true,
            Self::Read => region.readable,
            Self::Write => region.writable,
            Self::Both => region.readable && region.writable,
        }
    }
}

/// Contiguous memory of a process.
#[derive(Clone, Debug)]
struct Segment {
    memory: Arc<dyn ClientMemory>,
    va: u64,
    len: u64,
    /// `true` as long as the region exists.
    live: Arc<AtomicBool>,
    /// The same of other regions with this memory, as of other messages from the same page.
    others: Vec<Arc<AtomicBool>>,
}

impl Segment {
    /// The memory while a region with it exists. Packets outlive regions.
    fn memory(&self) -> Result<&dyn ClientMemory, MemoryFault> {
        let mut regions = std::iter::once(&self.live).chain(&self.others);
        if regions.any(|live| live.load(Ordering::Acquire)) {
            Ok(&*self.memory)
        } else {
            Err(MemoryFault)
        }
    }
}

/// Memory in segments; mostly one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scatter {
    first: Option<Segment>,
    rest: Vec<Segment>,
}

impl Scatter {
    fn push(&mut self, segment: Segment) {
        if self.first.is_none() {
            self.first = Some(segment);
        } else {
            self.rest.push(segment);
        }
    }

    /// The parts of the `len` bytes from `offset` on, with their offsets.
    fn parts(
        &self,
        mut offset: u64,
        len: usize,
    ) -> impl Iterator<Item = (&Segment, u64, std::ops::Range<usize>)> {
        let mut done = 0;
        self.first.iter().chain(&self.rest).filter_map(move |segment| {
            if offset >= segment.len {
                offset -= segment.len;
                return None;
            }
            let room = usize::try_from(segment.len - offset).unwrap_or(usize::MAX);
            let part = done..done + room.min(len - done);
            let va = segment.va + offset;
            offset = 0;
            done = part.end;
            (!part.is_empty()).then_some((segment, va, part))
        })
    }

    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), MemoryFault> {
        self.parts(offset, into.len())
            .try_for_each(|(segment, va, part)| segment.memory()?.read(va, &mut into[part]))
    }

    pub(crate) fn write(&self, offset: u64, from: &[u8]) -> Result<(), MemoryFault> {
        self.parts(offset, from.len())
            .try_for_each(|(segment, va, part)| segment.memory()?.write(&[(va, &from[part])]))
    }

    /// Changes a value, which must be within one segment.
    pub(crate) fn update(
        &self,
        len: usize,
        change: &mut dyn FnMut(&mut [u8]),
    ) -> Result<(), MemoryFault> {
        let segment = self.single().ok_or(MemoryFault)?;
        segment.memory()?.update(segment.va, len, change)
    }

    /// The only segment, unless there are several.
    fn single(&self) -> Option<&Segment> {
        self.first.as_ref().filter(|_| self.rest.is_empty())
    }

    /// Memory that no region has to cover.
    pub(crate) fn of(memory: &Arc<dyn ClientMemory>, va: u64, len: u64) -> Self {
        let segment = Segment {
            memory: Arc::clone(memory),
            va,
            len,
            live: Arc::new(AtomicBool::new(true)),
            others: Vec::new(),
        };
        Self { first: Some(segment), rest: Vec::new() }
    }

    /// Returns the memory of the bytes; `None` for no bytes.
    pub(crate) fn memory(&self) -> Option<&Arc<dyn ClientMemory>> {
        self.first.as_ref().map(|segment| &segment.memory)
    }
}

/// A region that exists. Packets under way notice when it is removed.
#[derive(Debug)]
struct Known {
    region: Region,
    live: Arc<AtomicBool>,
}

impl Known {
    /// The address after the last one.
    fn end(&self) -> u64 {
        self.region.iova.saturating_add(self.region.len)
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        self.live.store(false, Ordering::Release);
    }
}

/// First address, then order of arrival.
type Key = (u64, u64);

/// The regions of an address context, by the binary logarithm of their lengths.
///
/// A region that contains an address starts no further before it than the longest region is long.
/// In one map for all lengths, a single huge region would make each search walk through all others.
/// Within one map for each power of two, no region is more than twice as long as another.
#[derive(Debug, Default)]
struct Regions(Vec<(u32, BTreeMap<Key, Known>)>);

impl Regions {
    fn class(&mut self, len: u64) -> &mut BTreeMap<Key, Known> {
        let class = len.checked_ilog2().unwrap_or(0);
        let at = self.0.iter().position(|(other, _)| *other == class).unwrap_or_else(|| {
            self.0.push((class, BTreeMap::new()));
            self.0.len() - 1
        });
        &mut self.0[at].1
    }

    fn add(&mut self, key: Key, region: Region) {
        let live = Arc::new(AtomicBool::new(true));
        self.class(region.len).insert(key, Known { region, live });
    }

    fn remove(&mut self, len: u64, key: Key) -> Option<Arc<dyn ClientMemory>> {
        let known = self.class(len).remove(&key);
        self.0.retain(|(_, class)| !class.is_empty());
        known.map(|known| Arc::clone(&known.region.memory))
    }

    /// The regions with the permission that contain an address.
    fn containing(&self, at: u64, access: Access) -> impl Iterator<Item = &Known> {
        self.0.iter().flat_map(move |(class, regions)| {
            let longest = u64::MAX >> (63 - class);
            let nearest = at.saturating_sub(longest);
            let before = regions.range(..=(at, u64::MAX)).rev();
            let near = before.take_while(move |((start, _), _)| *start >= nearest);
            let known = near.map(|(_, known)| known);
            known.filter(move |known| known.end() > at && access.is_allowed(&known.region))
        })
    }

    /// Finds a region with the permission that contains all addresses from `at` to `end`, or else
    /// the one that reaches furthest from `at`.
    fn find(&self, at: u64, end: u64, access: Access) -> Option<&Known> {
        let mut furthest: Option<&Known> = None;
        for known in self.containing(at, access) {
            if known.end() >= end {
                return Some(known);
            }
            if furthest.is_none_or(|other| other.end() < known.end()) {
                furthest = Some(known);
            }
        }
        furthest
    }

    /// Returns whether the other regions exist that have the memory of a region from `at` to `end`.
    fn others(&self, known: &Known, at: u64, end: u64, access: Access) -> Vec<Arc<AtomicBool>> {
        let va = |region: &Region| region.va.wrapping_sub(region.iova);
        let is_other = |other: &&Known| {
            other.end() >= end
                && !Arc::ptr_eq(&other.live, &known.live)
                && Arc::ptr_eq(&other.region.memory, &known.region.memory)
                && va(&other.region) == va(&known.region)
        };
        self.containing(at, access).filter(is_other).map(|other| Arc::clone(&other.live)).collect()
    }
}

/// All regions.
#[derive(Debug, Default)]
pub(crate) struct Translation {
    contexts: BTreeMap<(u16, u8), Regions>,
    /// The context of each region, its length, and its key there.
    places: BTreeMap<u32, ((u16, u8), u64, Key)>,
    arrivals: u64,
}

impl Translation {
    pub(crate) fn add(&mut self, number: u32, region: Region) {
        self.remove(number);
        self.arrivals += 1;
        let context = (region.rgid, region.lac);
        let key = (region.iova, self.arrivals);
        self.places.insert(number, (context, region.len, key));
        self.contexts.entry(context).or_default().add(key, region);
    }

    /// Forgets a region. Gives back whose memory it was.
    pub(crate) fn remove(&mut self, number: u32) -> Option<Arc<dyn ClientMemory>> {
        let (context, len, key) = self.places.remove(&number)?;
        let regions = self.contexts.get_mut(&context)?;
        let removed = regions.remove(len, key);
        if regions.0.is_empty() {
            self.contexts.remove(&context);
        }
        removed
    }

    /// The memory behind a range of addresses, which regions must cover without a gap. An empty
    /// range needs no region.
    pub(crate) fn translate(
        &self,
        context: (u16, u8),
        iova: u64,
        len: u64,
        access: Access,
    ) -> Result<Scatter, ReturnCode> {
        let mut scatter = Scatter::default();
        if len == 0 {
            return Ok(scatter);
        }
        let regions = self.contexts.get(&context).ok_or(ReturnCode::NO_TRANSLATION)?;
        let end = iova.checked_add(len).ok_or(ReturnCode::NO_TRANSLATION)?;
        let mut at = iova;
        while at < end {
            // Rule 15.1: Each access is checked against the regions of the RGID and address
            // context, and their permissions.
            let known = regions.find(at, end, access);
            let known = known.ok_or_else(|| match regions.find(at, end, Access::Any) {
                Some(_) => ReturnCode::PAGE_PERM_ERROR,
                None => ReturnCode::NO_TRANSLATION,
            })?;
            let region = &known.region;
            // An access has its turn among those of one process.
            let other = scatter.memory().filter(|first| {
                let owned = first.owner().is_some() || region.memory.owner().is_some();
                owned && !Arc::ptr_eq(first, &region.memory)
            });
            if other.is_some() {
                return Err(ReturnCode::NO_TRANSLATION);
            }
            let offset = at - region.iova;
            let part = (region.len - offset).min(end - at);
            scatter.push(Segment {
                memory: Arc::clone(&region.memory),
                va: region.va.checked_add(offset).ok_or(ReturnCode::NO_TRANSLATION)?,
                len: part,
                live: Arc::clone(&known.live),
                others: regions.others(known, at, at + part, access),
            });
            at += part;
        }
        Ok(scatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Nowhere;

    impl ClientMemory for Nowhere {
        fn read(&self, _va: u64, _into: &mut [u8]) -> Result<(), MemoryFault> {
            Err(MemoryFault)
        }

        fn write(&self, _parts: &[(u64, &[u8])]) -> Result<(), MemoryFault> {
            Err(MemoryFault)
        }
    }

    /// Walks through all regions: returns whether one contains the whole range, and how far one
    /// reaches.
    fn walked(all: &[(u64, Region)], at: u64, end: u64, access: Access) -> Option<u64> {
        let has = |it: &Region| it.iova <= at && at - it.iova < it.len;
        let fitting = all.iter().map(|(_, it)| it);
        let fitting = fitting.filter(|it| has(it) && access.is_allowed(it));
        fitting.map(|it| (it.iova + it.len).min(end)).max()
    }

    #[test]
    fn a_search_finds_what_a_walk_finds() {
        let mut random = crate::SplitMix64::new(1);
        let mut next = |below: u64| random.draw() % below;
        let mut regions = Regions::default();
        let mut all: Vec<(u64, Region)> = Vec::new();
        let mut found = 0;
        for order in 0..4000 {
            // More are added than removed, and then the other way around.
            if next(8) < if order < 2000 { 5 } else { 3 } {
                let permissions = next(4);
                let region = Region {
                    rgid: 1,
                    lac: 0,
                    iova: next(64),
                    len: next(2) * next(16) + next(3),
                    va: order,
                    readable: permissions & 1 != 0,
                    writable: permissions & 2 != 0,
                    memory: Arc::new(Nowhere),
                };
                regions.add((region.iova, order), region.clone());
                all.push((order, region));
            } else if !all.is_empty() {
                let at = usize::try_from(next(all.len() as u64)).unwrap();
                let (order, region) = all.swap_remove(at);
                regions.remove(region.len, (region.iova, order));
            }
            for access in [Access::Any, Access::Read, Access::Write, Access::Both] {
                let at = next(80);
                let end = at + 1 + next(20);
                let known = regions.find(at, end, access);
                let reach = known.map(|it| {
                    assert!(it.region.iova <= at && access.is_allowed(&it.region));
                    it.end().min(end)
                });
                assert_eq!(reach, walked(&all, at, end, access), "{at} {end} {access:?}");
                found += usize::from(known.is_some());
            }
        }
        assert!(found > 4000, "{found}");
        for (order, region) in all {
            regions.remove(region.len, (region.iova, order));
        }
        assert!(regions.0.is_empty());
    }
}
