//! Traffic classes: how the network treats a message.

use std::fmt;
use std::str::FromStr;

use crate::{InvalidValue, ValueKind};

/// A traffic class of the fabric.
///
/// Printed as `bulk-data`. Names are parsed in any case, with or without the prefix `TC_`, and with
/// `_`, `-` or a blank between words.
///
/// ```
/// use cxi::TrafficClass;
///
/// assert_eq!("tc_low latency".parse::<TrafficClass>()?, TrafficClass::LowLatency);
/// assert_eq!(TrafficClass::BulkData.to_string(), "bulk-data");
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "String", rename_all(serialize = "SCREAMING_SNAKE_CASE"))
)]
#[non_exhaustive]
pub enum TrafficClass {
    /// Dedicated bandwidth.
    DedicatedAccess,
    /// Short messages with priority.
    LowLatency,
    /// Large transfers.
    BulkData,
    /// Everything else.
    BestEffort,
    /// Ethernet frames; not for RDMA.
    #[cfg_attr(feature = "serde", serde(rename(serialize = "ETH")))]
    Ethernet,
}

impl TrafficClass {
    /// All classes, by number.
    pub const ALL: [Self; 5] =
        [Self::DedicatedAccess, Self::LowLatency, Self::BulkData, Self::BestEffort, Self::Ethernet];

    /// The name in HPE's YAML, such as `LOW_LATENCY`, by which a class is serialized.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DedicatedAccess => "DEDICATED_ACCESS",
            Self::LowLatency => "LOW_LATENCY",
            Self::BulkData => "BULK_DATA",
            Self::BestEffort => "BEST_EFFORT",
            Self::Ethernet => "ETH",
        }
    }

    /// The number in the kernel interface.
    #[must_use]
    pub const fn number(self) -> u32 {
        self as u32
    }
}

impl fmt::Display for TrafficClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name().to_ascii_lowercase().replace('_', "-"))
    }
}

impl FromStr for TrafficClass {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let name = text.to_ascii_uppercase().replace([' ', '-'], "_");
        let name = name.strip_prefix("TC_").unwrap_or(&name);
        Self::ALL
            .into_iter()
            .find(|class| class.name() == name)
            .ok_or_else(|| InvalidValue::text(ValueKind::TrafficClass, text))
    }
}

bitflags::bitflags! {
    /// A set of traffic classes. Bit `n` is class number `n`, as in `SLINGSHOT_TCS`.
    ///
    /// Printed as `low-latency,best-effort`; serialized as a list of names.
    ///
    /// ```
    /// use cxi::{TrafficClass, TrafficClasses};
    ///
    /// let classes = TrafficClasses::LOW_LATENCY | TrafficClasses::BEST_EFFORT;
    /// assert!(classes.contains(TrafficClass::BestEffort.into()));
    /// assert_eq!(classes.bits(), 0xa);
    /// ```
    #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[cfg_attr(
        feature = "serde",
        derive(serde::Serialize, serde::Deserialize),
        serde(into = "Vec<TrafficClass>", from = "Vec<TrafficClass>")
    )]
    pub struct TrafficClasses: u8 {
        /// [`TrafficClass::DedicatedAccess`]
        const DEDICATED_ACCESS = 1 << 0;
        /// [`TrafficClass::LowLatency`]
        const LOW_LATENCY = 1 << 1;
        /// [`TrafficClass::BulkData`]
        const BULK_DATA = 1 << 2;
        /// [`TrafficClass::BestEffort`]
        const BEST_EFFORT = 1 << 3;
        /// [`TrafficClass::Ethernet`]
        const ETHERNET = 1 << 4;
    }
}

impl TrafficClasses {
    /// The classes of the set, by number.
    pub fn classes(self) -> impl Iterator<Item = TrafficClass> {
        TrafficClass::ALL.into_iter().filter(move |class| self.contains((*class).into()))
    }
}

impl From<TrafficClass> for TrafficClasses {
    fn from(class: TrafficClass) -> Self {
        Self::from_bits_retain(1 << class.number())
    }
}

impl FromIterator<TrafficClass> for TrafficClasses {
    fn from_iter<I: IntoIterator<Item = TrafficClass>>(classes: I) -> Self {
        classes.into_iter().fold(Self::empty(), |set, class| set | class.into())
    }
}

impl From<Vec<TrafficClass>> for TrafficClasses {
    fn from(classes: Vec<TrafficClass>) -> Self {
        classes.into_iter().collect()
    }
}

impl From<TrafficClasses> for Vec<TrafficClass> {
    fn from(classes: TrafficClasses) -> Self {
        classes.classes().collect()
    }
}

impl fmt::Display for TrafficClasses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.classes().map(|class| class.to_string()).collect();
        f.pad(&names.join(","))
    }
}

impl fmt::Debug for TrafficClasses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TrafficClasses({self})")
    }
}

impl FromStr for TrafficClasses {
    type Err = InvalidValue;

    /// Parses class names separated by commas.
    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        text.split(',').map(|name| name.trim().parse::<TrafficClass>()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_leniently_and_written_strictly() {
        for class in TrafficClass::ALL {
            assert_eq!(class.name().parse(), Ok(class));
            assert_eq!(format!("tc_{}", class.name().to_lowercase()).parse(), Ok(class));
        }
        assert_eq!("bulk data".parse(), Ok(TrafficClass::BulkData));
        assert_eq!(
            "FAST".parse::<TrafficClass>().unwrap_err().to_string(),
            "invalid traffic class 'FAST': expected dedicated-access, low-latency, bulk-data, \
             best-effort or eth"
        );
        let set: TrafficClasses = "low_latency, BEST-EFFORT".parse().unwrap();
        assert_eq!(set.to_string(), "low-latency,best-effort");
        assert_eq!(set.bits(), 0xa);
        let twice = [TrafficClass::BulkData; 2];
        let set: TrafficClasses = twice.into_iter().collect();
        assert_eq!(set, TrafficClasses::BULK_DATA);
        assert_eq!(TrafficClass::BulkData.to_string(), "bulk-data");
        assert!("LOW_LATENCY,".parse::<TrafficClasses>().is_err());
    }
}
