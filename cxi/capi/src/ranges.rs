//! Counts of how often each page of the address space is pinned.

use std::collections::BTreeMap;
use std::ops::Range;

/// Disjoint ranges of addresses that are pinned at least once.
#[derive(Debug)]
pub(crate) struct Ranges {
    /// Maps the start of each range to its end and count.
    pinned: BTreeMap<usize, (usize, u32)>,
}

impl Ranges {
    pub(crate) const fn new() -> Self {
        Self { pinned: BTreeMap::new() }
    }

    /// Pins a range once more. Returns the parts that were not pinned before, in ascending order.
    pub(crate) fn pin(&mut self, range: &Range<usize>) -> Vec<Range<usize>> {
        self.split(range);
        let mut fresh = Vec::new();
        let mut at = range.start;
        for (start, (end, count)) in self.pinned.range_mut(range.clone()) {
            *count = count.saturating_add(1);
            if at < *start {
                fresh.push(at..*start);
            }
            at = *end;
        }
        if at < range.end {
            fresh.push(at..range.end);
        }
        for part in &fresh {
            self.pinned.insert(part.start, (part.end, 1));
        }
        fresh
    }

    /// Unpins a range once. Returns the parts that are no longer pinned, in ascending order.
    /// Parts that were not pinned stay unpinned.
    pub(crate) fn unpin(&mut self, range: &Range<usize>) -> Vec<Range<usize>> {
        self.split(range);
        let mut free: Vec<Range<usize>> = Vec::new();
        for (start, (end, count)) in self.pinned.range_mut(range.clone()) {
            *count -= 1;
            if *count > 0 {
                continue;
            }
            match free.last_mut() {
                Some(last) if last.end == *start => last.end = *end,
                _ => free.push(*start..*end),
            }
        }
        self.pinned.retain(|_, (_, count)| *count > 0);
        if self.pinned.is_empty() {
            // An empty map may keep memory, which would leak when the library is unloaded.
            *self = Self::new();
        }
        free
    }

    /// Splits ranges at the ends of another one.
    fn split(&mut self, range: &Range<usize>) {
        for place in [range.start, range.end] {
            let before = self.pinned.range_mut(..place).next_back();
            let Some((_, (end, count))) = before.filter(|(_, (end, _))| *end > place) else {
                continue;
            };
            let behind = (*end, *count);
            *end = place;
            self.pinned.insert(place, behind);
        }
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "a list of ranges may have one")]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_protected_when_it_is_pinned_first_and_free_when_unpinned_last() {
        let mut ranges = Ranges::new();
        assert_eq!(ranges.pin(&(0..4)), [0..4]);
        assert_eq!(ranges.pin(&(2..6)), [4..6]);
        assert_eq!(ranges.unpin(&(0..4)), [0..2]);
        assert_eq!(ranges.unpin(&(0..4)), [2..4]);
        assert_eq!(ranges.unpin(&(0..4)), []);
        assert_eq!(ranges.unpin(&(4..6)), [4..6]);
        assert!(ranges.pinned.is_empty());
    }

    #[test]
    fn holes_are_filled_and_neighbours_freed_together() {
        let mut ranges = Ranges::new();
        assert_eq!(ranges.pin(&(10..20)), [10..20]);
        assert_eq!(ranges.pin(&(30..40)), [30..40]);
        assert_eq!(ranges.pin(&(0..50)), [0..10, 20..30, 40..50]);
        assert_eq!(ranges.unpin(&(0..50)), [0..10, 20..30, 40..50]);
        assert_eq!(ranges.pin(&(20..30)), [20..30]);
        assert_eq!(ranges.unpin(&(10..40)), [10..40]);
    }

    /// Compares with an array of counters, for every pair of ranges in a small space.
    #[test]
    fn agrees_with_counting_each_page() {
        let all = || (0..7_usize).flat_map(|start| (start + 1..8).map(move |end| start..end));
        for (first, second) in
            all().flat_map(|first| all().map(move |second| (first.clone(), second)))
        {
            let mut ranges = Ranges::new();
            let mut pages = [0_u32; 8];
            let pages_of =
                |parts: Vec<Range<usize>>| parts.into_iter().flatten().collect::<Vec<_>>();
            for range in [&first, &second, &first] {
                let fresh = range.clone().filter(|page| pages[*page] == 0).collect::<Vec<_>>();
                range.clone().for_each(|page| pages[page] += 1);
                assert_eq!(pages_of(ranges.pin(range)), fresh);
            }
            for range in [&second, &first, &first] {
                range.clone().for_each(|page| pages[page] -= 1);
                let free = range.clone().filter(|page| pages[*page] == 0).collect::<Vec<_>>();
                assert_eq!(pages_of(ranges.unpin(range)), free);
            }
            assert!(ranges.pinned.is_empty());
        }
    }
}
