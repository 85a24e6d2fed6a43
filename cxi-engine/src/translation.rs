//! Translation: what an RGID may reach in memory, by address context.

use std::collections::BTreeMap;
use std::sync::Arc;

use cxi_hw::ReturnCode;

use crate::{ClientMemory, MemoryFault, Region};

/// What the NIC is about to do.
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
            .try_for_each(|(segment, va, part)| segment.memory.read(va, &mut into[part]))
    }

    pub(crate) fn write(&self, offset: u64, from: &[u8]) -> Result<(), MemoryFault> {
        self.parts(offset, from.len())
            .try_for_each(|(segment, va, part)| segment.memory.write(&[(va, &from[part])]))
    }

    /// The only segment, unless there are several.
    pub(crate) fn single(&self) -> Option<&Segment> {
        self.first.as_ref().filter(|_| self.rest.is_empty())
    }
}

/// The regions of an address context, by first address.
#[derive(Debug, Default)]
struct Context {
    regions: Vec<(u32, Region)>,
    /// The highest end of each region and all before it.
    reach: Vec<u64>,
}

impl Context {
    fn update(&mut self) {
        self.regions.sort_by_key(|(_, region)| region.iova);
        let mut reach = 0;
        self.reach.clear();
        self.reach.extend(self.regions.iter().map(|(_, region)| {
            reach = u64::max(reach, region.iova.saturating_add(region.len));
            reach
        }));
    }

    /// The region with an address that reaches furthest, of those with the permission if there is
    /// one.
    fn find(&self, iova: u64, access: Access) -> Result<&Region, ReturnCode> {
        let end = self.regions.partition_point(|(_, it)| it.iova <= iova);
        let mut error = ReturnCode::NO_TRANSLATION;
        let mut best: Option<&Region> = None;
        let candidates = self.regions[..end].iter().zip(&self.reach[..end]);
        for ((_, region), reach) in candidates.rev() {
            if *reach <= iova {
                break;
            }
            let last = region.iova.saturating_add(region.len);
            if last <= iova {
                continue;
            }
            let allowed = match access {
                Access::Read => region.readable,
                Access::Write => region.writable,
                Access::Both => region.readable && region.writable,
            };
            if !allowed {
                error = ReturnCode::PAGE_PERM_ERROR;
            } else if best.is_none_or(|best| best.iova.saturating_add(best.len) < last) {
                best = Some(region);
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
        context.regions.push((number, region));
        context.update();
    }

    pub(crate) fn remove(&mut self, number: u32) {
        let Some(key) = self.regions.remove(&number) else {
            return;
        };
        let Some(context) = self.contexts.get_mut(&key) else {
            return;
        };
        context.regions.retain(|(other, _)| *other != number);
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
            let region = context.find(at, access)?;
            let offset = at - region.iova;
            let part = (region.len - offset).min(end - at);
            scatter.push(Segment {
                memory: Arc::clone(&region.memory),
                va: region
                    .va
                    .checked_add(offset)
                    .ok_or(ReturnCode::NO_TRANSLATION)?,
                len: part,
            });
            at += part;
        }
        Ok(scatter)
    }
}
