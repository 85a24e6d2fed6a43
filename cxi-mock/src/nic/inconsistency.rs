//! Inconsistencies between the parts of a snapshot.

use cxi_ioctl::Errno;

/// Inconsistency of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Inconsistency {
    /// The default service is missing.
    #[error("service 1, the default service, is missing")]
    NoDefaultService,
    /// A number that is out of range, or occurs twice.
    #[error("{what} {id} is out of range or in use twice")]
    Number {
        /// Kind of object with that number.
        what: &'static str,
        /// The number.
        id: u32,
    },
    /// A service keeps a profile that does not exist.
    #[error("service {service} keeps profile {profile}, which does not exist")]
    NoProfile {
        /// The service.
        service: u32,
        /// The profile.
        profile: u32,
    },
    /// Reservations exceed what there is.
    #[error("service {service} reserves more than the NIC has left, or its limits are invalid")]
    Limits {
        /// The service.
        service: u32,
    },
    /// An access entry that the driver would refuse.
    #[error("access entries of {what} {id}: {errno}")]
    Access {
        /// Kind of object that the entries belong to.
        what: &'static str,
        /// Number of the object.
        id: u32,
        /// The driver's error.
        errno: Errno,
    },
    /// VNIs of a profile are already taken.
    #[error(
        "profile {id} has VNI {vni}, which conflicts with another profile or does not start a block"
    )]
    Vni {
        /// The profile.
        id: u32,
        /// Its VNI.
        vni: u16,
    },
}
