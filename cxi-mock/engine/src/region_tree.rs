//! The regions of an address context: a search tree by first address, a treap, in which each subtree
//! knows how far it reaches.

use std::collections::hash_map::DefaultHasher;
use std::hash::{BuildHasher, BuildHasherDefault};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::Region;

/// The kind of access: the permissions that it takes, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// None.
    Any,
    Read,
    Write,
    Both,
}

/// How far something reaches for each kind of access: behind its last address, or 0.
type Reach = [u64; 4];

/// First address, and the order of arrival.
pub(crate) type Key = (u64, u64);

/// A region that exists.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) region: Region,
    pub(crate) live: Arc<AtomicBool>,
    reach: Reach,
}

impl Drop for Known {
    fn drop(&mut self) {
        self.live.store(false, Ordering::Release);
    }
}

impl Known {
    fn new(region: Region) -> Self {
        let permissions = u8::from(region.readable) | u8::from(region.writable) << 1;
        let end = region.iova.saturating_add(region.len);
        let reach = |access| {
            if permissions & access == access {
                end
            } else {
                0
            }
        };
        Self {
            reach: [0, 1, 2, 3].map(reach),
            region,
            live: Arc::new(AtomicBool::new(true)),
        }
    }
}

type Link = Option<Box<Node>>;

#[derive(Debug)]
struct Node {
    key: Key,
    known: Known,
    /// Random, and no less than those below: so no path is long.
    priority: u64,
    /// The furthest of this one and all below.
    reach: Reach,
    /// What comes before it, and behind it.
    below: [Link; 2],
}

impl Node {
    fn update(&mut self) {
        self.reach = self.known.reach;
        for below in self.below.iter().flatten() {
            self.reach = further(self.reach, below.reach);
        }
    }

    /// The side of a key.
    fn side(&self, key: Key) -> usize {
        usize::from(self.key < key)
    }
}

fn further(one: Reach, other: Reach) -> Reach {
    std::array::from_fn(|access| one[access].max(other[access]))
}

fn reach(link: &Link, access: Access) -> u64 {
    link.as_ref().map_or(0, |node| node.reach[access as usize])
}

fn insert(link: &mut Link, mut new: Box<Node>) {
    match link {
        Some(node) if node.priority >= new.priority => {
            node.reach = further(node.reach, new.reach);
            insert(&mut node.below[node.side(new.key)], new);
        }
        _ => {
            new.below = split(link.take(), new.key);
            new.update();
            *link = Some(new);
        }
    }
}

fn remove(link: &mut Link, key: Key) {
    let Some(node) = link else {
        return;
    };
    if node.key == key {
        let [before, behind] = std::mem::take(&mut node.below);
        *link = join(before, behind);
    } else {
        remove(&mut node.below[node.side(key)], key);
        node.update();
    }
}

/// What comes before a key, and what comes behind it.
fn split(link: Link, key: Key) -> [Link; 2] {
    let Some(mut node) = link else {
        return [None, None];
    };
    let side = node.side(key);
    let mut parts = split(node.below[side].take(), key);
    node.below[side] = parts[1 - side].take();
    node.update();
    parts[1 - side] = Some(node);
    parts
}

/// One tree of two, of which the second one comes behind the first one.
fn join(before: Link, behind: Link) -> Link {
    let (mut before, mut behind) = match (before, behind) {
        (Some(before), Some(behind)) => (before, behind),
        (one, other) => return one.or(other),
    };
    let mut top;
    if before.priority >= behind.priority {
        before.below[1] = join(before.below[1].take(), Some(behind));
        top = before;
    } else {
        behind.below[0] = join(Some(before), behind.below[0].take());
        top = behind;
    }
    top.update();
    Some(top)
}

/// The regions of an address context.
#[derive(Debug, Default)]
pub(crate) struct Regions(Link);

impl Regions {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Adds a region under a key that is free, of its first address.
    pub(crate) fn add(&mut self, key: Key, region: Region) {
        let known = Known::new(region);
        let node = Node {
            key,
            priority: BuildHasherDefault::<DefaultHasher>::default().hash_one(key),
            reach: known.reach,
            known,
            below: [None, None],
        };
        insert(&mut self.0, Box::new(node));
    }

    pub(crate) fn remove(&mut self, key: Key) {
        remove(&mut self.0, key);
    }

