//! Limits on a service's use of a NIC.

use std::fmt;

use cxi_ioctl::abi::service::{Limits as RawLimit, RSRC_COUNT, RsrcLimits};

use crate::{InvalidValue, ResourceMap, ValueKind};

/// Limit of a service on one resource: the number reserved for it, and the number that it may use.
///
/// ```
/// use cxi::Limit;
///
/// let limit = Limit::new(16, 64)?;
/// assert_eq!((limit.reserved(), limit.max()), (16, 64));
/// assert_eq!(
///     Limit::new(64, 16).unwrap_err().to_string(),
///     "64 reserved but at most 16: expected a maximum no lower than the reservation"
/// );
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "RawJson", into = "RawJson")
)]
pub struct Limit {
    reserved: u16,
    max: u16,
}

impl Limit {
    /// Nothing at all: allocating the resource fails with EBADR.
    pub const NONE: Self = Self { reserved: 0, max: 0 };

    /// `reserved` for the service alone, and at most `max` in use.
    ///
    /// # Errors
    ///
    /// More are reserved than the service may have.
    pub const fn new(reserved: u16, max: u16) -> Result<Self, InvalidValue> {
        if reserved > max {
            return Err(InvalidValue::Limit { reserved, max });
        }
        Ok(Self { reserved, max })
    }

    /// At most `max`, none reserved.
    #[must_use]
    pub const fn at_most(max: u16) -> Self {
        Self { reserved: 0, max }
    }

    /// `count` reserved, and no more than that.
    #[must_use]
    pub const fn exactly(count: u16) -> Self {
        Self { reserved: count, max: count }
    }

    /// Returns the number reserved for the service.
    #[must_use]
    pub const fn reserved(self) -> u16 {
        self.reserved
    }

    /// Returns the number that the service may have at most.
    #[must_use]
    pub const fn max(self) -> u16 {
        self.max
    }

    pub(crate) const fn from_kernel(RawLimit { max, res }: RawLimit) -> Self {
        Self { reserved: res, max }
    }

    pub(crate) const fn to_kernel(self) -> RawLimit {
        RawLimit { max: self.max, res: self.reserved }
    }
}

/// Shows the reservation and the maximum, such as `2/4`.
impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}/{}", self.reserved, self.max))
    }
}

/// A limit for each kind of resource.
///
/// A service cannot have a resource whose limit is [`Limit::NONE`] at all. TLEs come in pools: if
/// any are requested, the driver reserves at least 8, and the service gets no more than are
/// reserved.
pub type Limits = ResourceMap<Limit>;

impl Limits {
    /// Nothing of any resource: the service can only have what is added with [`with`](Self::with).
    /// To receive messages, a process needs at least an AC, an EQ and a PTE in addition to its queues.
    ///
    /// ```
    /// use cxi::{Limit, Limits, Resource};
    ///
    /// let limits = Limits::none()
    ///     .with(Resource::Acs, Limit::at_most(2))
    ///     .with(Resource::Eqs, Limit::new(4, 8)?);
    /// assert_eq!(limits[Resource::Txqs], Limit::NONE);
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    pub(crate) fn from_kernel(limits: &RsrcLimits) -> Self {
        Self::from(limits.types.map(Limit::from_kernel))
    }

    pub(crate) fn to_kernel(self) -> RsrcLimits {
        let mut types = [RawLimit { max: 0, res: 0 }; RSRC_COUNT];
        for (slot, (_, limit)) in types.iter_mut().zip(self.iter()) {
            *slot = limit.to_kernel();
        }
        RsrcLimits { types }
    }
}

/// Number of LNIs of a service that may share one RGID: 0 to 8.
///
/// With 0 or 1 every LNI has its own RGID, of which a NIC has 255. LNIs that share an RGID
/// also share its 8 logical address contexts and 16 communication profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(into = "u32", try_from = "u32")
)]
pub struct LnisPerRgid(u32);

impl LnisPerRgid {
    /// The most LNIs that may share an RGID.
    pub const MAX: u32 = 8;

    /// Creates the number.
    ///
    /// # Errors
    ///
    /// More than 8.
    pub const fn new(count: u32) -> Result<Self, InvalidValue> {
        if count > Self::MAX {
            return Err(InvalidValue::number(ValueKind::LnisPerRgid, count as i128));
        }
        Ok(Self(count))
    }

    /// The number. A driver may answer with more than it accepts.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    pub(crate) const fn from_kernel(count: u32) -> Self {
        Self(count)
    }
}

plain_number!(LnisPerRgid, u32);

checked_integers!(LnisPerRgid, |count| {
    let valid = u32::try_from(count).ok().filter(|count| *count <= LnisPerRgid::MAX);
    valid.map(LnisPerRgid).ok_or(InvalidValue::number(ValueKind::LnisPerRgid, count))
});

/// The shape of a limit in JSON.
#[cfg(feature = "serde")]
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RawJson {
    max: u16,
    #[serde(default)]
    res: u16,
}

#[cfg(feature = "serde")]
impl TryFrom<RawJson> for Limit {
    type Error = InvalidValue;

    fn try_from(limit: RawJson) -> Result<Self, InvalidValue> {
        Self::new(limit.res, limit.max)
    }
}

#[cfg(feature = "serde")]
impl From<Limit> for RawJson {
    fn from(limit: Limit) -> Self {
        Self { max: limit.max, res: limit.reserved }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Resource;

    #[test]
    fn limits_keep_their_place() {
        let mut limits = Limits::default();
        limits[Resource::Tles] = Limit::exactly(8);
        let raw = limits.to_kernel();
        assert_eq!((raw.types[6].max, raw.types[6].res), (8, 8));
        assert_eq!(Limits::from_kernel(&raw), limits);
    }

    #[test]
    fn limits_are_written_as_reserved_and_maximum() {
        assert_eq!(Limit::new(4, 16).unwrap().to_string(), "4/16");
        assert_eq!(format!("{:>6}", Limit::at_most(9)), "   0/9");
        let limits = Limits::none()
            .with(Resource::Eqs, Limit::at_most(4))
            .with(Resource::Txqs, Limit::new(2, 4).unwrap());
        assert_eq!(limits.to_string(), "TXQs 2/4, EQs 0/4");
        assert_eq!(Limits::none().to_string(), "nothing");
        assert_eq!(
            format!("{limits:?}"),
            "{TXQs: Limit { reserved: 2, max: 4 }, EQs: Limit { reserved: 0, max: 4 }}"
        );
    }

    #[test]
    fn more_than_eight_lnis_do_not_share() {
        assert_eq!(LnisPerRgid::new(8).map(LnisPerRgid::get), Ok(8));
        let eight = LnisPerRgid::new(8).unwrap();
        assert_eq!((eight.to_string().as_str(), u32::from(eight)), ("8", 8));
        assert_eq!(
            LnisPerRgid::new(9).unwrap_err().to_string(),
            "invalid LNIs per RGID 9: expected 0 to 8"
        );
    }
}
