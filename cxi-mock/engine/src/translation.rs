//! Translation: what an RGID may reach in memory, by address context.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cxi_hw::ReturnCode;

use crate::region_tree::{Key, Regions};
use crate::{ClientMemory, MemoryFault, Region};

pub(crate) use crate::region_tree::Access;

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

    /// Copies to other memory without the engine's own in between. Says whether it has.
    pub(crate) fn copy(&self, offset: u64, (to, there): (&Self, u64), len: usize) -> bool {
        let (Some(from), Some(to)) = (self.single(), to.single()) else {
            return false;
        };
        let (Ok(source), Ok(target)) = (from.memory(), to.memory()) else {
            return false;
        };
        source.copy(from.va + offset, (target, to.va + there), len)
    }

    /// The only segment, unless there are several.
    pub(crate) fn single(&self) -> Option<&Segment> {
        self.first.as_ref().filter(|_| self.rest.is_empty())
    }
}

/// All regions.
#[derive(Debug, Default)]
pub(crate) struct Translation {
    contexts: BTreeMap<(u16, u8), Regions>,
    /// The context of each region, and its key there.
    places: BTreeMap<u32, ((u16, u8), Key)>,
    arrivals: u64,
}

impl Translation {
    pub(crate) fn add(&mut self, number: u32, region: Region) {
        self.remove(number);
        self.arrivals += 1;
        let context = (region.rgid, region.lac);
        let key = (region.iova, self.arrivals);
        self.places.insert(number, (context, key));
        self.contexts.entry(context).or_default().add(key, region);
    }

    pub(crate) fn remove(&mut self, number: u32) {
        let Some((context, key)) = self.places.remove(&number) else {
            return;
        };
        let Entry::Occupied(mut regions) = self.contexts.entry(context) else {
            return;
        };
        regions.get_mut().remove(key);
        if regions.get().is_empty() {
            regions.remove();
        }
    }

    /// The memory behind addresses, which regions have to cover without a gap. No bytes need no
    /// region.
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
        let regions = self.contexts.get(&context);
        let regions = regions.ok_or(ReturnCode::NO_TRANSLATION)?;
        let end = iova.checked_add(len).ok_or(ReturnCode::NO_TRANSLATION)?;
        let mut at = iova;
        while at < end {
            let known = regions.find(at, access);
            let known = known.ok_or_else(|| match regions.find(at, Access::Any) {
                Some(_) => ReturnCode::PAGE_PERM_ERROR,
                None => ReturnCode::NO_TRANSLATION,
            })?;
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
