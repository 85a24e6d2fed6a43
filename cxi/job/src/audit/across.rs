//! Differences between the NICs of one node.

use super::{Code, Finding, Seen};
use crate::describe;
use crate::view::has_same_purpose;
use cxi::{Service, ServiceId};

/// A job has one service on each NIC: what exists on one NIC must exist on all of them, with the
/// same settings.
pub(super) fn check(seen: &[Seen]) -> Vec<Finding> {
    let usable: Vec<&Seen> = seen.iter().filter(|nic| nic.usable).collect();
    let mut findings = Vec::new();
    let Some((first, others)) = usable.split_first() else { return findings };
    findings.extend(default_services(first, others));
    for nic in &usable {
        for service in jobs(nic) {
            let twins = || usable.iter().map(|other| (other, twins(other, service)));
            let most = twins().map(|(_, twins)| twins.len()).max().unwrap_or(0);
            // A missing service is reported on the NIC that lacks it, with the first NIC that has
            // it.
            let missing: Vec<_> = twins().filter(|(_, twins)| twins.len() < most).collect();
            let mut having = twins().filter(|(_, twins)| twins.len() == most);
            let reports = having.next().is_some_and(|(other, twins)| {
                let last = twins.last().map(|twin| twin.id());
                other.device == nic.device && last == Some(service.id())
            });
            if reports {
                findings.extend(missing.iter().map(|(other, _)| absent(other, nic, service)));
            }
            findings.extend(different(nic, service, &usable));
        }
    }
    findings
}

fn jobs(nic: &Seen) -> impl Iterator<Item = &Service> {
    nic.view.services.iter().filter(|service| !service.id().is_default() && !service.is_system())
}

/// The services of a NIC for the same job: with the same members and VNIs.
fn twins<'a>(nic: &'a Seen, service: &Service) -> Vec<&'a Service> {
    jobs(nic).filter(|other| has_same_purpose(other, service)).collect()
}

fn absent(nic: &Seen, having: &Seen, service: &Service) -> Finding {
    let text = format!(
        "nothing like {} of {}: a job gets a service on each NIC, so something failed halfway or \
         the job asked for only some NICs",
        describe::service(service),
        having.device
    );
    Finding::new(Code::MissingOnNic, nic.device, None, text)
}

fn different(nic: &Seen, service: &Service, usable: &[&Seen]) -> Option<Finding> {
    let [_] = twins(nic, service)[..] else { return None };
    let (first, other) = usable.iter().find_map(|first| match twins(first, service)[..] {
        [other] => Some((first, other)),
        _ => None,
    })?;
    let mut what = Vec::new();
    if other.is_enabled() != service.is_enabled() {
        what.push("whether it is enabled");
    }
    if other.traffic_classes() != service.traffic_classes() {
        what.push("traffic classes");
    }
    if other.limits() != service.limits() {
        what.push("limits");
    }
    (first.device != nic.device && !what.is_empty()).then(|| {
        let text = format!(
            "{} and service {} of {} belong to one job, but differ: {}",
            describe::service(service),
            other.id(),
            first.device,
            what.join(", ")
        );
        Finding::new(Code::ServicesDiffer, nic.device, Some(service.id()), text)
    })
}

fn default_services(first: &Seen, others: &[&Seen]) -> Vec<Finding> {
    let default = |nic: &Seen| nic.view.service(ServiceId::DEFAULT).copied();
    let differing = others.iter().filter_map(|nic| {
        let (one, other) = (default(first)?, default(nic)?);
        let alike = one.is_enabled() == other.is_enabled()
            && one.vnis() == other.vnis()
            && one.limits() == other.limits();
        (!alike).then(|| {
            let (first, other) = (first.device, describe::service(&other));
            let text = format!("the default service differs from the one on {first}: {other} here");
            let default = Some(ServiceId::DEFAULT);
            Finding::new(Code::DefaultServicesDiffer, nic.device, default, text)
        })
    });
    differing.collect()
}
