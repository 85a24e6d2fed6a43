//! Faults of a specification.

use super::{ServiceSetting, SettingForm, SettingValue};
use crate::{InvalidLimit, InvalidLnisPerRgid, InvalidMembers, InvalidVniList, Resource, VniRange};

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
    /// VNIs that a service cannot list.
    #[error(transparent)]
    Vnis(#[from] InvalidVniList),
    /// Members that a service cannot have.
    #[error(transparent)]
    Members(#[from] InvalidMembers),
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
        reason: InvalidLimit,
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
    /// A number of LNIs that cannot share an RGID.
    #[error(transparent)]
    LnisPerRgid(#[from] InvalidLnisPerRgid),
    /// Parts of a specification that contradict each other.
    #[error("{0}")]
    Contradiction(&'static str),
}
