//! Numbers that hardware objects have: lowest free first, held as long as the unit is.

use std::collections::BTreeSet;
use std::ops::Range;

use super::accounting::{CT, EQ, PTE, TGQ, TXQ};

/// Numbers taken, by resource type.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers([BTreeSet<u32>; 8]);

impl Numbers {
    /// The lowest free number of a type; `None` if they have run out.
    pub(crate) fn take(&mut self, kind: usize) -> Option<u32> {
        let taken = &mut self.0[kind];
        let number = range(kind).find(|number| !taken.contains(number))?;
        taken.insert(number);
        Some(number)
    }

    pub(crate) fn give_back(&mut self, kind: usize, number: u32) {
        assert!(self.0[kind].remove(&number), "{number} was not taken");
    }

    /// How many of a type are held.
    pub(crate) fn held(&self, kind: usize) -> usize {
        self.0[kind].len()
    }
}

fn range(kind: usize) -> Range<u32> {
    match kind {
        TXQ => 0..1024,
        TGQ => 1024..1536,
        PTE | EQ | CT => 1..2048,
        _ => 1..1023,
    }
}
