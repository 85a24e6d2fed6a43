//! Commands that a driver answers with damage.

use cxi_ioctl::{DriverRelease, EveryRelease};

described_flags! {
    /// Commands that a driver answers with damage, or with less protection than requested.
    ///
    /// This library sends none of them unless allowed to; see
    /// [`Device::allow_quirks`](crate::Device::allow_quirks).
    pub struct Quirks, with "; " between {
        /// A DOMAIN_RESERVE that cannot be satisfied corrupts the kernel's memory (SHS 13.0).
        const REFUSED_RESERVE = 1 << 0, "a reservation of PIDs that cannot be satisfied corrupts the kernel's memory";
        /// An LNI that shares an RGID may get a wrong one; freeing it crashes the kernel
        /// (SHS 12.0 and 13.0).
        const SHARED_RGID = 1 << 1, "an LNI that shares an RGID may get a wrong one, and freeing it crashes the kernel";
        /// A service that is refused for lack of TLEs keeps the LE pools it took, until the driver
        /// is reloaded (SHS 12.0).
        const REFUSED_SERVICE_LEAK = 1 << 2, "a service that is refused for lack of TLEs keeps LE pools until the driver is reloaded";
        /// A service without a VNI list is enabled at once: on SHS 12.0 for every VNI, on 13.0
        /// for none of its own.
        const OPEN_VNIS = 1 << 3, "a service without a VNI list is enabled at once, for any VNI (shs-12.0) or none of its own (shs-13.0)";
        /// An unused member slot opens a restricted service to everyone (SHS 13.0).
        const OPEN_MEMBER_SLOT = 1 << 4, "a member slot that is not used opens a restricted service to everyone";
        /// A communication profile of uid 0 on a VNI that no service has: when it is freed, the
        /// kernel uses memory that it has freed before (from SHS 13.0 on).
        const ORPHANED_PROFILE = 1 << 5, "a communication profile on a VNI that no service has makes the kernel use freed memory when the profile is freed";
        /// A VNI range for a service that has one, or one that is refused: the kernel loses track
        /// of VNIs, or uses memory that it has freed (from SHS 13.1 on).
        const REFUSED_RANGE = 1 << 6, "a second or a refused VNI range makes the kernel lose track of VNIs or use freed memory";
        /// More VNIs in a descriptor than a service can have, or an update that changes their
        /// number (from SHS 13.0 on).
        const VNI_COUNT = 1 << 7, "a wrong number of VNIs in a descriptor makes the kernel write or read past the end of its arrays";
        /// An event queue without a wait object, in an LNI that has freed one that had one: the
        /// kernel follows a null pointer.
        const REUSED_EVENT_QUEUE = 1 << 8, "an event queue without a wait object, allocated after the LNI has freed one that had one, makes the kernel follow a null pointer: give it one too, or use another LNI";
        /// `exclusive_cp` switched while a communication profile is there, which cannot be seen:
        /// the kernel keeps that profile in a table after it has freed it (from SHS 13.1 on).
        const SWITCHED_EXCLUSIVE_CP = 1 << 9, "switching exclusive_cp while a communication profile exists, which cannot be detected, makes the kernel use freed memory: create another service that has it from the start";
    }
}

impl Quirks {
    /// The quirks of a release.
    #[must_use]
    pub fn for_release(release: DriverRelease) -> Self {
        let all = Self::REUSED_EVENT_QUEUE;
        let from_13_0 = all | Self::ORPHANED_PROFILE | Self::VNI_COUNT;
        let from_13_1 = from_13_0 | Self::REFUSED_RANGE | Self::SWITCHED_EXCLUSIVE_CP;
        match release.every() {
            EveryRelease::Shs12_0 => {
                all | Self::SHARED_RGID | Self::REFUSED_SERVICE_LEAK | Self::OPEN_VNIS
            }
            EveryRelease::Shs13_0 => {
                from_13_0
                    | Self::REFUSED_RESERVE
                    | Self::SHARED_RGID
                    | Self::OPEN_VNIS
                    | Self::OPEN_MEMBER_SLOT
            }
            EveryRelease::Shs13_1
            | EveryRelease::Shs14_0_0
            | EveryRelease::Shs14_0_1
            | EveryRelease::Main2026_07
            | EveryRelease::Main2026_11 => from_13_1,
        }
    }
}
