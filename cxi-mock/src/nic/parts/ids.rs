//! Number allocators.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// Hands out the lowest free number of a range, in time that does not depend on how many are in
/// use.
#[derive(Clone, Debug)]
pub(crate) struct Ids {
    first: u32,
    /// First number that does not exist.
    end: u32,
    /// First number that was never allocated.
    next: u32,
    freed: BinaryHeap<Reverse<u32>>,
}

impl Ids {
    /// Numbers from `first` up to, but not including, `end`.
    pub(crate) fn new(first: u32, end: u32) -> Self {
        Self { first, end, next: first, freed: BinaryHeap::new() }
    }

    /// As [`new`](Self::new), with some numbers taken.
    pub(crate) fn with_taken(first: u32, end: u32, taken: &BTreeSet<u32>) -> Self {
        let next = taken.last().map_or(first, |last| last + 1).max(first);
        Self {
            first,
            end,
            next,
            freed: (first..next).filter(|id| !taken.contains(id)).map(Reverse).collect(),
        }
    }

    pub(crate) fn has_free(&self) -> bool {
        !self.freed.is_empty() || self.next < self.end
    }

    /// The number that is handed out next.
    pub(crate) fn peek(&self) -> Option<u32> {
        let freed = self.freed.peek().map(|Reverse(id)| *id);
        freed.or_else(|| (self.next < self.end).then_some(self.next))
    }

    pub(crate) fn alloc(&mut self) -> Option<u32> {
        if let Some(Reverse(id)) = self.freed.pop() {
            return Some(id);
        }
        if self.next >= self.end {
            return None;
        }
        self.next += 1;
        Some(self.next - 1)
    }

    /// Frees a number that was allocated.
    pub(crate) fn free(&mut self, id: u32) {
        self.freed.push(Reverse(id));
    }

    /// Numbers in use.
    pub(crate) fn used(&self) -> u32 {
        (self.next - self.first).saturating_sub(count(self.freed.len()))
    }
}

/// A count as the driver reports it.
pub(crate) fn count(of: usize) -> u32 {
    u32::try_from(of).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lowest_free_first() {
        let mut ids = Ids::new(1, 5);
        let all: Vec<_> = (0..5).map(|_| ids.alloc()).collect();
        assert_eq!(all, [Some(1), Some(2), Some(3), Some(4), None]);
        ids.free(3);
        ids.free(1);
        assert_eq!(ids.used(), 2);
        assert_eq!(ids.alloc(), Some(1));
        assert_eq!(ids.alloc(), Some(3));
        assert_eq!(ids.alloc(), None);
    }

    #[test]
    fn taken_numbers_are_left_out() {
        let mut ids = Ids::with_taken(1, 10, &BTreeSet::from([2, 4]));
        assert_eq!(ids.used(), 2);
        assert_eq!([ids.alloc(), ids.alloc(), ids.alloc()], [Some(1), Some(3), Some(5)]);
    }
}
