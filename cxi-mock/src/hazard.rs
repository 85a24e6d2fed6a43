//! What a real kernel might not survive.

use std::fmt;

use cxi_ioctl::DriverRelease;

/// An event for which a real driver has no defined behaviour: it would read freed memory, or write
/// where it must not. The mock does something sensible and records the event.
///
/// The text says what a kernel may do: `a real shs-13.0 kernel may crash here: …`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hazard {
    /// The driver.
    pub release: DriverRelease,
    /// What happened.
    pub kind: HazardKind,
}

/// The kinds of [`Hazard`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HazardKind {
    /// The last communication profile of a transmit profile without a creator was freed: the driver
    /// uses the profile after it is freed (from 13.0).
    ProfileUsedAfterFree {
        /// VNI of the profile.
        vni: u32,
    },
    /// A service whose range was refused is enabled, disabled or destroyed: the driver works on a
    /// freed profile (from 13.1).
    DanglingRange {
        /// The service.
        svc_id: u32,
    },
    /// A service with more VNIs recorded than it has profiles is destroyed: the driver reads past
    /// the end of its arrays (from 13.0).
    CountBeyondProfiles {
        /// The service.
        svc_id: u32,
        /// The recorded count.
        num_vld_vnis: u8,
    },
    /// A refused DOMAIN_RESERVE: the driver takes the error for a PID and sets bits outside its
    /// table (13.0).
    ReserveOutsideTable {
        /// VNI of the table.
        vni: u32,
    },
    /// An event queue without a wait object was allocated on a number that the LNI held from one
    /// with a wait object: the driver sets up that one's interrupt and follows a null pointer.
    StaleCallback {
        /// The event queue.
        eq: u32,
    },
    /// A communication profile was requested again and found under another transmit profile: the
    /// reference is taken on one profile and released on the other (from 13.0).
    ReferenceOnOtherProfile {
        /// VNI of both.
        vni: u32,
    },
    /// A transmit profile lost its creator's reference, which still exists, to a communication
    /// profile that never had one: the profile is freed while in use (from 13.0).
    ProfileFreedInUse {
        /// VNI of the profile.
        vni: u32,
    },
    /// A communication profile outlived a change of `exclusive_cp`: it is freed and stays in its
    /// transmit profile's table (from 13.1).
    FreedCpInTable {
        /// VNI of the communication profile.
        vni: u32,
    },
    /// A communication profile was requested, and the transmit profile's table has a freed one
    /// (from 13.1).
    FreedCpUsed {
        /// VNI of the communication profile.
        vni: u32,
    },
    /// EQ_ALLOC of a virtual function asked for a queue without translation and without a byte: the
    /// driver reads the first entry of an empty list of pages (development branch).
    EmptyEventQueue,
    /// An LNI with a wrong RGID is freed: the driver follows a null pointer (12.0, 13.0).
    WrongRgid {
        /// The LNI.
        lni: u32,
        /// The number that it got.
        rgid: u32,
    },
}

impl fmt::Display for Hazard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a real {} kernel may crash here: ", self.release)?;
        match &self.kind {
            HazardKind::ProfileUsedAfterFree { vni } => write!(
                f,
                "the last communication profile on VNI {vni} went after the profile's creator, \
                 and the profile is used once more after it is freed"
            ),
            HazardKind::DanglingRange { svc_id } => write!(
                f,
                "service {svc_id} had a VNI range refused, and keeps a pointer to a profile that \
                 is freed"
            ),
            HazardKind::CountBeyondProfiles {
                svc_id,
                num_vld_vnis,
            } => write!(
                f,
                "service {svc_id} has {num_vld_vnis} VNIs on record, more than profiles, and the \
                 driver reads or writes behind its arrays"
            ),
            HazardKind::ReserveOutsideTable { vni } => write!(
                f,
                "a refused DOMAIN_RESERVE on VNI {vni} sets bits far outside the PID table"
            ),
            HazardKind::StaleCallback { eq } => write!(
                f,
                "event queue {eq} has no wait object, but the one that had its number before had \
                 one, and setting up the interrupt follows a null pointer"
            ),
            HazardKind::ReferenceOnOtherProfile { vni } => write!(
                f,
                "a communication profile on VNI {vni} is used again by way of another service's \
                 profile, which keeps the reference that the right one loses"
            ),
            HazardKind::ProfileFreedInUse { vni } => write!(
                f,
                "the profile of VNI {vni} loses a reference that was never taken, and is freed while \
                 its service uses it"
            ),
            HazardKind::FreedCpInTable { vni } => write!(
                f,
                "exclusive_cp was switched while a communication profile on VNI {vni} was there, \
                 which is freed now and stays in the table"
            ),
            HazardKind::FreedCpUsed { vni } => write!(
                f,
                "a communication profile on VNI {vni} is shared that was freed before"
            ),
            HazardKind::EmptyEventQueue => write!(
                f,
                "a virtual function asked for an event queue of no bytes without translation, and \
                 the driver reads behind an empty list of pages"
            ),
            HazardKind::WrongRgid { lni, rgid } => write!(
                f,
                "LNI {lni} got RGID {rgid}, which is not in use, and freeing it follows a null \
                 pointer"
            ),
        }
    }
}
