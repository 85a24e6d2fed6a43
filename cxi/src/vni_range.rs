//! Blocks of VNIs.

use std::fmt;
use std::str::FromStr;

use crate::{InvalidValue, ValueKind, Vni};

/// A block of VNIs that a service can have: its size is a power of two, and it starts at a multiple
/// of its size. Printed as `1024-1039`.
///
/// ```
/// use cxi::{Vni, VniRange};
///
/// let block = VniRange::new(Vni::new(1024)?, 16)?;
/// assert_eq!(block, "1024-1039".parse()?);
/// assert_eq!(
///     VniRange::new(Vni::new(1030)?, 16).unwrap_err().to_string(),
///     "VNI range of 16 from 1030: expected a start that is a multiple of 16, such as 1024 or 1040"
/// );
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "Bounds")
)]
pub struct VniRange {
    first: Vni,
    last: Vni,
}

impl VniRange {
    /// The block of `size` VNIs that starts at `first`.
    ///
    /// # Errors
    ///
    /// The size is not a power of two, or `first` is not a multiple of it.
    pub fn new(first: Vni, size: u16) -> Result<Self, InvalidValue> {
        let (first, size) = (first.get().into(), size.into());
        check(first, size)?;
        Self::from_bounds(first, first + size - 1)
    }

    /// The block from `first` to `last`, inclusive.
    ///
    /// # Errors
    ///
    /// A bound is not a VNI, `last` is smaller than `first`, or the block's size is not a power of
    /// two or its start not a multiple of that.
    pub fn from_bounds(first: u64, last: u64) -> Result<Self, InvalidValue> {
        let range = Self { first: Vni::try_from(first)?, last: Vni::try_from(last)? };
        if last < first {
            return Err(InvalidValue::RangeReversed { first, last });
        }
        check(first, last - first + 1).map(|()| range)
    }

    /// The lowest VNI.
    #[must_use]
    pub const fn first(self) -> Vni {
        self.first
    }

    /// The highest VNI.
    #[must_use]
    pub const fn last(self) -> Vni {
        self.last
    }

    /// Returns the number of VNIs, at most 32768.
    #[must_use]
    pub const fn size(self) -> u16 {
        self.last.get() - self.first.get() + 1
    }

    /// Returns whether the VNI is in the block.
    #[must_use]
    pub fn contains(self, vni: Vni) -> bool {
        (self.first..=self.last).contains(&vni)
    }

    /// Returns whether the blocks share a VNI.
    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// All VNIs of the block, in ascending order.
    pub fn iter(self) -> impl Iterator<Item = Vni> {
        (self.first.get()..=self.last.get()).filter_map(|number| Vni::new(number).ok())
    }
}

impl From<Vni> for VniRange {
    /// The block of this single VNI.
    fn from(vni: Vni) -> Self {
        Self { first: vni, last: vni }
    }
}

impl fmt::Display for VniRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}-{}", self.first, self.last))
    }
}

/// Checks the place of a block.
fn check(first: u64, size: u64) -> Result<(), InvalidValue> {
    if !size.is_power_of_two() {
        return Err(InvalidValue::RangeSize { first, size });
    }
    if !first.is_multiple_of(size) {
        return Err(InvalidValue::RangeStart { first, size });
    }
    Ok(())
}

impl FromStr for VniRange {
    type Err = InvalidValue;

    /// Parses `first-last`.
    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let (first, last) =
            text.split_once('-').ok_or_else(|| InvalidValue::text(ValueKind::VniRange, text))?;
        let (first, last) = (first.parse::<Vni>()?, last.parse::<Vni>()?);
        Self::from_bounds(first.get().into(), last.get().into())
    }
}

/// The shape of a range in JSON.
#[cfg(feature = "serde")]
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Bounds {
    first: u64,
    last: u64,
}

#[cfg(feature = "serde")]
impl TryFrom<Bounds> for VniRange {
    type Error = InvalidValue;

    fn try_from(bounds: Bounds) -> Result<Self, InvalidValue> {
        Self::from_bounds(bounds.first, bounds.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vni(number: u16) -> Vni {
        Vni::new(number).unwrap()
    }

    #[test]
    fn ranges_are_aligned_powers_of_two() {
        assert_eq!(VniRange::new(vni(32768), 32768).unwrap().last(), vni(65535));
        assert_eq!(VniRange::new(vni(7), 1).unwrap().to_string(), "7-7");
        assert_eq!("64-127".parse(), VniRange::new(vni(64), 64));
        let block = VniRange::new(vni(8), 8).unwrap();
        assert_eq!((block.size(), block.iter().count()), (8, 8));
        assert!(block.contains(vni(15)) && !block.contains(vni(16)));
        assert!(block.overlaps("15-15".parse().unwrap()));
        assert!(!block.overlaps("16-31".parse().unwrap()));
    }

    #[test]
    fn bad_ranges_say_what_is_right() {
        for (text, message) in [
            ("5", "invalid VNI range '5': expected two VNIs, such as 1024-1039"),
            ("0-7", "invalid VNI '0': expected 1 to 65535"),
            ("8-70000", "invalid VNI '70000': expected 1 to 65535"),
            ("9-8", "VNI range 9-8: expected the lower VNI first"),
            (
                "8-10",
                "VNI range of 3 from 8: expected a size that is a power of two, such as 2 or 4",
            ),
            (
                "1-65535",
                "VNI range of 65535 from 1: expected a size that is a power of two, at most 32768",
            ),
            (
                "3-4",
                "VNI range of 2 from 3: expected a start that is a multiple of 2, such as 2 or 4",
            ),
            (
                "1-32768",
                "VNI range of 32768 from 1: expected a start that is a multiple of 32768, \
                 such as 32768",
            ),
            ("65528-65535", ""),
        ] {
            match text.parse::<VniRange>() {
                Ok(range) => assert_eq!((range.to_string().as_str(), message), (text, "")),
                Err(error) => assert_eq!(error.to_string(), message),
            }
        }
        assert_eq!(
            VniRange::new(vni(40000), 32768).unwrap_err().to_string(),
            "VNI range of 32768 from 40000: expected a start that is a multiple of 32768, \
             such as 32768"
        );
        assert_eq!(
            VniRange::new(vni(5), 0).unwrap_err().to_string(),
            "VNI range of 0 from 5: expected a size that is a power of two, at most 32768"
        );
    }
}
