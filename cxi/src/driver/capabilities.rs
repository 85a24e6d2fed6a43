//! What a driver can do.

use cxi_ioctl::DriverRelease;

bitflags::bitflags! {
    /// What a driver can do for certain.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Capabilities: u32 {
        /// Services are enabled and disabled without writing them over (SVC_ENABLE). Without it
        /// SVC_UPDATE does it.
        const SERVICE_ENABLE = 1 << 0;
        /// Services with a block of VNIs (SVC_SET_VNI_RANGE).
        const VNI_RANGES = 1 << 1;
        /// Communication profiles that no other LNI shares (SVC_SET_EXCLUSIVE_CP).
        const EXCLUSIVE_CPS = 1 << 2;
        /// A choice of LCIDs (TRIG_CP_ALLOC).
        const TRIGGERED_CPS = 1 << 3;
        /// Communication profiles move to another VNI (CP_MODIFY).
        const CP_MODIFY = 1 << 4;
        /// Services for a network namespace (SVC_SET_NETNS, members of that kind).
        const NETNS = 1 << 5;
        /// Tells whether the NIC address was set.
        const NID_CONFIGURED = 1 << 6;
        /// Command queues in the caller's memory (CQ_ALLOC_BUF).
        const CQ_ALLOC_BUF = 1 << 7;
        /// Usage figures say what they do not cover, instead of 0 or another service's.
        const USAGE_NOT_APPLICABLE = 1 << 8;
        /// Services that list no VNI.
        const EMPTY_VNI_LIST = 1 << 9;
        /// A restricted service with a member slot that is not used stays restricted.
        const UNUSED_MEMBER_SLOTS = 1 << 10;
        /// A service without a VNI list is disabled until it has a range.
        const UNRESTRICTED_WAITS = 1 << 11;
        /// The VNIs of a disabled service are out of use, also through other services' LNIs.
        const DISABLED_VNIS_OFF = 1 << 12;
        /// A VNI that a service lists can be listed by no other.
        const EXCLUSIVE_VNIS = 1 << 13;
        /// A VNI that a service lists can be listed by others too.
        const SHARED_VNIS = 1 << 14;
        /// A refused service says which kind of pool was out.
        const POOL_FLAGS = 1 << 15;
        /// Only a reservation of LEs takes an LE pool, not a maximum.
        const LE_POOL_BY_RESERVATION = 1 << 16;
        /// How many LNIs share an RGID unless set otherwise is a module parameter, and sharing
        /// can be turned off.
        const RGID_PARAMETERS = 1 << 17;
        /// Lists of services are sorted by id, not by age.
        const LIST_BY_ID = 1 << 18;
    }
}

/// Since SHS 13.1.
const FROM_13_1: Capabilities = Capabilities::SERVICE_ENABLE
    .union(Capabilities::VNI_RANGES)
    .union(Capabilities::EXCLUSIVE_CPS)
    .union(Capabilities::TRIGGERED_CPS)
    .union(Capabilities::CP_MODIFY)
    .union(Capabilities::NID_CONFIGURED)
    .union(Capabilities::EMPTY_VNI_LIST)
    .union(Capabilities::UNUSED_MEMBER_SLOTS)
    .union(Capabilities::UNRESTRICTED_WAITS)
    .union(Capabilities::DISABLED_VNIS_OFF)
    .union(Capabilities::POOL_FLAGS)
    .union(Capabilities::RGID_PARAMETERS);

/// Since SHS 14.0.1.
const FROM_14_0_1: Capabilities = FROM_13_1
    .union(Capabilities::NETNS)
    .union(Capabilities::SHARED_VNIS)
    .union(Capabilities::LE_POOL_BY_RESERVATION);

impl Capabilities {
    /// What a release can do.
    #[must_use]
    pub fn for_release(release: DriverRelease) -> Self {
        match release {
            DriverRelease::Shs12_0 => Self::SHARED_VNIS | Self::UNUSED_MEMBER_SLOTS,
            DriverRelease::Shs13_0 => Self::EXCLUSIVE_VNIS,
            DriverRelease::Shs13_1 => FROM_13_1 | Self::EXCLUSIVE_VNIS,
            DriverRelease::Shs14_0_0 => FROM_13_1 | Self::NETNS | Self::EXCLUSIVE_VNIS,
            DriverRelease::Shs14_0_1 => FROM_14_0_1,
            DriverRelease::Main => {
                FROM_14_0_1 | Self::CQ_ALLOC_BUF | Self::USAGE_NOT_APPLICABLE | Self::LIST_BY_ID
            }
        }
    }

    /// The first release from which on all can do this.
    pub(crate) fn since(self) -> DriverRelease {
        let lacking = |release: &DriverRelease| !Self::for_release(*release).contains(self);
        let mut later = DriverRelease::ALL.into_iter().rev();
        let last = later.find(lacking);
        let next = DriverRelease::ALL
            .into_iter()
            .find(|release| Some(*release) > last);
        next.unwrap_or(DriverRelease::Main)
    }

    /// What an error calls this.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::SERVICE_ENABLE => "enabling and disabling",
            Self::VNI_RANGES => "a range of VNIs",
            Self::EXCLUSIVE_CPS => "an exclusive CP",
            Self::TRIGGERED_CPS => "asking for an LCID",
            Self::CP_MODIFY => "moving a profile to another VNI",
            Self::NETNS => "a network namespace as member",
            _ => "this",
        }
    }
}
