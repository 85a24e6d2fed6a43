//! Translation: what an RGID may reach in memory, by address context.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cxi_hw::ReturnCode;

use crate::{ClientMemory, MemoryFault, Region};

/// The kind of access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
    Both,
}

/// Contiguous memory of a process.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) memory: Arc<dyn ClientMemory>,
    pub(crate) va: u64,
    pub(crate) len: u64,
    /// Whether the region still exists.
    live: Arc<AtomicBool>,
}

impl Segment {
    /// The memory, while the region exists: packets outlive it.
    pub(crate) fn memory(&self) -> Result<&dyn ClientMemory, MemoryFault> {
        if self.live.load(Ordering::Acquire) {
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

    /// The parts of what lies from `offset` on, with offsets in `len` bytes.
    fn parts(
        &self,
        mut offset: u64,
        len: usize,
    ) -> impl Iterator<Item = (&Segment, u64, std::ops::Range<usize>)> {
        let mut done = 0;
        self.first
            .iter()
            .chain(&self.rest)
            .filter_map(move |segment| {
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

    /// The only segment, unless there are several.
    pub(crate) fn single(&self) -> Option<&Segment> {
        self.first.as_ref().filter(|_| self.rest.is_empty())
    }
}

/// A region under its number.
#[derive(Debug)]
struct Known {
    number: u32,
    region: Region,
    live: Arc<AtomicBool>,
}

impl Drop for Known {
    fn drop(&mut self) {
        self.live.store(false, Ordering::Release);
    }
}

impl Known {
    fn end(&self) -> u64 {
        self.region.iova.saturating_add(self.region.len)
    }

    fn allows(&self, access: Access) -> bool {
        match access {
            Access::Read => self.region.readable,
            Access::Write => self.region.writable,
            Access::Both => self.region.readable && self.region.writable,
        }
    }
}

/// The regions of an address context, in order of their first addresses.
#[derive(Debug, Default)]
struct Context {
    regions: Vec<Known>,
    /// The highest end of each region and all before it.
    reach: Vec<u64>,
}

impl Context {
    fn update(&mut self) {
        self.regions.sort_by_key(|known| known.region.iova);
        let mut reach = 0;
        self.reach.clear();
        self.reach.extend(self.regions.iter().map(|known| {
            reach = u64::max(reach, known.end());
            reach
        }));
    }

    /// The region with an address that reaches furthest, of those with the permission if there is
    /// one.
    fn find(&self, iova: u64, access: Access) -> Result<&Known, ReturnCode> {
        let end = self.regions.partition_point(|it| it.region.iova <= iova);
        let mut error = ReturnCode::NO_TRANSLATION;
        let mut best: Option<&Known> = None;
        for (known, reach) in self.regions[..end].iter().zip(&self.reach[..end]).rev() {
            if *reach <= iova {
                break;
            }
            if known.end() <= iova {
                continue;
            }
            if !known.allows(access) {
                error = ReturnCode::PAGE_PERM_ERROR;
            } else if best.is_none_or(|best| best.end() < known.end()) {
                best = Some(known);
            }
        }
        best.ok_or(error)
    }
}

/// All regions.
#[derive(Debug, Default)]
pub(crate) struct Translation {
    contexts: BTreeMap<(u16, u8), Context>,
    /// The context of each region.
    regions: BTreeMap<u32, (u16, u8)>,
}

impl Translation {
    pub(crate) fn add(&mut self, number: u32, region: Region) {
        self.remove(number);
        let key = (region.rgid, region.lac);
        self.regions.insert(number, key);
        let context = self.contexts.entry(key).or_default();
        context.regions.push(Known {
            number,
            region,
            live: Arc::new(AtomicBool::new(true)),
        });
        context.update();
    }

    pub(crate) fn remove(&mut self, number: u32) {
        let Some(key) = self.regions.remove(&number) else {
            return;
        };
        let Some(context) = self.contexts.get_mut(&key) else {
            return;
        };
        context.regions.retain(|known| known.number != number);
        context.update();
        if context.regions.is_empty() {
            self.contexts.remove(&key);
        }
    }

    /// The memory behind addresses, which regions have to cover without a gap. No bytes need no
    /// region.
    pub(crate) fn translate(
        &self,
        (rgid, lac): (u16, u8),
        iova: u64,
        len: u64,
        access: Access,
    ) -> Result<Scatter, ReturnCode> {
        let mut scatter = Scatter::default();
        if len == 0 {
            return Ok(scatter);
        }
        let context = self.contexts.get(&(rgid, lac));
        let context = context.ok_or(ReturnCode::NO_TRANSLATION)?;
        let end = iova.checked_add(len).ok_or(ReturnCode::NO_TRANSLATION)?;
        let mut at = iova;
        while at < end {
            let known = context.find(at, access)?;
            let region = &known.region;
            let offset = at - region.iova;
            let part = (region.len - offset).min(end - at);
            scatter.push(Segment {
                memory: Arc::clone(&region.memory),
                va: region
                    .va
                    .checked_add(offset)
                    .ok_or(ReturnCode::NO_TRANSLATION)?,
                len: part,
                live: Arc::clone(&known.live),
            });
            at += part;
        }
        Ok(scatter)
    }
}
