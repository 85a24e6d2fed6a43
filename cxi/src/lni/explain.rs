//! What the driver's refusals mean below an LNI.

use cxi_ioctl::{Errno, Opcode};

use super::LniInner;
use crate::driver::Capabilities;
use crate::error::{ErrorKind, Shortage};
use crate::{Device, Resource, ServiceId};

/// LNI_ALLOC.
pub(super) fn lni(device: &Device, service: ServiceId, errno: Errno) -> Option<ErrorKind> {
    Some(match errno {
        Errno::EINVAL => return device.services().why_invalid(service, errno),
        Errno::EKEYREVOKED => ErrorKind::ServiceDisabled { service },
        Errno::EPERM => ErrorKind::NotPermitted(
            format!(
                "the caller's effective uid, effective gid and network namespace are no members \
                 of service {service}"
            )
            .into(),
        ),
        Errno::ENOSPC => nothing_left("all 255 RGIDs of the NIC are in use"),
        _ => return None,
    })
}

/// Everything that is allocated below an LNI; `resource` is the resource it uses up.
pub(super) fn allocation(
    lni: &LniInner,
    opcode: Opcode,
    resource: Option<Resource>,
    errno: Errno,
) -> Option<ErrorKind> {
    match (opcode, errno) {
        (_, Errno::ENOSPC | Errno::EBADR) if resource.is_some() => {
            resource.map(|resource| limit(lni, resource))
        }
        (Opcode::CQ_ALLOC, Errno::EINVAL) => Some(ErrorKind::Refused(
            "the RGID has no communication profile with this LCID (EINVAL)".into(),
        )),
        (Opcode::EQ_ALLOC, Errno::EINVAL) => Some(ErrorKind::Refused(
            "a fill level is above 100 or below 0 percent, or there are more than four, or no \
             fewer slots are reserved than the queue has, or more than 16383 (EINVAL)"
                .into(),
        )),
        (Opcode::EQ_RESIZE_COMPLETE, Errno::EINVAL) => Some(ErrorKind::Refused(
            "no resize is under way: resize comes first (EINVAL)".into(),
        )),
        (Opcode::ATU_MAP, Errno::EOPNOTSUPP) => Some(ErrorKind::Refused(
            "this is a virtual function: the memory must be pinned (EOPNOTSUPP)".into(),
        )),
        (Opcode::ATU_MAP, Errno::EINVAL) => Some(ErrorKind::Refused(
            "the flags or page sizes do not go together (EINVAL)".into(),
        )),
        (Opcode::CQ_ALLOC | Opcode::PTE_ALLOC, Errno::EPERM) => {
            Some(ErrorKind::NotPermitted("Ethernet takes CAP_NET_RAW".into()))
        }
        (Opcode::EQ_ALLOC, Errno::EPERM) => Some(ErrorKind::NotPermitted(
            "the retry handler's queue takes CAP_SYS_ADMIN".into(),
        )),
        (Opcode::EQ_ALLOC, Errno::EEXIST) => Some(ErrorKind::Refused(
            "the device has a retry handler's queue already".into(),
        )),
        (Opcode::DOMAIN_ALLOC, errno) => domain(errno),
        (Opcode::DOMAIN_RESERVE, errno) => pids(errno),
        _ => None,
    }
}

/// CP_ALLOC and TRIG_CP_ALLOC.
pub(super) fn profile(lni: &LniInner, ethernet: bool, errno: Errno) -> Option<ErrorKind> {
    match errno {
        Errno::EPERM if ethernet => {
            Some(ErrorKind::NotPermitted("Ethernet takes CAP_NET_RAW".into()))
        }
        Errno::EINVAL if ethernet => Some(ErrorKind::Refused(
            "the NIC has no such Ethernet class and type (EINVAL)".into(),
        )),
        Errno::EEXIST => Some(vni_out_of_reach()),
        // Since drivers know ranges, they look the VNI up among the services' first.
        Errno::EINVAL if lacks_ranges(lni) => {
            let service = lni.service;
            Some(ErrorKind::Refused(
                format!(
                    "service {service} does not allow this VNI or this traffic class, or the NIC \
                     has no such class and type (EINVAL)"
                )
                .into(),
            ))
        }
        Errno::ENOENT => Some(no_service_has_vni()),
        Errno::EPERM => Some(no_member_of_vni()),
        Errno::ENOSPC => Some(nothing_left(
            "the NIC's 255 communication profiles are in use, or the LCIDs of the RGID that will do",
        )),
        Errno::EINVAL => Some(ErrorKind::Refused(
            "the service that has the VNI does not allow this traffic class, or the NIC has no \
             such class and type (EINVAL)"
                .into(),
        )),
        _ => None,
    }
}

fn lacks_ranges(lni: &LniInner) -> bool {
    let proven = lni.device().proven_capabilities();
    proven.is_ok_and(|proven| !proven.contains(Capabilities::VNI_RANGES))
}

fn domain(errno: Errno) -> Option<ErrorKind> {
    match errno {
        Errno::ENOENT => Some(no_service_has_vni()),
        Errno::EPERM => Some(no_member_of_vni()),
        Errno::EEXIST => Some(ErrorKind::Refused(
            "the PID is taken on this VNI; with drivers older than SHS 14.0.1 this is also the \
             answer for a VNI whose service is disabled or does not admit the caller (EEXIST)"
                .into(),
        )),
        Errno::ENOSPC => Some(nothing_left("no PID of this VNI is free")),
        _ => None,
    }
}

fn pids(errno: Errno) -> Option<ErrorKind> {
    match errno {
        Errno::EEXIST => Some(ErrorKind::Refused(
            "there is no free run of that many PIDs from there on (EEXIST)".into(),
        )),
        Errno::EINVAL => Some(ErrorKind::Refused(
            "no enabled service that admits the caller has this VNI (EINVAL)".into(),
        )),
        Errno::ENOSPC => Some(nothing_left("this VNI has no free run of that many PIDs")),
        _ => None,
    }
}

pub(super) fn no_service_has_vni() -> ErrorKind {
    ErrorKind::Refused("no enabled service has this VNI (ENOENT)".into())
}

fn vni_out_of_reach() -> ErrorKind {
    ErrorKind::Refused(
        "the VNI belongs to a service that is disabled or does not admit the caller (EEXIST)"
            .into(),
    )
}

fn no_member_of_vni() -> ErrorKind {
    ErrorKind::NotPermitted(
        "the services that have this VNI do not have the caller as a member".into(),
    )
}

fn nothing_left(what: &'static str) -> ErrorKind {
    ErrorKind::NotEnough(Shortage::Allocation { what })
}

/// ENOSPC or EBADR of something that the service limits: how much of it is in use.
fn limit(lni: &LniInner, resource: Resource) -> ErrorKind {
    let services = lni.device().services();
    let max = services
        .get(lni.service)
        .ok()
        .map(|service| service.limits()[resource].max());
    let in_use = services
        .usage(lni.service)
        .ok()
        .and_then(|usage| usage.in_use[resource]);
    let below_max = in_use.is_some() && in_use < max;
    if resource == Resource::Acs && below_max && some_left(lni, resource) {
        return nothing_left("all 8 address contexts of the LNI's RGID are in use");
    }
    ErrorKind::NotEnough(Shortage::Limit {
        service: lni.service,
        resource,
        in_use,
        max,
    })
}

/// Whether the NIC has any left, as far as visible.
fn some_left(lni: &LniInner, resource: Resource) -> bool {
    lni.device().availability().is_ok_and(|have| {
        let level = have.resources[resource];
        level.in_use < level.total
    })
}
