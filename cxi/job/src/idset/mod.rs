//! Sets of small ids in the syntax that schedulers use: `1024-65535`, `5,7,9-12`, `[0-3,8]`.
//!
//! The syntax is that of Flux (RFC 22) and of the kernel's CPU lists: decimal ids and ascending
//! ranges separated by commas, optionally all in brackets, without blanks.
//!
//! ```
//! use cxi_job::IdSet;
//!
//! let pool: IdSet = "1024-65535".parse()?;
//! assert_eq!(pool.len(), 64_512);
//! assert!(pool.contains(4034));
//!
//! let cores: IdSet = "[5,7,9-12]".parse()?;
//! assert_eq!(cores.to_string(), "5,7,9-12");
//! assert_eq!(cores.bracketed().to_string(), "[5,7,9-12]");
//!
//! let error = "5,7-".parse::<IdSet>().unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "byte 4: expected the last id of the range that starts with 7, found the end"
//! );
//! # Ok::<(), cxi_job::ParseIdSetError>(())
//! ```

mod parse;
mod print;

use std::hash::{Hash, Hasher};
use std::ops::RangeInclusive;

pub use parse::{Expected, Found, ParseIdSetError, ParseIdSetErrorKind};
pub use print::Bracketed;

/// A set of ids from 0 to 65535, one bit each: at most 8 KiB.
///
/// Inserting, removing and testing take constant time; searches examine 64 ids at a time.
/// Prints as an id set without brackets; the empty set prints as the empty string.
#[derive(Clone, Default)]
pub struct IdSet {
    words: Vec<u64>,
    len: usize,
}

fn place(id: u16) -> (usize, u32) {
    (usize::from(id >> 6), u32::from(id & 63))
}

fn id_at(word: usize, bit: u32) -> Option<u16> {
    u16::try_from(word * 64 + bit as usize).ok()
}

