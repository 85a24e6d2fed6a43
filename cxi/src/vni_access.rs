//! VNIs to which a service gives access.

use std::fmt;

use cxi_ioctl::abi::service::SVC_MAX_VNIS;

use crate::{InvalidValue, Vni, VniRange};

/// Up to four different VNIs, in the given order.
///
/// ```
/// use cxi::{Vni, VniList};
///
/// let vnis = VniList::new([Vni::new(1024)?, Vni::new(77)?])?;
/// assert_eq!(vnis.to_string(), "1024,77");
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(into = "Vec<Vni>", try_from = "Vec<Vni>")
)]
pub struct VniList {
    slots: [Option<Vni>; SVC_MAX_VNIS],
}

impl VniList {
    /// The most VNIs that a service can list.
    pub const MAX: usize = SVC_MAX_VNIS;

    /// Creates the list of these VNIs.
    ///
    /// # Errors
    ///
    /// More than four, or a duplicate.
    pub fn new(vnis: impl IntoIterator<Item = Vni>) -> Result<Self, InvalidValue> {
        let vnis: Vec<Vni> = vnis.into_iter().collect();
        if vnis.len() > Self::MAX {
            return Err(InvalidValue::TooManyVnis { count: vnis.len() });
        }
        let twice = vnis
            .iter()
            .enumerate()
            .find(|(index, vni)| vnis.iter().take(*index).any(|other| other == *vni));
        if let Some((_, vni)) = twice {
            return Err(InvalidValue::VniTwice { vni: *vni });
        }
        Ok(Self::from_kernel(vnis))
    }
}

slots!(VniList of Vni, separated by ",");

impl fmt::Debug for VniList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(Vni::get)).finish()
    }
}

/// VNIs to which a service gives access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
pub enum VniAccess {
    /// These VNIs (`restricted_vnis` with a list).
    List(VniList),
    /// A block of VNIs (`restricted_vnis` off; SVC_SET_VNI_RANGE). Needs SHS 13.1 or later.
    Range(VniRange),
    /// No list (`restricted_vnis` off). Up to SHS 12.0 every VNI; on 13.0 none of its own; from
    /// 13.1 on such a service stays disabled until a range is set.
    Unrestricted,
}

impl VniAccess {
    /// The VNIs that are named, in order; none where they are not restricted.
    pub fn iter(&self) -> impl Iterator<Item = Vni> + '_ {
        let (list, range) = match self {
            Self::List(list) => (Some(list), None),
            Self::Range(range) => (None, Some(range)),
            Self::Unrestricted => (None, None),
        };
        let listed = list.into_iter().flat_map(VniList::iter);
        listed.chain(range.into_iter().flat_map(|range| range.iter()))
    }

    /// Returns whether the VNI is named.
    #[must_use]
    pub fn contains(&self, vni: Vni) -> bool {
        match self {
            Self::List(list) => list.contains(vni),
            Self::Range(range) => range.contains(vni),
            Self::Unrestricted => false,
        }
    }

    /// Returns whether both name the same VNI.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Range(range), Self::Range(other)) => range.overlaps(*other),
            (Self::Range(_), named) => named.iter().any(|vni| self.contains(vni)),
            (named, other) => named.iter().any(|vni| other.contains(vni)),
        }
    }
}

impl fmt::Display for VniAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::List(list) => list.fmt(f),
            Self::Range(range) => range.fmt(f),
            Self::Unrestricted => f.pad("any"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(numbers: &[u16]) -> Result<VniList, InvalidValue> {
        VniList::new(numbers.iter().map(|number| Vni::new(*number).unwrap()))
    }

    #[test]
    fn at_most_four_and_none_twice() {
        let four = list(&[4, 3, 2, 1]).unwrap();
        assert_eq!((four.len(), four.to_string().as_str()), (4, "4,3,2,1"));
        assert!(list(&[]).unwrap().is_empty());
        assert_eq!(
            list(&[1, 2, 3, 4, 5]).unwrap_err().to_string(),
            "5 VNIs: a service can list at most 4; more need a VNI range"
        );
        assert_eq!(
            list(&[1, 2, 1]).unwrap_err().to_string(),
            "VNI 1 is listed twice: name each VNI once"
        );
    }
}
