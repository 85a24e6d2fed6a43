//! VNIs of several owners.

use super::{AuditOptions, Code, Finding, Seen, Severity};
use crate::describe;
use crate::idset::IdSet;
use cxi::{Member, Service};

pub(super) fn check(nic: &Seen, options: &AuditOptions<'_>) -> Vec<Finding> {
    let finding = |code, service: Option<&Service>, text| Finding {
        severity: Severity::Error,
        code,
        device: nic.device,
        service: service.map(Service::id),
        text,
    };
    let ranges = &options.ranges;
    let pairs = ranges.iter().enumerate().flat_map(|(at, one)| {
        let others = ranges.iter().skip(at + 1);
        others.filter_map(move |other| overlap(one, other))
    });
    let overlaps = pairs.map(|text| finding(Code::RangesOverlap, None, text));
    let services = nic.view.services.iter();
    let outside = services.filter_map(|service| {
        let text = outside(service, ranges)?;
        Some(finding(Code::OutsideRange, Some(service), text))
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

/// What is wrong with a service's VNIs, if it has an owner.
fn outside(service: &Service, ranges: &[(Member, IdSet)]) -> Option<String> {
    let members = service.members().into_iter();
    let members: Vec<Member> = members.flat_map(Vec::from).collect();
    let mut own = ranges
        .iter()
        .filter(|(owner, _)| members.contains(owner))
        .peekable();
    let (owner, _) = own.peek()?;
    let allowed = own
        .clone()
        .fold(IdSet::new(), |all, (_, range)| all.union(range));
    let outside = super::services::vnis(service).difference(&allowed);
    (!outside.is_empty()).then(|| {
        format!(
            "{} has VNIs outside the range of {owner}: {outside}; expected {allowed}",
            describe::service(service)
        )
    })
}
