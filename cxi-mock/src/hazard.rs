//! Events that a real kernel might not survive.

use cxi_ioctl::DriverRelease;

/// An event for which a real driver has no defined behavior: it would read freed memory, or write
/// where it must not. The mock does something sensible and records the event.
///
/// The text says what a kernel may do: `a real shs-13.0 kernel may crash here: …`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a real {release} kernel may crash here: {kind}")]
#[non_exhaustive]
pub struct Hazard {
    /// The driver.
    pub release: DriverRelease,
    /// Kind of the hazard.
    pub kind: HazardKind,
}

/// The kinds of [`Hazard`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HazardKind {
    /// The last communication profile of a transmit profile without a creator was freed: the driver
    /// uses the profile after it is freed (from 13.0).
    #[error("the profile of VNI {vni} is freed with its last communication profile, and then used")]
    ProfileUsedAfterFree {
        /// VNI of the profile.
        vni: u32,
    },
    /// A service whose range was refused is asked for its range or its exclusive CPs: the driver reads
    /// a freed profile (from 13.1). Nothing else tells whether its range was refused.
    #[error("service {svc_id} had a VNI range refused, and a freed profile is read for it")]
    FreedProfileRead {
        /// The service.
        svc_id: u32,
    },
    /// A service whose range was refused is enabled, disabled or destroyed, or its exclusive CPs are
    /// changed: the driver works on a freed profile (from 13.1).
    #[error("service {svc_id} had a VNI range refused, and keeps a pointer to a freed profile")]
    DanglingRange {
        /// The service.
        svc_id: u32,
    },
    /// A service whose range was refused has another one refused: the driver drops its reference to the
    /// old receive profile a second time (from 13.1).
    #[error("service {svc_id} had two VNI ranges refused: a reference is dropped twice")]
    ReferenceDroppedTwice {
        /// The service.
        svc_id: u32,
    },
    /// A service with more VNIs recorded than it has profiles is destroyed: the driver reads past
    /// the end of its arrays (from 13.0).
    #[error("service {svc_id} records {num_vld_vnis} VNIs: the driver reads past its arrays")]
    CountBeyondProfiles {
        /// The service.
        svc_id: u32,
        /// The recorded count.
        num_vld_vnis: u8,
    },
    /// A refused DOMAIN_RESERVE: the driver takes the error for a PID and sets bits outside its
    /// table (13.0).
    #[error("a refused DOMAIN_RESERVE on VNI {vni} sets bits far outside the PID table")]
    ReserveOutsideTable {
        /// VNI of the table.
        vni: u32,
    },
    /// An event queue without a wait object was allocated on a number that the LNI held from one
    /// with a wait object: the driver sets up that one's interrupt and follows a null pointer.
    #[error("event queue {eq} sets up its predecessor's interrupt and follows a null pointer")]
    StaleCallback {
        /// The event queue.
        eq: u32,
    },
    /// A communication profile was requested again and found under another transmit profile. The
    /// reference is taken on one profile and released on the other (from 13.0).
    #[error("communication profiles on VNI {vni} take a reference on the wrong profile")]
    ReferenceOnOtherProfile {
        /// VNI of both.
        vni: u32,
    },
    /// A transmit profile lost its creator's reference, which still exists, to a communication
    /// profile that never had one: the profile is freed while in use (from 13.0).
    #[error("the profile of VNI {vni} loses a reference never taken, and is freed while in use")]
    ProfileFreedInUse {
        /// VNI of the profile.
        vni: u32,
    },
    /// A communication profile outlived a change of `exclusive_cp`: it is freed and stays in its
    /// transmit profile's table (from 13.1).
    #[error("a communication profile on VNI {vni} is freed and stays in its profile's table")]
    FreedCpInTable {
        /// VNI of the communication profile.
        vni: u32,
    },
    /// A communication profile was requested, and the transmit profile's table has a freed one
    /// (from 13.1).
    #[error("a communication profile on VNI {vni} is shared after it was freed")]
    FreedCpUsed {
        /// VNI of the communication profile.
        vni: u32,
    },
    /// EQ_ALLOC of a virtual function asked for a queue without translation and without a byte: the
    /// driver reads the first entry of an empty list of pages (development branch).
    #[error("a virtual function's event queue has no bytes: the driver reads past an empty list")]
    EmptyEventQueue,
    /// An event queue's buffer extends beyond the last address: the driver does not notice, and the
    /// NIC writes events where the process has no memory.
    #[error("an event buffer at {queue:#x} wraps around: events go where there is no memory")]
    EventBufferWraps {
        /// Address of the buffer.
        queue: u64,
    },
    /// An LNI with a wrong RGID is freed: the driver follows a null pointer (12.0, 13.0).
    #[error("LNI {lni} got RGID {rgid}, which is not in use: freeing it follows a null pointer")]
    WrongRgid {
        /// The LNI.
        lni: u32,
        /// The number that it got.
        rgid: u32,
    },
    /// PHYS_LAC_FREE of a context that was not allocated: the driver drops a reference to the LNI
    /// that was never taken (development branch).
    #[error("LNI {lni} loses a reference never taken, and may be freed while in use")]
    LniReferenceDropped {
        /// The LNI.
        lni: u32,
    },
}
