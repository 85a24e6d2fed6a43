//! Virtual network identifiers.

use std::num::NonZeroU16;

use crate::{InvalidValue, ValueKind};

/// A virtual network identifier (VNI): 1 to 65535.
///
/// Only processes on the same VNI can communicate. VNIs 1 and 10 belong to the default service,
/// unless the driver is configured otherwise.
///
/// ```
/// use cxi::Vni;
///
/// assert_eq!(Vni::new(1024)?.get(), 1024);
/// assert_eq!(
///     Vni::try_from(65536_u32).unwrap_err().to_string(),
///     "invalid VNI 65536: expected 1 to 65535"
/// );
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(into = "u16", try_from = "u64")
)]
pub struct Vni(NonZeroU16);

impl Vni {
    /// The VNI with this number.
    ///
    /// # Errors
    ///
    /// 0 is not a VNI.
    pub const fn new(number: u16) -> Result<Self, InvalidValue> {
        match NonZeroU16::new(number) {
            Some(number) => Ok(Self(number)),
            None => Err(InvalidValue::number(ValueKind::Vni, 0)),
        }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0.get()
    }
}

non_zero!(Vni, Vni, NonZeroU16, u16);

impl From<Vni> for u32 {
    fn from(vni: Vni) -> Self {
        vni.get().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_integer_converts() {
        let vni = Vni::new(1024).unwrap();
        assert_eq!(Vni::try_from(1024), Ok(vni));
        assert_eq!(Vni::try_from(1024_u16), Ok(vni));
        assert_eq!(Vni::try_from(1024_u32), Ok(vni));
        assert_eq!(Vni::try_from(1024_u64), Ok(vni));
        assert!(Vni::try_from(u32::MAX).is_err() && Vni::try_from(0_u16).is_err());
        for bad in [-1_i32, 0, 65536] {
            assert_eq!(
                Vni::try_from(bad).unwrap_err().to_string(),
                format!("invalid VNI {bad}: expected 1 to 65535")
            );
        }
    }

    #[test]
    fn vnis_are_one_to_65535() {
        assert_eq!("65535".parse(), Vni::new(65535));
        for bad in ["0", "65536", "-1", "", "0x10", " 5"] {
            assert_eq!(
                bad.parse::<Vni>().unwrap_err().to_string(),
                format!("invalid VNI '{bad}': expected 1 to 65535")
            );
        }
    }
}
