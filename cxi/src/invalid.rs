//! Values that are not what they are meant to be.

use std::borrow::Cow;
use std::fmt;

use cxi_ioctl::InvalidPciAddress;
use cxi_ioctl::abi::service::RSRC_NAMES;

use crate::{Member, Vni};

/// Kind of a plain value: one that is a number or a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ValueKind {
    /// A [`DeviceId`](crate::DeviceId).
    Device,
    /// A [`ServiceId`](crate::ServiceId).
    Service,
    /// A [`Vni`].
    Vni,
    /// A [`VniRange`](crate::VniRange), as text.
    VniRange,
    /// A [`Resource`](crate::Resource).
    Resource,
    /// A [`TrafficClass`](crate::TrafficClass).
    TrafficClass,
    /// An [`LnisPerRgid`](crate::LnisPerRgid).
    LnisPerRgid,
    /// A [`Pid`](crate::lni::Pid).
    Pid,
}

impl ValueKind {
    /// The name, such as `VNI`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Device => "CXI device",
            Self::Service => "service ID",
            Self::Vni => "VNI",
            Self::VniRange => "VNI range",
            Self::Resource => "resource",
            Self::TrafficClass => "traffic class",
            Self::LnisPerRgid => "LNIs per RGID",
            Self::Pid => "PID",
        }
    }

    /// The values that are valid, in words: `1 to 65535`.
    #[must_use]
    pub fn expected(self) -> Cow<'static, str> {
        match self {
            Self::Device => "'cxi' and a number, such as cxi0".into(),
            Self::Service => "1 to 4294967295".into(),
            Self::Vni => "1 to 65535".into(),
            Self::VniRange => "two VNIs, such as 1024-1039".into(),
            Self::Resource => format!("one of {}", RSRC_NAMES.join(", ")).into(),
            Self::TrafficClass => {
                "dedicated-access, low-latency, bulk-data, best-effort or eth".into()
            }
            Self::LnisPerRgid => "0 to 8".into(),
            Self::Pid => "0 to 510".into(),
        }
    }
}

impl fmt::Display for ValueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A value that is not a VNI, a limit, a list of members, or whatever else it is meant to be.
///
/// ```
/// use cxi::{InvalidValue, ValueKind, Vni};
///
/// let error = Vni::try_from(65536_u32).unwrap_err();
/// assert_eq!(error.to_string(), "invalid VNI 65536: expected 1 to 65535");
/// assert_eq!(error, InvalidValue::Number { what: ValueKind::Vni, number: 65536 });
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidValue {
    /// A number that is out of range.
    #[error("invalid {what} {number}: expected {}", what.expected())]
    Number {
        /// Kind of the value.
        what: ValueKind,
        /// The number.
        number: i128,
    },
    /// A text that does not have the form.
    #[error("invalid {what} '{text}': expected {}", what.expected())]
    Text {
        /// Kind of the value.
        what: ValueKind,
        /// The text.
        text: String,
    },
    /// A text that is not a PCI address.
    #[error(transparent)]
    PciAddress(#[from] InvalidPciAddress),
    /// A limit that reserves more than it allows.
    #[error(
        "{reserved} reserved but at most {max}: expected a maximum no lower than the reservation"
    )]
    Limit {
        /// Amount that is reserved.
        reserved: u16,
        /// The maximum.
        max: u16,
    },
    /// More than the four VNIs that a service can list.
    #[error("{count} VNIs: a service can list at most 4; more need a VNI range")]
    TooManyVnis {
        /// Number of VNIs.
        count: usize,
    },
    /// A VNI is listed twice.
    #[error("VNI {vni} is listed twice: name each VNI once")]
    VniTwice {
        /// The VNI.
        vni: Vni,
    },
    /// The last VNI of a range is smaller than the first.
    #[error("VNI range {first}-{last}: expected the lower VNI first")]
    RangeReversed {
        /// First VNI.
        first: u64,
        /// Last VNI.
        last: u64,
    },
    /// The size of a range is not a power of two.
    #[error("VNI range of {size} from {first}: expected a size that is a power of two{}", near(*.size))]
    RangeSize {
        /// First VNI.
        first: u64,
        /// Number of VNIs.
        size: u64,
    },
    /// A range does not start at a multiple of its size.
    #[error(
        "VNI range of {size} from {first}: expected a start that is a multiple of {size}{}",
        starts(*.first, *.size)
    )]
    RangeStart {
        /// First VNI.
        first: u64,
        /// Number of VNIs.
        size: u64,
    },
    /// More than the two members that a service can name.
    #[error("{count} members: a service can name at most 2")]
    TooManyMembers {
        /// Number of members.
        count: usize,
    },
    /// A member is named twice.
    #[error("{member} is named twice: name each member once")]
    MemberTwice {
        /// The member.
        member: Member,
    },
    /// A member whose ID is all ones, which means "no ID" to the kernel.
    #[error("invalid member {member}: an ID of all ones means no ID")]
    MemberOfAllOnes {
        /// The member.
        member: Member,
    },
    /// A network namespace with another member.
    #[error("a network namespace must be the only member of a service")]
    NetNsNotAlone,
    /// A kind of member that this library does not know.
    #[error("unknown kind of member {kind}: expected a uid, a gid or a network namespace")]
    MemberKind {
        /// Number of the kind.
        kind: u32,
    },
}

impl InvalidValue {
    /// A number that does not fit.
    pub(crate) const fn number(what: ValueKind, number: i128) -> Self {
        Self::Number { what, number }
    }

    /// A text that does not fit.
    pub(crate) fn text(what: ValueKind, text: &str) -> Self {
        Self::Text { what, text: text.to_owned() }
    }
}

fn near(size: u64) -> String {
    match size.checked_next_power_of_two() {
        Some(above) if size > 0 && above <= 1 << 15 => {
            format!(", such as {} or {above}", above / 2)
        }
        _ => ", at most 32768".to_owned(),
    }
}

fn starts(first: u64, size: u64) -> String {
    let below = first - first % size;
    let above = below + size;
    match (below > 0, above + size <= 1 << 16) {
        (true, true) => format!(", such as {below} or {above}"),
        (true, false) => format!(", such as {below}"),
        (false, true) => format!(", such as {above}"),
        (false, false) => String::new(),
    }
}
