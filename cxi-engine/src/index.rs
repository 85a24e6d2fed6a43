//! Where to look in a long list.

use std::collections::{BTreeSet, VecDeque};

/// What a key has to be looked for by: match bits, and an initiator unless it stands for any.
pub(crate) type Label = (u64, Option<u32>);

/// A key that an index may know.
pub(crate) trait Labelled {
    /// Its label; `None` if there is no single one by which it has to be found.
    fn label(&self) -> Option<Label>;
}

/// Places by label, and those without one.
#[derive(Debug, Default)]
pub(crate) struct Index {
    labelled: BTreeSet<(Label, usize)>,
    /// In order.
    others: VecDeque<usize>,
}

impl Index {
    /// Adds a place behind all that it has.
    pub(crate) fn push(&mut self, label: Option<Label>, place: usize) {
        match label {
            Some(label) => {
                self.labelled.insert((label, place));
            }
            None => self.others.push_back(place),
        }
    }

    pub(crate) fn remove(&mut self, label: Option<Label>, place: usize) {
        if let Some(label) = label {
            self.labelled.remove(&(label, place));
        } else if let Ok(at) = self.others.binary_search(&place) {
            self.others.remove(at);
        }
    }

    /// The first place from `from` on that fits, of those with one of these labels or with none.
    pub(crate) fn find(
        &self,
        from: usize,
        labels: &[Label],
        mut fits: impl FnMut(usize) -> bool,
    ) -> Option<usize> {
        let found = labels.iter().fold(None, |found, label| {
            // Behind what is found already, nothing is of interest.
            let end = found.unwrap_or(usize::MAX);
            let places = self.labelled.range((*label, from)..(*label, end));
            let mut places = places.map(|(_, place)| *place);
            places.find(|place| fits(*place)).or(found)
        });
        let end = found.unwrap_or(usize::MAX);
        let first = self.others.partition_point(|place| *place < from);
        let mut others = self.others.range(first..).copied();
        let other = others.find(|place| *place >= end || fits(*place));
        other.filter(|place| *place < end).or(found)
    }
}
