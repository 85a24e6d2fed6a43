//! Faults of a specification.

use super::{ServiceSetting, SettingForm, SettingValue};
use crate::{InvalidValue, Resource, VniRange};

fn expected(setting: ServiceSetting) -> &'static str {
    match setting.form() {
        SettingForm::Switch => "on or off",
        SettingForm::Number => "a number from 0 to 255",
    }
}

/// Reason for which a specification is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidSpec {
    /// No VNIs are named.
    #[error("no VNIs: name VNIs or a range, or ask for unrestricted VNIs")]
    NoVnis,
    /// VNIs were named in two ways.
    #[error("both {range} as VNI range and VNIs are named: a service has one or the other")]
    ListAndRange {
        /// The range.
        range: VniRange,
    },
    /// VNIs or members that a service cannot have, or a number of LNIs that cannot share an RGID.
    #[error(transparent)]
    Value(#[from] InvalidValue),
    /// A restriction to no traffic class.
    #[error("no traffic class: name at least one, or leave them unrestricted")]
    NoTrafficClass,
    /// Bits that are not traffic classes.
    #[error("traffic classes {bits:#x}: expected bits below 0x20")]
    TrafficClassBits {
        /// The set, as bits.
        bits: u8,
    },
    /// An impossible limit, such as that of a service for which the driver answered nonsense.
    #[error("{resource}: {reason}")]
    Limit {
        /// The resource.
        resource: Resource,
        /// The fault of the limit.
        reason: InvalidValue,
    },
    /// A limit exceeds what the device has.
    #[error("{resource}: the requested maximum, {max}, exceeds the NIC's total, {total}")]
    LimitAboveTotal {
        /// The resource.
        resource: Resource,
        /// The requested maximum.
        max: u16,
        /// The number that the device has.
        total: u16,
    },
    /// There is no such counter pool.
    #[error("counter pool {0}: expected 0 to 3")]
    CounterPool(u8),
    /// A parent service whose maximum of a resource is not what it reserves.
    #[error(
        "{resource}: {reserved} reserved but at most {max}: a parent service reserves exactly its maximum"
    )]
    ParentLimit {
        /// The resource.
        resource: Resource,
        /// Amount that is reserved.
        reserved: u16,
        /// The maximum.
        max: u16,
    },
    /// A value that a setting does not have.
    #[error("{}: {value}: expected {}", setting.name(), expected(*setting))]
    Setting {
        /// The setting.
        setting: ServiceSetting,
        /// The value.
        value: SettingValue,
    },
    /// Parts of a specification that contradict each other.
    #[error(transparent)]
    Contradiction(#[from] Contradiction),
}

/// Parts of a specification that contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Contradiction {
    /// VNIs that are named, and also unrestricted.
    #[error("VNIs are named and unrestricted: a service has one or the other")]
    NamedAndUnrestricted,
    /// Exclusive VNIs where none are named.
    #[error("exclusive VNIs are requested, but none are named")]
    NoExclusiveVnis,
    /// Exclusive CPs without a VNI range.
    #[error("exclusive CPs are requested, which only a service with a VNI range has")]
    ExclusiveCpsWithoutRange,
    /// Members of a parent service.
    #[error(
        "members are named, which a parent service cannot have: the services below it have them"
    )]
    MembersOfParent,
    /// Exclusive CPs of a parent service.
    #[error("exclusive CPs are requested, which a parent service cannot have")]
    ExclusiveCpsOfParent,
    /// A list in a template, whose switch is off.
    #[error("{} are {}, but {} is off", .0.list(), .0.verb(), .0.switch())]
    ListSwitchedOff(Restriction),
    /// A switch in a template that is on, without its list.
    #[error("{} is on, but no {} are {}", .0.switch(), .0.list(), .0.verb())]
    NoList(Restriction),
}

/// Restriction of a service that has a switch and a list in a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Restriction {
    /// Members.
    Members,
    /// VNIs.
    Vnis,
    /// Traffic classes.
    TrafficClasses,
    /// Limits of resources.
    Limits,
}

impl Restriction {
    const fn switch(self) -> &'static str {
        match self {
            Self::Members => "restricted_members",
            Self::Vnis => "restricted_vnis",
            Self::TrafficClasses => "restricted_tcs",
            Self::Limits => "resource_limits",
        }
    }

    const fn list(self) -> &'static str {
        match self {
            Self::Members => "members",
            Self::Vnis => "vnis",
            Self::TrafficClasses => "tcs",
            Self::Limits => "limits",
        }
    }

    const fn verb(self) -> &'static str {
        match self {
            Self::Limits => "given",
            Self::Members | Self::Vnis | Self::TrafficClasses => "named",
        }
    }
}
