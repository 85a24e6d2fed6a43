//! Numbers that hardware objects have: lowest free first, held as long as the unit is.

use std::collections::BTreeSet;
use std::ops::Range;

use super::accounting::{CT, EQ, PTE, TGQ, TXQ};

/// Numbers that were ever taken, in order, and those of them that came back.
#[derive(Clone, Debug, Default)]
struct Pool {
    taken: u32,
    returned: BTreeSet<u32>,
}

/// The numbers of each resource type.
#[derive(Clone, Debug, Default)]
pub struct Numbers([Pool; 8]);

impl Numbers {
    /// The lowest free number of a type; `None` if they have run out.
    pub fn take(&mut self, kind: usize) -> Option<u32> {
        let pool = &mut self.0[kind];
        if let Some(number) = pool.returned.pop_first() {
            return Some(number);
        }
        let range = range(kind);
        let number = range.start + pool.taken;
        if number >= range.end {
            return None;
        }
        pool.taken += 1;
        Some(number)
    }

    pub fn give_back(&mut self, kind: usize, number: u32) {
        let pool = &mut self.0[kind];
        let was_taken = number < range(kind).start + pool.taken;
        assert!(was_taken && pool.returned.insert(number), "{number} was not taken");
    }

    /// Returns the number of a type that is held.
    pub fn held(&self, kind: usize) -> usize {
        let pool = &self.0[kind];
        pool.taken as usize - pool.returned.len()
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
