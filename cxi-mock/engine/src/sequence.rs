//! A list in order that is searched often: keys next to each other, values elsewhere, and an index
//! if there are many.

use std::collections::{BTreeSet, VecDeque};

/// Places of a list without an index: a walk of so few takes no longer than a look into one.
const WALKED: usize = 16;
/// Masks that an index knows at most: each costs a look at every search. Programs use few, as which
/// bits they ignore follows from their protocol.
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

/// Keys and values in order. Taking one out leaves a hole, which goes when there are many.
#[derive(Debug)]
pub(crate) struct Sequence<K, V> {
    keys: Vec<Option<K>>,
    values: Vec<Option<V>>,
    /// Everything before it is a hole.
    first: usize,
    live: usize,
    /// None while there are few.
    index: Option<Index<K>>,
}

impl<K, V> Default for Sequence<K, V> {
    fn default() -> Self {
        Self {
            keys: Vec::new(),
            values: Vec::new(),
            first: 0,
            live: 0,
            index: None,
        }
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

    /// The first place from `from` on whose key fits. Places hold until something is pushed.
    pub(crate) fn find(&self, from: usize, mut fits: impl FnMut(&K) -> bool) -> Option<usize> {
        let from = from.max(self.first);
        let found = self
            .keys
            .get(from..)?
            .iter()
            .position(|key| key.as_ref().is_some_and(&mut fits))?;
        Some(from + found)
    }

    /// The same where only keys can fit whose label is this one in the bits of their mask.
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

    /// Takes out the first value that fits.
    pub(crate) fn remove_first(&mut self, mut fits: impl FnMut(&V) -> bool) -> Option<V> {
        let values = self.values.get(self.first..)?.iter();
        let found = values
            .map(Option::as_ref)
            .position(|value| value.is_some_and(&mut fits))?;
        self.remove(self.first + found)
    }

    /// Closes holes if there are many. Places change.
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
