//! Capabilities of a driver.

use cxi_ioctl::{DriverRelease, EveryRelease};

described_flags! {
    /// Capabilities that a driver certainly has.
    pub struct Capabilities, with ", " between {
        /// Services can be enabled and disabled without rewriting them (SVC_ENABLE). Without it
        /// SVC_UPDATE is used.
        const SERVICE_ENABLE = 1 << 0, "enabling and disabling";
        /// Services with a block of VNIs (SVC_SET_VNI_RANGE).
        const VNI_RANGES = 1 << 1, "a range of VNIs";
        /// Communication profiles that no other LNI shares (SVC_SET_EXCLUSIVE_CP).
        const EXCLUSIVE_CPS = 1 << 2, "an exclusive CP";
        /// A choice of LCIDs (TRIG_CP_ALLOC).
        const TRIGGERED_CPS = 1 << 3, "a choice of LCID";
        /// Communication profiles move to another VNI (CP_MODIFY).
        const CP_MODIFY = 1 << 4, "moving a profile to another VNI";
        /// Services for a network namespace (SVC_SET_NETNS, members of that kind).
        const NETNS = 1 << 5, "a network namespace as member";
        /// Reports whether the NIC address was set.
        const NID_CONFIGURED = 1 << 6, "the state of the NIC address";
        /// Command queues in the caller's memory (CQ_ALLOC_BUF).
        const CQ_ALLOC_BUF = 1 << 7, "a command queue in the caller's memory";
        /// Usage figures mark what they do not cover, instead of showing 0 or another service's
        /// use.
        const USAGE_NOT_APPLICABLE = 1 << 8, "complete usage figures";
        /// Services that list no VNI.
        const EMPTY_VNI_LIST = 1 << 9, "a service without any VNI";
        /// A restricted service with an unused member slot stays restricted.
        const UNUSED_MEMBER_SLOTS = 1 << 10, "an unused member slot";
        /// A service without a VNI list is disabled until it has a range.
        const UNRESTRICTED_WAITS = 1 << 11, "a service that waits for its VNI range";
        /// The VNIs of a disabled service cannot be used, not even through other services' LNIs.
        const DISABLED_VNIS_OFF = 1 << 12, "withdrawing the VNIs of a disabled service";
        /// A VNI that a service lists can be listed by no other.
        const EXCLUSIVE_VNIS = 1 << 13, "a VNI of one service only";
        /// A VNI that a service lists can be listed by others too.
        const SHARED_VNIS = 1 << 14, "a VNI of several services";
        /// A refusal says which kind of pool was exhausted.
        const POOL_FLAGS = 1 << 15, "naming the pool that ran out";
        /// Only a reservation of LEs takes an LE pool, not a maximum.
        const LE_POOL_BY_RESERVATION = 1 << 16, "LEs without an LE pool";
        /// The default number of LNIs per RGID is a module parameter, and sharing can be turned
        /// off.
        const RGID_PARAMETERS = 1 << 17, "module parameters for RGIDs";
        /// Lists of services are sorted by id, not by age.
        const LIST_BY_ID = 1 << 18, "a list of services in order of ID";
        /// Services from which those of a virtual function get their VNIs and resources
        /// (SVC_ALLOC_PARENT).
        const PARENT_SERVICES = 1 << 19, "a parent service";
    }
}

impl Capabilities {
    /// Since SHS 13.1.
    pub(crate) const FROM_13_1: Self = Self::SERVICE_ENABLE
        .union(Self::VNI_RANGES)
        .union(Self::EXCLUSIVE_CPS)
        .union(Self::TRIGGERED_CPS)
        .union(Self::CP_MODIFY)
        .union(Self::NID_CONFIGURED)
        .union(Self::EMPTY_VNI_LIST)
        .union(Self::UNUSED_MEMBER_SLOTS)
        .union(Self::UNRESTRICTED_WAITS)
        .union(Self::DISABLED_VNIS_OFF)
        .union(Self::POOL_FLAGS)
        .union(Self::RGID_PARAMETERS);

    /// Since SHS 14.0.1.
    const FROM_14_0_1: Self = Self::FROM_13_1
        .union(Self::NETNS)
        .union(Self::SHARED_VNIS)
        .union(Self::LE_POOL_BY_RESERVATION);

    /// Since the development branch of July 2026.
    const FROM_2026_07: Self = Self::FROM_14_0_1
        .union(Self::CQ_ALLOC_BUF)
        .union(Self::USAGE_NOT_APPLICABLE)
        .union(Self::LIST_BY_ID);

    /// Returns the capabilities of a release.
    #[must_use]
    pub fn for_release(release: DriverRelease) -> Self {
        match release.every() {
            EveryRelease::Shs12_0 => Self::SHARED_VNIS | Self::UNUSED_MEMBER_SLOTS,
            EveryRelease::Shs13_0 => Self::EXCLUSIVE_VNIS,
            EveryRelease::Shs13_1 => Self::FROM_13_1 | Self::EXCLUSIVE_VNIS,
            EveryRelease::Shs14_0_0 => Self::FROM_13_1 | Self::NETNS | Self::EXCLUSIVE_VNIS,
            EveryRelease::Shs14_0_1 => Self::FROM_14_0_1,
            EveryRelease::Main2026_07 => Self::FROM_2026_07,
            EveryRelease::Main2026_11 => Self::FROM_2026_07 | Self::PARENT_SERVICES,
        }
    }

    /// The first release from which on all releases can do this.
    pub(crate) fn since(self) -> DriverRelease {
        let able = |release: &DriverRelease| Self::for_release(*release).contains(self);
        let first = DriverRelease::ALL.into_iter().rev().take_while(able).last();
        first.unwrap_or(DriverRelease::NEWEST)
    }
}
