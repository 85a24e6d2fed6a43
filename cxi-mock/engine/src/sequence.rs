//! An ordered list that is searched often: keys are adjacent, values are elsewhere, and a long list
//! has an index.

use std::collections::{BTreeSet, VecDeque};

/// The longest list without an index: walking through so few takes no longer than a lookup.
const WALKED: usize = 16;
/// The most masks that an index has: each costs every search one more lookup. Programs use few,
/// because the bits that they ignore follow from their protocol.
const MASKS: usize = 8;

/// The label by which a key is found: match bits, and an initiator.
pub(crate) type Label = (u64, u32);

/// A key that an index can hold.
pub(crate) trait Labelled: Copy {
    /// The bits of the label that count.
    fn mask(&self) -> Label;
    /// The values that these bits must have.
    fn label(&self) -> Label;
}

/// Places by label, for keys with the same mask.
#[derive(Debug)]
struct Group {
    mask: Label,
    places: BTreeSet<(Label, usize)>,
}

/// Places by label, and the keys for whose mask there is no group.
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
        Self { groups: Vec::new(), others: VecDeque::new() }
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

    /// Adds a place after all others.
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

    /// The first place from `from` on that fits, among keys whose label is the same in the bits
    /// that count.
    pub(crate) fn find(
        &self,
        from: usize,
        label: Label,
        keys: &[Option<K>],
        mut fits: impl FnMut(&K) -> bool,
    ) -> Option<usize> {
        let found = self.groups.iter().fold(None, |found, group| {
            let label = masked(label, group.mask);
            // Places after one that is already found do not matter.
            let end = found.unwrap_or(usize::MAX);
            let places = group.places.range((label, from)..(label, end));
            let mut places = places.map(|(_, place)| *place);
            places.find(|place| keys[*place].as_ref().is_some_and(&mut fits)).or(found)
        });
        let end = found.unwrap_or(usize::MAX);
        let first = self.others.partition_point(|other| other.0 < from);
        let mut others = self.others.range(first..);
        let other = others.find(|(place, key)| *place >= end || fits(key));
        other.map(|(place, _)| *place).filter(|place| *place < end).or(found)
    }
}

/// Keys and values in order. A removal leaves a hole; many holes are closed together.
#[derive(Debug)]
pub(crate) struct Sequence<K, V> {
    keys: Vec<Option<K>>,
    values: Vec<Option<V>>,
    /// All places before this one are holes.
    first: usize,
    live: usize,
    /// `None` while the list is short.
    index: Option<Index<K>>,
}

impl<K, V> Default for Sequence<K, V> {
    fn default() -> Self {
        Self { keys: Vec::new(), values: Vec::new(), first: 0, live: 0, index: None }
    }
}

impl<K: Labelled, V> Sequence<K, V> {
    pub(crate) fn len(&self) -> usize {
        self.live
    }

    pub(crate) fn push(&mut self, key: K, value: V) {
        let place = self.keys.len();
        if place >= WALKED {
            let index = self.index.get_or_insert_with(|| {
                let mut index = Index::new();
                for (place, key) in self.keys.iter().enumerate() {
                    if let Some(key) = key {
                        index.push(*key, place);
                    }
                }
                index
            });
            index.push(key, place);
        }
        // Rule 12.5: An append costs the same regardless of the length of the list.
        self.keys.push(Some(key));
        self.values.push(Some(value));
        self.live += 1;
    }

    /// The first place from `from` on whose key fits. Places stay valid until the next push.
    pub(crate) fn find(&self, from: usize, mut fits: impl FnMut(&K) -> bool) -> Option<usize> {
        let from = from.max(self.first);
        let found =
            self.keys.get(from..)?.iter().position(|key| key.as_ref().is_some_and(&mut fits))?;
        Some(from + found)
    }

    /// As [`find`](Self::find), if only keys can fit whose label equals this one in the bits of
    /// their mask.
    pub(crate) fn find_labelled(
        &self,
        from: usize,
        label: Label,
        fits: impl FnMut(&K) -> bool,
    ) -> Option<usize> {
        match &self.index {
            Some(index) => index.find(from, label, &self.keys, fits),
            None => self.find(from, fits),
        }
    }

    pub(crate) fn get(&self, place: usize) -> Option<&V> {
        self.values.get(place)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, place: usize) -> Option<&mut V> {
        self.values.get_mut(place)?.as_mut()
    }

    pub(crate) fn remove(&mut self, place: usize) -> Option<V> {
        let value = self.values.get_mut(place)?.take()?;
        let key = self.keys[place].take();
        if let (Some(index), Some(key)) = (&mut self.index, key) {
            index.remove(key, place);
        }
        self.live -= 1;
        if place == self.first {
            let rest = self.keys[place..].iter();
            self.first += rest.take_while(|key| key.is_none()).count();
        }
        Some(value)
    }

    /// Removes and returns the first value that fits.
    pub(crate) fn remove_first(&mut self, mut fits: impl FnMut(&V) -> bool) -> Option<V> {
        let values = self.values.get(self.first..)?.iter();
        let found = values.map(Option::as_ref).position(|value| value.is_some_and(&mut fits))?;
        self.remove(self.first + found)
    }

    /// Closes the holes if there are many, which changes the places.
    pub(crate) fn tidy(&mut self) {
        if self.keys.len() > 32 && self.live * 2 < self.keys.len() {
            self.keys.retain(Option::is_some);
            self.values.retain(Option::is_some);
            self.first = 0;
            self.index = None;
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let pairs = self.keys.iter().zip(&self.values);
        pairs.filter_map(|(key, value)| key.as_ref().zip(value.as_ref()))
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.values.iter().flatten()
    }
}
