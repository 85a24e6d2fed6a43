//! Printing an id set, and serializing it.

use std::fmt;

use super::IdSet;

impl IdSet {
    /// Prints the set as Flux does: in brackets unless it is a single id.
    #[must_use]
    pub const fn bracketed(&self) -> Bracketed<'_> {
        Bracketed(self)
    }
}

impl fmt::Display for IdSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, range) in self.ranges().enumerate() {
            if position > 0 {
                f.write_str(",")?;
            }
            if range.start() == range.end() {
                write!(f, "{}", range.start())?;
            } else {
                write!(f, "{}-{}", range.start(), range.end())?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for IdSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IdSet({self})")
    }
}

/// An [`IdSet`] that prints as Flux prints it: `[5,7,9-12]`, but `5` for a single id.
#[derive(Debug, Clone, Copy)]
pub struct Bracketed<'a>(&'a IdSet);

impl fmt::Display for Bracketed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.len() > 1 {
            write!(f, "[{}]", self.0)
        } else {
            write!(f, "{}", self.0)
        }
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for IdSet {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for IdSet {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
