//! The kinds of resources of a NIC.

use std::fmt;
use std::ops::{Index, IndexMut};
use std::str::FromStr;

use cxi_ioctl::abi::service::{RSRC_COUNT, RSRC_NAMES, rsrc_by_name};

use crate::{InvalidValue, ValueKind};

/// A kind of resource, in the driver's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(into = "String", try_from = "String")
)]
#[allow(clippy::exhaustive_enums, reason = "the kernel interface has room for eight")]
pub enum Resource {
    /// Portal table entries (PtlTEs): where messages of a process arrive.
    Ptes,
    /// Transmit command queues.
    Txqs,
    /// Target command queues.
    Tgqs,
    /// Event queues.
    Eqs,
    /// Counting events.
    Cts,
    /// List entries, on each of the processing elements.
    Les,
    /// Trigger list entries.
    Tles,
    /// Address contexts.
    Acs,
}

impl Resource {
    /// All kinds, in the driver's order.
    pub const ALL: [Self; RSRC_COUNT] = [
        Self::Ptes,
        Self::Txqs,
        Self::Tgqs,
        Self::Eqs,
        Self::Cts,
        Self::Les,
        Self::Tles,
        Self::Acs,
    ];

    /// The order in which the driver checks for room. It reports what is available of each resource
    /// up to the first that is short, and leaves zeros after that. TLEs are not checked here.
    pub const CHECK_ORDER: [Self; RSRC_COUNT - 1] =
        [Self::Ptes, Self::Txqs, Self::Tgqs, Self::Eqs, Self::Cts, Self::Les, Self::Acs];

    /// The name, such as `TXQs`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        RSRC_NAMES[self as usize]
    }

    /// Position in [`ALL`](Self::ALL) and in the arrays of the kernel interface.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Resource {
    type Err = InvalidValue;

    /// Parses a name in any case, with or without the plural s.
    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        rsrc_by_name(text)
            .map(|index| Self::ALL[index])
            .ok_or_else(|| InvalidValue::text(ValueKind::Resource, text))
    }
}

impl From<Resource> for usize {
    fn from(resource: Resource) -> Self {
        resource.index()
    }
}

/// One value for each kind of resource.
///
/// `Debug` and `Display` leave out kinds that have the default value.
///
/// ```
/// use cxi::{Resource, ResourceMap};
///
/// let mut map = ResourceMap::<u16>::default();
/// map[Resource::Acs] = 7;
/// assert_eq!(map.iter().map(|(_, count)| *count).sum::<u16>(), 7);
/// assert_eq!(format!("{map:?}"), "{ACs: 7}");
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct ResourceMap<T>([T; RSRC_COUNT]);

impl<T> ResourceMap<T> {
    /// Creates a map with a value for each kind.
    pub fn from_fn(mut value: impl FnMut(Resource) -> T) -> Self {
        Self(Resource::ALL.map(&mut value))
    }

    /// Replaces the value of one kind.
    #[must_use]
    pub fn with(mut self, resource: Resource, value: T) -> Self {
        self[resource] = value;
        self
    }

    /// Iterates over kinds and values, in the driver's order.
    pub fn iter(&self) -> impl Iterator<Item = (Resource, &T)> {
        Resource::ALL.into_iter().zip(&self.0)
    }

    /// Returns a map with each value changed.
    pub fn map<U>(self, mut change: impl FnMut(Resource, T) -> U) -> ResourceMap<U> {
        let mut kinds = Resource::ALL.into_iter().cycle();
        ResourceMap(self.0.map(|value| {
            let kind = kinds.next().unwrap_or(Resource::Ptes);
            change(kind, value)
        }))
    }
}

impl<T> From<[T; RSRC_COUNT]> for ResourceMap<T> {
    /// Takes values in the order of [`Resource::ALL`].
    fn from(values: [T; RSRC_COUNT]) -> Self {
        Self(values)
    }
}

impl<T> Index<Resource> for ResourceMap<T> {
    type Output = T;

    fn index(&self, resource: Resource) -> &T {
        &self.0[resource.index()]
    }
}

impl<T> IndexMut<Resource> for ResourceMap<T> {
    fn index_mut(&mut self, resource: Resource) -> &mut T {
        &mut self.0[resource.index()]
    }
}

impl<T: Default + PartialEq> ResourceMap<T> {
    /// The values that are not the default, with the names of their kinds.
    fn named(&self) -> impl Iterator<Item = (&'static str, &T)> {
        let default = T::default();
        self.iter()
            .filter(move |(_, value)| **value != default)
            .map(|(resource, value)| (resource.name(), value))
    }
}

impl<T: fmt::Debug + Default + PartialEq> fmt::Debug for ResourceMap<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        for (name, value) in self.named() {
            map.entry(&format_args!("{name}"), value);
        }
        map.finish()
    }
}

/// `TXQs 2/4, EQs 0/4`, or `nothing`.
impl<T: fmt::Display + Default + PartialEq> fmt::Display for ResourceMap<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = self.named().map(|(name, value)| format!("{name} {value}"));
        let list = named.collect::<Vec<_>>().join(", ");
        f.pad(if list.is_empty() { "nothing" } else { &list })
    }
}

/// Serialized as a map from names to values, in the driver's order.
#[cfg(feature = "serde")]
impl<T: serde::Serialize> serde::Serialize for ResourceMap<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

/// Kinds that are not named get the default.
#[cfg(feature = "serde")]
impl<'de, T: serde::Deserialize<'de> + Default> serde::Deserialize<'de> for ResourceMap<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut values = std::collections::BTreeMap::<Resource, T>::deserialize(deserializer)?;
        Ok(Self::from_fn(|resource| values.remove(&resource).unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_are_those_of_the_kernel() {
        use cxi_ioctl::abi::service as abi;
        let numbers = [
            abi::RSRC_PTE,
            abi::RSRC_TXQ,
            abi::RSRC_TGQ,
            abi::RSRC_EQ,
            abi::RSRC_CT,
            abi::RSRC_LE,
            abi::RSRC_TLE,
            abi::RSRC_AC,
        ];
        assert_eq!(Resource::ALL.map(Resource::index), numbers);
        let map = ResourceMap::from_fn(Resource::index);
        for resource in Resource::ALL {
            assert_eq!(map[resource], resource.index());
        }
        let names = map.map(|resource, index| (resource.name(), index));
        assert_eq!(names[Resource::Tles], ("TLEs", 6));
    }

    #[test]
    fn names_are_read_in_any_case() {
        assert_eq!("txq".parse(), Ok(Resource::Txqs));
        assert_eq!("LES".parse(), Ok(Resource::Les));
        assert_eq!(
            "cqs".parse::<Resource>().unwrap_err().to_string(),
            "invalid resource 'cqs': expected one of PTEs, TXQs, TGQs, EQs, CTs, LEs, TLEs, ACs"
        );
    }
}
