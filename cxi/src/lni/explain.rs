//! What the driver's refusals mean below an LNI.

use cxi_ioctl::{Errno, Opcode};

use super::LniInner;
use crate::error::{ErrorKind, Shortage};
use crate::{Resource, ServiceId};

/// LNI_ALLOC.
pub(super) fn lni(service: ServiceId, errno: Errno) -> Option<ErrorKind> {
    Some(match errno {
        Errno::EINVAL => ErrorKind::NoSuchService { service },
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

/// Everything that is allocated below an LNI; `resource` is what it counts as.
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
        (Opcode::CQ_ALLOC | Opcode::PTE_ALLOC, Errno::EPERM) => {
            Some(ErrorKind::NotPermitted("Ethernet takes CAP_NET_RAW".into()))
        }
        (Opcode::EQ_ALLOC, Errno::EPERM) => Some(ErrorKind::NotPermitted(
            "the retry handler's queue takes CAP_SYS_ADMIN".into(),
        )),
        (Opcode::EQ_ALLOC, Errno::EEXIST) => Some(ErrorKind::Refused(
            "the device has a retry handler's queue already".into(),
        )),
        (Opcode::CQ_ALLOC, Errno::E2BIG) => Some(ErrorKind::Refused(
            "a command queue has at most 65536 slots".into(),
        )),
        (Opcode::CP_ALLOC | Opcode::TRIG_CP_ALLOC, errno) => profile(errno),
        (Opcode::DOMAIN_ALLOC, errno) => domain(errno),
        (Opcode::DOMAIN_RESERVE, errno) => pids(errno),
        _ => None,
    }
}

fn profile(errno: Errno) -> Option<ErrorKind> {
    match errno {
        Errno::ENOENT => Some(no_service_has_vni()),
        Errno::EPERM => Some(no_member_of_vni()),
        Errno::ENOSPC => Some(nothing_left(
            "the NIC's 255 communication profiles are in use, or the LCIDs of the RGID that will do",
        )),
        Errno::EINVAL => Some(ErrorKind::Refused(
            "the service that has the VNI does not allow this traffic class, or the NIC has no \
             such class and type"
                .into(),
        )),
        _ => None,
    }
}

fn domain(errno: Errno) -> Option<ErrorKind> {
    match errno {
        Errno::ENOENT => Some(no_service_has_vni()),
        Errno::EPERM => Some(no_member_of_vni()),
        Errno::EEXIST => Some(ErrorKind::Refused("the PID is taken on this VNI".into())),
        Errno::ENOSPC => Some(nothing_left("no PID of this VNI is free")),
        _ => None,
    }
}

fn pids(errno: Errno) -> Option<ErrorKind> {
    match errno {
        Errno::EEXIST => Some(ErrorKind::Refused(
            "there is no free run of that many PIDs from there on".into(),
        )),
        Errno::ENOSPC => Some(nothing_left("this VNI has no free run of that many PIDs")),
        _ => None,
    }
}

fn no_service_has_vni() -> ErrorKind {
    ErrorKind::Refused("no enabled service has this VNI".into())
}

fn no_member_of_vni() -> ErrorKind {
    ErrorKind::NotPermitted(
        "the services that have this VNI do not have the caller as a member".into(),
    )
}

fn nothing_left(what: &'static str) -> ErrorKind {
    ErrorKind::NotEnough(Shortage::Allocation { what })
}

/// ENOSPC and EBADR of what counts against the service's limits: how it stands with them.
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
    ErrorKind::NotEnough(Shortage::Limit {
        service: lni.service,
        resource,
        in_use,
        max,
    })
}
