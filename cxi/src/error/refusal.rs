//! Reasons of the driver's refusals.

use crate::ServiceId;
use crate::explain::Cause;

/// Reason for which the driver refused a command, where the errno and the state of the NIC tell it.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// A cause of the [table](crate::explain::causes), which also says how to look and what to do.
    #[error("{} ({})", .0.reason, .0.code.name())]
    Cause(&'static Cause),
    /// A virtual function whose driver has no answer of its own, and asks the physical function nothing.
    #[error(
        "this is a virtual function, and its driver does not pass the command on to the physical one \
         (EOPNOTSUPP): use the physical one"
    )]
    NotRelayed,
    /// The service has no network namespace as a member.
    #[error("service {0} has no network namespace (EINVAL)")]
    NoNetns(ServiceId),
    /// The service lists its VNIs, or has none yet.
    #[error("service {0} has no VNI range (EINVAL)")]
    NoVniRange(ServiceId),
    /// Exclusive communication profiles were asked for, for a service without a VNI range.
    #[error("only a service with a VNI range has exclusive CPs (EINVAL)")]
    NeedsVniRange,
    /// The driver has lost VNIs of the service.
    #[error(
        "the VNIs that the service is said to have are not there (EINVAL): setting its range, or an \
         update, went wrong; destroy it and create another"
    )]
    VnisLost,
    /// The service exists, and nothing is known to be wrong with the command: either the driver does not
    /// know it, or not in this form, or the service has the ID of one that is gone.
    #[error(
        "service {0} exists, and the driver refuses the command nevertheless (EINVAL): it does not know \
         the command, or not in this form, or the service was created just now under the ID of one \
         that is gone"
    )]
    Nevertheless(ServiceId),
    /// The driver is too old for a service without VNIs.
    #[error("this driver cannot create a service without VNIs (EINVAL)")]
    NoVnis,
    /// Nothing is known to be wrong with the specification of a service.
    #[error(
        "the driver rejects the specification (EINVAL), although all that is known to be wrong was \
         checked"
    )]
    Specification,
    /// The service does not allow the VNI or the traffic class, or the NIC has no such class and type.
    #[error(
        "service {0} does not allow this VNI or this traffic class, or the NIC has no such class and \
         type (EINVAL)"
    )]
    VniOrClass(ServiceId),
    /// The service that has the VNI does not allow the traffic class, or the NIC has no such class and
    /// type.
    #[error(
        "the service that has the VNI does not allow this traffic class, or the NIC has no such class \
         and type (EINVAL)"
    )]
    Class,
    /// The NIC has no such class and type for Ethernet frames.
    #[error("the NIC has no such Ethernet class and type (EINVAL)")]
    EthernetClass,
    /// The communication profile cannot get another VNI, or not this one.
    #[error(
        "the profile is not of a service with exclusive communication profiles, or the caller may not \
         use the VNI (EINVAL)"
    )]
    VniOfProfile,
    /// The domain belongs to another LNI than the portal table entry.
    #[error("the domain belongs to another LNI (EINVAL)")]
    DomainOfOtherLni,
    /// The portal table entry cannot be mapped to a multicast address.
    #[error("the entry has a multicast address, or the domain belongs to another LNI (EINVAL)")]
    MulticastOrDomain,
    /// Another portal table entry has the multicast address.
    #[error("multicast address {0} is taken (ENOSPC)")]
    MulticastTaken(u32),
    /// The portal table entry has dropped another number of messages than was said.
    #[error("the PtlTE has dropped another number of messages: read it again (EAGAIN)")]
    DropCount,
}