impl IdSet {
    /// The empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            words: Vec::new(),
            len: 0,
        }
    }

    /// How many ids are in the set.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether no id is in the set.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether `id` is in the set.
    #[must_use]
    pub fn contains(&self, id: u16) -> bool {
        let (word, bit) = place(id);
        self.words
            .get(word)
            .is_some_and(|word| (word >> bit) & 1 == 1)
    }

    /// Adds an id; returns false if it was already there.
    pub fn insert(&mut self, id: u16) -> bool {
        let (word, bit) = place(id);
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        let Some(slot) = self.words.get_mut(word) else {
            return false;
        };
        let added = (*slot >> bit) & 1 == 0;
        *slot |= 1 << bit;
        self.len += usize::from(added);
        added
    }

    /// Removes an id; returns false if it was not there.
    pub fn remove(&mut self, id: u16) -> bool {
        let (word, bit) = place(id);
        let Some(slot) = self.words.get_mut(word) else {
            return false;
        };
        let removed = (*slot >> bit) & 1 == 1;
        *slot &= !(1 << bit);
        self.len -= usize::from(removed);
        removed
    }

    /// Adds all ids of a range; an empty range adds none.
    pub fn insert_range(&mut self, range: RangeInclusive<u16>) {
        let (last, _) = place(*range.end());
        if !range.is_empty() && self.words.len() <= last {
            self.words.resize(last + 1, 0);
        }
        self.change_range(&range, |word, mask| word | mask);
    }

    /// Changes the words of a range, as far as they are there.
    fn change_range(&mut self, range: &RangeInclusive<u16>, change: impl Fn(u64, u64) -> u64) {
        for (index, mask) in masks(range) {
            let Some(word) = self.words.get_mut(index) else {
                break;
            };
            let before = word.count_ones() as usize;
            *word = change(*word, mask);
            self.len = self.len - before + word.count_ones() as usize;
        }
    }

    /// The smallest id.
    #[must_use]
    pub fn first(&self) -> Option<u16> {
        self.next_from(0)
    }

    /// The largest id.
    #[must_use]
    pub fn last(&self) -> Option<u16> {
        let (index, word) = self
            .words
            .iter()
            .enumerate()
            .rev()
            .find(|(_, word)| **word != 0)?;
        id_at(index, 63 - word.leading_zeros())
    }

    /// The smallest id that is at least `id`.
    #[must_use]
    pub fn next_from(&self, id: u16) -> Option<u16> {
        self.find_from(id, |word| word)
    }

    /// The smallest id that is at least `id` and not in the set.
    fn next_gap_from(&self, id: u16) -> Option<u16> {
        self.find_from(id, |word| !word).or_else(|| {
            let behind = u16::try_from(self.words.len() * 64).ok()?;
            Some(behind.max(id))
        })
    }

    fn find_from(&self, id: u16, view: impl Fn(u64) -> u64) -> Option<u16> {
        let (first, bit) = place(id);
        let mut mask = u64::MAX << bit;
        for (index, word) in self.words.iter().enumerate().skip(first) {
            let found = view(*word) & mask;
            if found != 0 {
                return id_at(index, found.trailing_zeros());
            }
            mask = u64::MAX;
        }
        None
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
        if size <= 32 {
            let starts = aligned(size);
            // Folding leaves the bits at which a run of `size` ids starts.
            let fold = |mut word: u64| {
                let mut run = 1;
                while run < size {
                    word &= word >> run;
                    run *= 2;
                }
                word & starts
            };
            return self.find_from(id, fold);
        }
        let step = usize::from(size) / 64;
        (usize::from(id).div_ceil(usize::from(size)) * step..self.words.len())
            .step_by(step)
            .find(|first| {
                let block = self.words.get(*first..first + step);
                block.is_some_and(|words| words.iter().all(|word| *word == u64::MAX))
            })
            .and_then(|first| id_at(first, 0))
    }

    /// The ids in ascending order.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        Iter {
            set: self,
            next: Some(0),
        }
    }

    /// The longest runs of consecutive ids, in ascending order.
    pub fn ranges(&self) -> impl Iterator<Item = RangeInclusive<u16>> + '_ {
        let mut next = Some(0);
        std::iter::from_fn(move || {
            let first = self.next_from(next?)?;
            let last = match self.next_gap_from(first) {
                Some(gap) => gap - 1,
                None => u16::MAX,
            };
            next = last.checked_add(1);
            Some(first..=last)
        })
    }

    /// The ids that are in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        self.combine(other, |a, b| a | b)
    }

    /// The ids that are in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.combine(other, |a, b| a & b)
    }

    /// The ids of this set that are not in the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.combine(other, |a, b| a & !b)
    }

    /// Whether the two sets have no id in common.
    #[must_use]
    pub fn is_disjoint(&self, other: &Self) -> bool {
        self.words.iter().zip(&other.words).all(|(a, b)| a & b == 0)
    }

    /// Whether every id of this set is in the other.
    #[must_use]
    pub fn is_subset(&self, other: &Self) -> bool {
        self.difference(other).is_empty()
    }

    fn combine(&self, other: &Self, merge: impl Fn(u64, u64) -> u64) -> Self {
        let word = |set: &Self, index: usize| set.words.get(index).copied().unwrap_or(0);
        let words: Vec<u64> = (0..self.words.len().max(other.words.len()))
            .map(|index| merge(word(self, index), word(other, index)))
            .collect();
        let len = words.iter().map(|word| word.count_ones() as usize).sum();
        Self { words, len }
    }

    fn trimmed(&self) -> &[u64] {
        let used = self
            .words
            .iter()
            .rposition(|word| *word != 0)
            .map_or(0, |last| last + 1);
        self.words.get(..used).unwrap_or_default()
    }
}

/// The bits of a word at multiples of `size`, a power of two below 64.
fn aligned(size: u16) -> u64 {
    (0..64).step_by(usize::from(size)).map(|bit| 1 << bit).sum()
}

/// The words a range touches, each with the bits of the range in it.
fn masks(range: &RangeInclusive<u16>) -> impl Iterator<Item = (usize, u64)> + use<> {
    let ((first, low), (last, high)) = (place(*range.start()), place(*range.end()));
    let words = if range.is_empty() {
        0..0
    } else {
        first..last + 1
    };
    words.map(move |index| {
        let from = if index == first {
            u64::MAX << low
        } else {
            u64::MAX
        };
        let to = if index == last {
            u64::MAX >> (63 - high)
        } else {
            u64::MAX
        };
        (index, from & to)
    })
}

impl PartialEq for IdSet {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.trimmed() == other.trimmed()
    }
}

impl Eq for IdSet {}

impl Hash for IdSet {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.trimmed().hash(state);
    }
}

/// The ids of an [`IdSet`] in ascending order.
#[derive(Debug, Clone)]
pub struct Iter<'a> {
    set: &'a IdSet,
    next: Option<u16>,
}

impl Iterator for Iter<'_> {
    type Item = u16;

    fn next(&mut self) -> Option<u16> {
        let id = self.set.next_from(self.next?);
        self.next = id.and_then(|id| id.checked_add(1));
        id
    }
}

impl<'a> IntoIterator for &'a IdSet {
    type Item = u16;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
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
