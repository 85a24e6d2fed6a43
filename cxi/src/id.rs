//! Identifiers of NICs and services.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use crate::{InvalidValue, ValueKind};

/// A NIC, identified by its number: `cxi0`, `cxi1` and so on.
///
/// Ids are ordered by number, so `cxi2` comes before `cxi10`. A node's numbers may have gaps.
///
/// ```
/// use cxi::DeviceId;
///
/// let id: DeviceId = "cxi10".parse()?;
/// assert_eq!(id.number(), 10);
/// assert!(DeviceId::new(2) < id);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(into = "String", try_from = "String")
)]
pub struct DeviceId(u32);

impl DeviceId {
    /// The NIC `cxi<number>`.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The number after `cxi`.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("cxi{}", self.0))
    }
}

impl FromStr for DeviceId {
    type Err = InvalidValue;

    /// Parses `cxi` and a decimal number without sign or leading zeros.
    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        text.strip_prefix("cxi")
            .filter(|digits| *digits == "0" || !digits.starts_with('0'))
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
            .and_then(|digits| digits.parse().ok())
            .map(Self)
            .ok_or_else(|| InvalidValue::text(ValueKind::Device, text))
    }
}

impl From<u32> for DeviceId {
    fn from(number: u32) -> Self {
        Self(number)
    }
}

impl From<DeviceId> for u32 {
    fn from(id: DeviceId) -> Self {
        id.0
    }
}

/// A service of one NIC. Plain data: the service outlives the process that made it.
///
/// Ids are reused after a service is destroyed: with its [`DeviceId`], an id identifies a service
/// only as long as that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(into = "u32", try_from = "u64")
)]
pub struct ServiceId(NonZeroU32);

impl ServiceId {
    /// The default service, which every NIC has.
    pub const DEFAULT: Self = Self(NonZeroU32::MIN);

    /// The service with this number.
    ///
    /// # Errors
    ///
    /// 0 is not a service.
    pub const fn new(number: u32) -> Result<Self, InvalidValue> {
        match NonZeroU32::new(number) {
            Some(number) => Ok(Self(number)),
            None => Err(InvalidValue::number(ValueKind::Service, 0)),
        }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0.get()
    }

    /// Returns whether this is the default service, which cannot be destroyed.
    #[must_use]
    pub const fn is_default(self) -> bool {
        self.get() == Self::DEFAULT.get()
    }
}

non_zero!(ServiceId, Service, NonZeroU32, u32);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_names_are_strict() {
        for good in ["cxi0", "cxi7", "cxi10", "cxi4294967295"] {
            let id: DeviceId = good.parse().unwrap();
            assert_eq!(id.to_string(), good);
        }
        for bad in ["", "cxi", "cxi01", "cxi+1", "cxi-1", "CXI0", "0", "cxi 1", "cxi4294967296"] {
            let error = bad.parse::<DeviceId>().unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("invalid CXI device '{bad}': expected 'cxi' and a number, such as cxi0")
            );
        }
        assert_eq!(format!("{:>6}|", DeviceId::new(1)), "  cxi1|");
    }

    #[test]
    fn service_ids_start_at_one() {
        assert!(ServiceId::new(1).unwrap().is_default());
        assert_eq!(
            ServiceId::new(0).unwrap_err().to_string(),
            "invalid service ID 0: expected 1 to 4294967295"
        );
        assert_eq!(
            ServiceId::try_from(1_u64 << 32).unwrap_err().to_string(),
            "invalid service ID 4294967296: expected 1 to 4294967295"
        );
        assert_eq!(
            "x".parse::<ServiceId>().unwrap_err().to_string(),
            "invalid service ID 'x': expected 1 to 4294967295"
        );
        assert_eq!("17".parse(), ServiceId::new(17));
    }
}
