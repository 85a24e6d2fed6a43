//! Each service on its own.

use cxi::{Member, Members, Service, VniAccess};

use super::{AuditOptions, Code, Finding, Seen};
use crate::describe;
use cxi_site::IdSet;

pub(super) fn check(nic: &Seen, options: &AuditOptions<'_>) -> Vec<Finding> {
    let services = nic.view.services.iter().filter(|service| !service.id().is_default());
    let of_users = services.flat_map(|service| {
        let foreign = options.foreign.contains(&(nic.device, service.id()));
        let finding = |(code, text)| Finding::new(code, nic.device, Some(service.id()), text);
        user_service(service, options, foreign).into_iter().map(finding)
    });
    default_service(nic, options).into_iter().chain(of_users).collect()
}

/// Services of different users that can exchange packets, because they have a VNI in common.
pub(super) fn shared_vnis(nic: &Seen) -> Vec<Finding> {
    // The default service and one that is open to everyone are reported as such.
    let services = nic.view.services.iter();
    let enabled: Vec<&Service> =
        services.filter(|service| service.is_enabled() && service.members().is_some()).collect();
    let pairs = enabled.iter().enumerate().flat_map(|(at, one)| {
        enabled.iter().skip(at + 1).filter_map(move |other| {
            let shared = vnis(one).intersection(&vnis(other));
            let reports = one.members() != other.members() && !shared.is_empty();
            reports.then_some((one, other, shared))
        })
    });
    pairs
        .map(|(one, other, shared)| {
            let text = format!(
                "{} and {} share VNI {shared}: their processes can communicate with each other; \
                 give each job its own VNIs",
                describe::service(other),
                describe::service(one)
            );
            Finding::new(Code::SharedVni, nic.device, Some(other.id()), text)
        })
        .collect()
}

fn vnis(service: &Service) -> IdSet {
    service.vnis().iter().map(cxi::Vni::get).collect()
}

type Found = (Code, String);

fn default_service(nic: &Seen, options: &AuditOptions<'_>) -> Option<Finding> {
    let service = nic.view.services.iter().find(|service| service.id().is_default());
    let enabled = service.filter(|service| service.is_enabled());
    let (code, text) = match (enabled, options.default_service?) {
        (Some(service), false) => (
            Code::DefaultServiceEnabled,
            format!(
                "the default service is enabled: every user of the node can use {}, unseen by the \
                 scheduler; disable it",
                describe::vnis(service.vnis())
            ),
        ),
        (None, true) => (
            Code::DefaultServiceDisabled,
            "the default service is disabled: programs without a job's service cannot use the NIC; \
             enable it"
                .to_owned(),
        ),
        _ => return None,
    };
    Some(Finding::new(code, nic.device, service.map(Service::id), text))
}

fn user_service(service: &Service, options: &AuditOptions<'_>, foreign: bool) -> Vec<Found> {
    let name = describe::service(service);
    let mut found = Vec::new();
    if foreign {
        let text = format!(
            "no record says who made {name}: another scheduler, another tool, or a record is lost; \
             cxi job clean leaves it"
        );
        found.push((Code::Foreign, text));
    }
    let open = service.is_enabled() && !service.is_system();
    if open && service.members().is_none() {
        let text = format!(
            "{name} is open to everyone on the node: restrict it to the uid, gid or network \
             namespace of a job"
        );
        found.push((Code::NoMembers, text));
    }
    let unrestricted = service.vnis() == VniAccess::Unrestricted;
    if open && unrestricted {
        let text = format!(
            "{name} names no VNIs: drivers up to SHS 13.0 let it use any; give it a list or a \
             range"
        );
        found.push((Code::NoVnis, text));
    }
    if unrestricted && !service.is_enabled() && !service.is_system() {
        let text = format!(
            "{name} has neither VNIs nor a range: the process that created it may have been \
             killed; destroy it unless a process is still setting it up"
        );
        found.push((Code::Unfinished, text));
    }
    if let Some(exists) = options.user_exists {
        for member in service.members().iter().flat_map(Members::iter) {
            if let Member::Uid(uid) = member
                && !exists(uid)
            {
                let text = format!(
                    "{name} is for uid {uid}, which the node does not know: its job has ended, or \
                     user IDs changed"
                );
                found.push((Code::DeadUser, text));
            }
        }
    }
    if let Some(pool) = &options.pool
        && !service.is_system()
    {
        let outside = vnis(service).difference(pool);
        if !outside.is_empty() {
            let text = format!(
                "{name} has VNIs outside the scheduler's pool: {outside}; another scheduler or an \
                 administrator created it, or the pool was changed"
            );
            found.push((Code::OutsidePool, text));
        }
    }
    found
}

pub(super) fn ranges(nic: &Seen, options: &AuditOptions<'_>) -> Vec<Finding> {
    let ranges = &options.ranges;
    let pairs = ranges.iter().enumerate().flat_map(|(at, one)| {
        ranges.iter().skip(at + 1).filter_map(move |other| overlap(one, other))
    });
    let overlaps = pairs.map(|text| Finding::new(Code::RangesOverlap, nic.device, None, text));
    let outside = nic.view.services.iter().filter_map(|service| {
        let text = outside(service, ranges)?;
        let id = Some(service.id());
        Some(Finding::new(Code::OutsideRange, nic.device, id, text))
    });
    overlaps.chain(outside).collect()
}

fn overlap(one: &(Member, IdSet), other: &(Member, IdSet)) -> Option<String> {
    let common = one.1.intersection(&other.1);
    (!common.is_empty() && one.0 != other.0).then(|| {
        format!(
            "{} and {} are both configured to use VNIs {common}: their jobs could talk to each \
             other; give them ranges that do not overlap",
            one.0, other.0
        )
    })
}

/// Returns the fault of a service's VNIs, if it has an owner.
fn outside(service: &Service, ranges: &[(Member, IdSet)]) -> Option<String> {
    let members = service.members()?;
    let mut own = ranges.iter().filter(|(owner, _)| members.contains(*owner)).peekable();
    let (owner, _) = own.peek()?;
    let allowed = own.clone().fold(IdSet::new(), |all, (_, range)| all.union(range));
    let outside = vnis(service).difference(&allowed);
    (!outside.is_empty()).then(|| {
        format!(
            "{} has VNIs outside the range of {owner}: {outside}; expected {allowed}",
            describe::service(service)
        )
    })
}
