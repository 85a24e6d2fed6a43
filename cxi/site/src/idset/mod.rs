//! Sets of small ids in the syntax that schedulers use: `1024-65535`, `5,7,9-12`, `[0-3,8]`.
//!
//! The syntax is that of Flux (RFC 22) and of the kernel's CPU lists: decimal ids and ascending
//! ranges separated by commas, optionally all in brackets, without blanks.
//!
//! ```
//! use cxi_site::IdSet;
//!
//! let pool: IdSet = "1024-65535".parse()?;
//! assert_eq!(pool.len(), 64_512);
//! assert!(pool.contains(4034));
//!
//! let cores: IdSet = "[5,7,9-12]".parse()?;
//! assert_eq!(cores.to_string(), "5,7,9-12");
//!
//! let error = "5,7-".parse::<IdSet>().unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "byte 4: expected the last id of the range that starts with 7, found the end"
//! );
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

use std::fmt;
use std::ops::{Range, RangeInclusive};

mod parse;

pub use parse::ParseIdSetError;

/// A set of ids from 0 to 65535, kept as its runs of consecutive ids.
///
/// Searches take time logarithmic in the number of runs. Changes move the runs that follow, of six
/// bytes each.
/// Prints as an id set without brackets; the empty set prints as the empty string.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct IdSet {
    /// Ascending, none of them empty, with a gap before each but the first: a set has one form.
    runs: Vec<RangeInclusive<u16>>,
}

impl IdSet {
    /// The empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self { runs: Vec::new() }
    }

    /// Returns the number of IDs in the set.
    #[must_use]
    pub fn len(&self) -> usize {
        self.runs.iter().map(ExactSizeIterator::len).sum()
    }

    /// Returns whether no id is in the set.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Returns whether `id` is in the set.
    #[must_use]
    pub fn contains(&self, id: u16) -> bool {
        self.next_from(id) == Some(id)
    }

    /// Adds an id; returns false if it was already there.
    pub fn insert(&mut self, id: u16) -> bool {
        let added = !self.contains(id);
        if added {
            self.insert_range(id..=id);
        }
        added
    }

    /// Removes an id; returns false if it was not there.
    pub fn remove(&mut self, id: u16) -> bool {
        let removed = self.contains(id);
        if removed {
            self.remove_range(&(id..=id));
        }
        removed
    }

    /// Adds all ids of a range; an empty range adds none.
    pub fn insert_range(&mut self, range: RangeInclusive<u16>) {
        if range.is_empty() {
            return;
        }
        let (mut first, mut last) = range.into_inner();
        // Runs that only touch the range become one with it too.
        let touched = self.runs_in(first.saturating_sub(1), last.saturating_add(1));
        if let [run, ..] = &self.runs[touched.clone()] {
            first = first.min(*run.start());
        }
        if let [.., run] = &self.runs[touched.clone()] {
            last = last.max(*run.end());
        }
        self.runs.splice(touched, [first..=last]);
    }

    /// Removes all ids of a range that is not empty.
    fn remove_range(&mut self, range: &RangeInclusive<u16>) {
        let touched = self.runs_in(*range.start(), *range.end());
        let runs = &self.runs[touched.clone()];
        let below = runs.first().filter(|run| run.start() < range.start());
        let above = runs.last().filter(|run| run.end() > range.end());
        let below = below.map(|run| *run.start()..=*range.start() - 1);
        let above = above.map(|run| *range.end() + 1..=*run.end());
        self.runs.splice(touched, below.into_iter().chain(above));
    }

    /// The places of the runs that have an id from `first` to `last`.
    fn runs_in(&self, first: u16, last: u16) -> Range<usize> {
        let from = self.runs.partition_point(|run| *run.end() < first);
        let to = self.runs.partition_point(|run| *run.start() <= last);
        from..to
    }

    /// The smallest id.
    #[must_use]
    pub fn first(&self) -> Option<u16> {
        self.runs.first().map(|run| *run.start())
    }

    /// The largest id.
    #[must_use]
    pub fn last(&self) -> Option<u16> {
        self.runs.last().map(|run| *run.end())
    }

    /// The smallest id that is at least `id`.
    #[must_use]
    pub fn next_from(&self, id: u16) -> Option<u16> {
        let run = self.runs_from(id).first()?;
        Some(id.max(*run.start()))
    }

    /// The first id of the lowest run of `size` consecutive ids, at `id` or above, that starts at a
    /// multiple of `size`.
    ///
    /// Also `None` if `size` is not a power of two.
    #[must_use]
    pub fn next_block_from(&self, id: u16, size: u16) -> Option<u16> {
        if !size.is_power_of_two() {
            return None;
        }
        self.runs_from(id).iter().find_map(|run| {
            let start = id.max(*run.start()).checked_next_multiple_of(size)?;
            // A block of a power of two never reaches past the largest id.
            run.contains(&(start + (size - 1))).then_some(start)
        })
    }

    /// The runs with an id that is at least `id`.
    fn runs_from(&self, id: u16) -> &[RangeInclusive<u16>] {
        &self.runs[self.runs_in(id, u16::MAX)]
    }

    /// The ids in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        self.runs.iter().cloned().flatten()
    }

    /// The longest runs of consecutive ids, in ascending order.
    pub fn ranges(&self) -> impl Iterator<Item = RangeInclusive<u16>> + '_ {
        self.runs.iter().cloned()
    }

    /// The ids that are in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut union = self.clone();
        for run in other.ranges() {
            union.insert_range(run);
        }
        union
    }

    /// The ids that are in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.difference(&self.difference(other))
    }

    /// The ids of this set that are not in the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let mut difference = self.clone();
        for run in &other.runs {
            difference.remove_range(run);
        }
        difference
    }

    /// Returns whether every id of this set is in the other.
    #[must_use]
    pub fn is_subset(&self, other: &Self) -> bool {
        self.difference(other).is_empty()
    }
}

impl Extend<u16> for IdSet {
    fn extend<I: IntoIterator<Item = u16>>(&mut self, ids: I) {
        for id in ids {
            self.insert(id);
        }
    }
}

impl FromIterator<u16> for IdSet {
    fn from_iter<I: IntoIterator<Item = u16>>(ids: I) -> Self {
        let mut set = Self::new();
        set.extend(ids);
        set
    }
}

impl From<RangeInclusive<u16>> for IdSet {
    fn from(range: RangeInclusive<u16>) -> Self {
        let mut set = Self::new();
        set.insert_range(range);
        set
    }
}

impl fmt::Display for IdSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, range) in self.ranges().enumerate() {
            if position > 0 {
                f.write_str(",")?;
            }
            if range.start() == range.end() {
                write!(f, "{}", range.start())?;
            } else {
                write!(f, "{}-{}", range.start(), range.end())?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for IdSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IdSet({self})")
    }
}
