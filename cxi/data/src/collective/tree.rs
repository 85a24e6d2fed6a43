//! The tree of a group.

use std::num::NonZeroU32;
use std::ops::Range;

/// A tree of all members in order of rank: member 0 is the root, and the children of a member have
/// consecutive ranks. Between any two members there is exactly one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tree {
    size: NonZeroU32,
    width: NonZeroU32,
}

impl Tree {
    /// The tree of `size` members, of which each has at most `width` children.
    #[must_use]
    pub const fn new(size: NonZeroU32, width: NonZeroU32) -> Self {
        Self { size, width }
    }

    /// Number of members.
    #[must_use]
    pub const fn size(self) -> u32 {
        self.size.get()
    }

    /// The parent of a member. The root has none.
    #[must_use]
    pub const fn parent(self, rank: u32) -> Option<u32> {
        match rank.checked_sub(1) {
            Some(before) => Some(before / self.width.get()),
            None => None,
        }
    }

    /// The children of a member.
    #[must_use]
    pub fn children(self, rank: u32) -> Range<u32> {
        let first = rank.saturating_mul(self.width.get()).saturating_add(1).min(self.size());
        first..first.saturating_add(self.width.get()).min(self.size())
    }

    /// Number of members between a member and the root, including the root.
    #[must_use]
    pub fn depth(self, rank: u32) -> u32 {
        let up = std::iter::successors(self.parent(rank), |rank| self.parent(*rank));
        up.fold(0, |depth, _| depth + 1)
    }
}
