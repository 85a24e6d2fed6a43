//! Where to look in a long list.

use std::collections::{BTreeSet, VecDeque};

/// Masks that an index knows at most: each takes a look.
const MASKS: usize = 8;

/// What a key is found by: match bits, and an initiator.
pub(crate) type Label = (u64, u32);

/// A key that an index may know.
pub(crate) trait Labelled: Copy {
    /// Bits that count, of those who look for it.
    fn mask(&self) -> Label;
    /// What these bits have to be.
    fn label(&self) -> Label;
}

/// Places by label, of keys whose wildcards are in the same bits.
#[derive(Debug)]
struct Group {
    mask: Label,
    places: BTreeSet<(Label, usize)>,
}

/// Places by label, and the keys that have yet another mask.
#[derive(Debug)]
pub(crate) struct Index<K> {
    groups: Vec<Group>,
    /// In order.
    others: VecDeque<(usize, K)>,
}

fn masked(label: Label, mask: Label) -> Label {
    (label.0 & mask.0, label.1 & mask.1)
}

impl<K: Labelled> Index<K> {
    pub(crate) const fn new() -> Self {
        Self {
            groups: Vec::new(),
            others: VecDeque::new(),
        }
    }

    /// The group for a mask, unless there are too many.
    fn group(&mut self, mask: Label) -> Option<&mut Group> {
        let same = self.groups.iter().position(|group| group.mask == mask);
        let at = same
            .or_else(|| self.groups.iter().position(|group| group.places.is_empty()))
            .unwrap_or(self.groups.len());
        if at == self.groups.len() && at < MASKS {
            let places = BTreeSet::new();
            self.groups.push(Group { mask, places });
        }
        let group = self.groups.get_mut(at)?;
        group.mask = mask;
        Some(group)
    }

    /// Adds a place behind all that it has.
    pub(crate) fn push(&mut self, key: K, place: usize) {
        let mask = key.mask();
        if let Some(group) = self.group(mask) {
            group.places.insert((masked(key.label(), mask), place));
        } else {
            self.others.push_back((place, key));
        }
    }

    pub(crate) fn remove(&mut self, key: K, place: usize) {
        let mask = key.mask();
        let labelled = (masked(key.label(), mask), place);
        let group = self.groups.iter_mut().find(|group| group.mask == mask);
        if group.is_some_and(|group| group.places.remove(&labelled)) {
            return;
        }
        if let Ok(at) = self.others.binary_search_by_key(&place, |other| other.0) {
            self.others.remove(at);
        }
    }

    /// The first place from `from` on that fits, of those whose label is the same where it counts.
    pub(crate) fn find(
        &self,
        from: usize,
        label: Label,
        keys: &[Option<K>],
        mut fits: impl FnMut(&K) -> bool,
    ) -> Option<usize> {
        let found = self.groups.iter().fold(None, |found, group| {
            let label = masked(label, group.mask);
            // Behind what is found already, nothing is of interest.
            let end = found.unwrap_or(usize::MAX);
            let places = group.places.range((label, from)..(label, end));
            let mut places = places.map(|(_, place)| *place);
            places
                .find(|place| keys[*place].as_ref().is_some_and(&mut fits))
                .or(found)
        });
        let end = found.unwrap_or(usize::MAX);
        let first = self.others.partition_point(|other| other.0 < from);
        let mut others = self.others.range(first..);
        let other = others.find(|(place, key)| *place >= end || fits(key));
        other
            .map(|(place, _)| *place)
            .filter(|place| *place < end)
            .or(found)
    }
}
