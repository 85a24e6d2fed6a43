//! A list in order that is searched often: keys side by side, values elsewhere, and an index if
//! there are many.

use crate::index::{Index, Label, Labelled};

/// Places of a list without an index: a walk of so few takes no longer than a look into one.
const WALKED: usize = 16;

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