    /// The region with an address that reaches furthest, of those with the permission; of several,
    /// the last one.
    pub(crate) fn find(&self, iova: u64, access: Access) -> Option<&Known> {
        // Of the regions that start up to there, the one that reaches furthest has the address if
        // any has it.
        let mut furthest = iova.saturating_add(1);
        let mut top = None;
        let mut at = &self.0;
        while let Some(node) = at {
            let starts = node.key.0 <= iova;
            let own = node.known.reach[access as usize];
            let far = own.max(reach(&node.below[0], access));
            if starts && far >= furthest {
                (furthest, top) = (far, Some(node));
            }
            at = &node.below[usize::from(starts)];
        }
        // It is that one or before it.
        let mut node = top?;
        let mut behind = false;
        loop {
            node = if behind && reach(&node.below[1], access) == furthest {
                node.below[1].as_ref()?
            } else if node.known.reach[access as usize] == furthest {
                return Some(&node.known);
            } else {
                node.below[0].as_ref()?
            };
            behind = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ClientMemory, MemoryFault};

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

    fn region(iova: u64, len: u64, permissions: u64) -> Region {
        Region {
            rgid: 1,
            lac: 0,
            iova,
            len,
            va: iova,
            readable: permissions & 1 != 0,
            writable: permissions & 2 != 0,
            memory: Arc::new(Nowhere),
        }
    }

    fn depth(link: &Link) -> usize {
        link.as_ref().map_or(0, |node| {
            1 + node.below.iter().map(depth).max().unwrap_or(0)
        })
    }

    /// What a walk through all regions finds: the number of the last one that reaches furthest.
    fn walked(all: &[(u64, Region)], iova: u64, access: Access) -> Option<u64> {
        let fits = |region: &Region| match access {
            Access::Any => true,
            Access::Read => region.readable,
            Access::Write => region.writable,
            Access::Both => region.readable && region.writable,
        };
        let has = |region: &Region| region.iova <= iova && iova - region.iova < region.len;
        let fitting = all.iter().filter(|(_, it)| has(it) && fits(it));
        let last = fitting.max_by_key(|(order, it)| (it.iova + it.len, it.iova, *order));
        last.map(|(order, _)| *order)
    }

    #[test]
    fn a_tree_finds_what_a_walk_finds() {
        let mut random = 1_u64;
        let mut next = |below: u64| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) % below
        };
        let mut regions = Regions::default();
        let mut all = Vec::new();
        let mut found = 0;
        for order in 0..4000 {
            // More are added than removed, and then the other way around.
            if next(8) < if order < 2000 { 5 } else { 3 } {
                let region = region(next(64), next(16), next(4));
                // The walk knows a region by its `va`.
                let region = Region {
                    va: order,
                    ..region
                };
                regions.add((region.iova, order), region.clone());
                all.push((order, region));
            } else if !all.is_empty() {
                let at = usize::try_from(next(all.len() as u64)).unwrap();
                let (order, region) = all.swap_remove(at);
                regions.remove((region.iova, order));
            }
            for access in [Access::Any, Access::Read, Access::Write, Access::Both] {
                let iova = next(80);
                let known = regions.find(iova, access);
                let expected = walked(&all, iova, access);
                assert_eq!(known.map(|it| it.region.va), expected, "{iova} {access:?}");
                found += usize::from(known.is_some());
            }
        }
        assert!(found > 4000, "{found}");
        for (order, region) in all {
            regions.remove((region.iova, order));
        }
        assert!(regions.is_empty());
    }

    #[test]
    fn ten_thousand_regions_make_no_long_path() {
        let orders: [fn(u64) -> u64; 3] =
            [|_| 0, |order| order << 12, |order| (10_000 - order) << 12];
        for first in orders {
            let mut regions = Regions::default();
            for order in 0..10_000 {
                let iova = first(order);
                regions.add((iova, order), region(iova, 4096, 3));
            }
            // Four times as long as the shortest one possible.
            assert!(depth(&regions.0) <= 56, "{}", depth(&regions.0));
            for order in (0..10_000).filter(|order| order % 10 != 0) {
                regions.remove((first(order), order));
            }
            assert!(depth(&regions.0) <= 40, "{}", depth(&regions.0));
        }
    }
}
