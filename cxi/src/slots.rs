//! What the short lists in a service's descriptor have in common.

/// Implements a list with a field `slots` of optional entries, those that are set coming first.
macro_rules! slots {
    ($list:ident of $entry:ident, $invalid:ident, separated by $separator:literal) => {
        impl $list {
            /// What a driver reports, which need not satisfy [`new`](Self::new).
            pub(crate) fn from_kernel(entries: impl IntoIterator<Item = $entry>) -> Self {
                let mut list = Self::default();
                for (slot, entry) in list.slots.iter_mut().zip(entries) {
                    *slot = Some(entry);
                }
                list
            }

            /// Iterates over the entries, in order.
            pub fn iter(&self) -> impl Iterator<Item = $entry> + '_ {
                self.slots.iter().copied().flatten()
            }

            /// How many entries there are.
            #[must_use]
            pub fn len(&self) -> usize {
                self.iter().count()
            }

            /// Whether there is no entry.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// Whether this is one of the entries.
            #[must_use]
            pub fn contains(&self, entry: $entry) -> bool {
                self.iter().any(|other| other == entry)
            }
        }

        impl std::fmt::Display for $list {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let text: Vec<_> = self.iter().map(|entry| entry.to_string()).collect();
                f.pad(&text.join($separator))
            }
        }

        impl TryFrom<Vec<$entry>> for $list {
            type Error = $invalid;

            fn try_from(entries: Vec<$entry>) -> Result<Self, $invalid> {
                Self::new(entries)
            }
        }

        impl From<$list> for Vec<$entry> {
            fn from(list: $list) -> Self {
                list.iter().collect()
            }
        }
    };
}

pub(crate) use slots;
