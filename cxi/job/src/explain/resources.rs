//! ENOSPC.

use std::cmp::Reverse;

use super::{Explanation, HoldingService};
use crate::describe;
use crate::limits::{Cut, CutReason, ServiceUsage};
use crate::view::NicView;
use cxi::error::Shortage;
use cxi::pools::VNI_SLOTS;
use cxi::{Limit, Resource, ResourceMap, ServiceSpec};

/// The driver's refusal.
pub(super) fn refused(
    explanation: Explanation,
    shortage: &Shortage,
    spec: Option<&ServiceSpec>,
    view: Option<&NicView>,
) -> Explanation {
    match shortage {
        Shortage::Reservation { resource, available, .. } => {
            let explanation = reservation(explanation, *resource, *available, view);
            match (spec.and_then(ServiceSpec::limits), view) {
                (Some(limits), Some(view)) => behind(explanation, *resource, limits, view),
                _ => explanation,
            }
        }
        Shortage::TlePools => tle_pools(explanation, view),
        Shortage::LePools => le_pools(explanation, view),
        Shortage::VniTable { .. } => explanation
            .because(format!(
                "A NIC has a table of {VNI_SLOTS} VNIs. Each VNI of an enabled service takes one \
                 entry, and so does a range."
            ))
            .held_by(holders(view, |view, usage| {
                let vnis = match view.service(usage.service)?.vnis() {
                    cxi::VniAccess::List(list) => u32::try_from(list.len()).unwrap_or(u32::MAX),
                    _ => 1,
                };
                let plural = if vnis == 1 { "entry" } else { "entries" };
                (vnis > 0).then(|| (vnis, format!("{vnis} {plural}")))
            }))
            .advise("Give jobs fewer VNIs, or one range instead of a list.")
            .free_from_holders(),
        Shortage::Unclear { .. } => explanation
            .because(
                "Either something was used up only for a moment, by a simultaneous allocation, or \
                 the NIC's table of VNIs is full of CPs and domains that processes allocated \
                 outside services.",
            )
            .advise("Try again. If it fails again, find the processes that have the NIC open."),
        Shortage::Limit { resource, .. } => explanation
            .because(
                "A process takes from its service's reservation first, and up to the service's \
                 maximum from what all services share; sharers can use up what others reserved.",
            )
            .held_by(holders(view, |_, usage| {
                let count = usage.in_use[*resource].filter(|count| *count > 0)?;
                Some((count.into(), format!("{count} {resource} in use")))
            }))
            .advise(format!("Let the job's processes use fewer {resource}."))
            .advise(format!(
                "Give the job's service more {resource} when it is created: limits cannot be \
                 changed later."
            )),
        Shortage::Allocation { .. } => explanation.advise(
            "End other processes of the service, or give it higher limits when it is created.",
        ),
        // The shortage names itself, and no remedy is known.
        _ => explanation,
    }
}

/// Explains the finding of a plan before the driver was asked.
pub(super) fn planned(cut: &Cut, view: Option<&NicView>) -> Explanation {
    let Cut { device, resource, wanted, available, reason } = cut;
    let explanation = |problem| Explanation::new(Some(*device), problem);
    match reason {
        CutReason::NoTlePool(_) => tle_pools(
            explanation(format!("no TLE pool is left for the {wanted} TLEs of the job")),
            view,
        ),
        CutReason::NoLePool(_) => le_pools(
            explanation(format!("no LE pool is left for the {wanted} LEs of the job")),
            view,
        ),
        _ => reservation(
            explanation(format!(
                "not enough {resource}: {wanted} requested, {available} available"
            )),
            *resource,
            u16::try_from(*available).unwrap_or(u16::MAX),
            view,
        ),
    }
}

impl Explanation {
    /// Advises to free what the holders have. The default service cannot be released.
    fn free_from_holders(self) -> Self {
        if self.holders.iter().all(|holder| holder.service.is_default()) {
            return self;
        }
        self.advise(
            "Wait for one of these jobs to end. If one has ended, release its services, or clean \
             up what ended jobs left on the node.",
        )
    }
}

fn reservation(
    explanation: Explanation,
    resource: Resource,
    available: u16,
    view: Option<&NicView>,
) -> Explanation {
    explanation
        .because(format!(
            "A reservation is refused unless it fits into what no other service has reserved, \
             whether in use or not: {available} {resource} here."
        ))
        .held_by(holders(view, |_, usage| {
            let reserved = usage.limits[resource].reserved();
            (reserved > 0).then(|| (reserved.into(), format!("{reserved} {resource} reserved")))
        }))
        .advise(format!(
            "Reserve at most {available} {resource} for the job, or let its reservations be \
             scaled back to what fits."
        ))
        .free_from_holders()
}

/// Adds the shortages that the driver did not reach, because it stops at the first one.
fn behind(
    explanation: Explanation,
    short: Resource,
    limits: &ResourceMap<Limit>,
    view: &NicView,
) -> Explanation {
    let unchecked = Resource::CHECK_ORDER
        .into_iter()
        .skip_while(|resource| *resource != short)
        .skip(1)
        .filter(|resource| limits[*resource].reserved() > 0);
    let unchecked: Vec<Resource> = unchecked.collect();
    if unchecked.is_empty() {
        return explanation;
    }
    let also: Vec<String> = unchecked
        .iter()
        .filter_map(|resource| {
            let left = view.usage.unreserved(*resource);
            let wanted = limits[*resource].reserved();
            (u32::from(wanted) > left).then(|| format!("{wanted} {resource} with {left} available"))
        })
        .collect();
    let names: Vec<&str> = unchecked.iter().map(|resource| resource.name()).collect();
    let found = if also.is_empty() {
        "according to the list of services, there are enough".to_owned()
    } else {
        format!(
            "according to the list of services, there are not enough of these either: {}",
            also.join(", ")
        )
    };
    explanation.because(format!(
        "The driver stops at the first resource that is short, so it did not check {}; {found}.",
        names.join(", ")
    ))
}

fn tle_pools(explanation: Explanation, view: Option<&NicView>) -> Explanation {
    explanation
        .because(
            "A NIC has 4 TLE pools. The default service has one even while it is disabled, so at \
             most 3 services with TLEs fit on a NIC, however few TLEs they ask for. A service \
             without limits also has TLEs.",
        )
        .held_by(holders(view, |_, usage| {
            let holds = usage.limits.takes_tle_pool();
            let tles = usage.limits[Resource::Tles].reserved();
            holds.then(|| (tles.into(), format!("{tles} TLEs reserved")))
        }))
        .advise(
            "Give jobs limits with 0 TLEs: any number of them then fit on a NIC, without triggered \
             operations.",
        )
        .free_from_holders()
}

fn le_pools(explanation: Explanation, view: Option<&NicView>) -> Explanation {
    explanation
        .because(
            "A NIC has 15 LE pools for services that reserve LEs, however few, and one that all \
             others share. Up to SHS 14.0.0 every service that may have LEs takes one.",
        )
        .held_by(holders(view, |view, usage| {
            let les = usage.limits[Resource::Les];
            view.usage.holds_le_pool(usage).then(|| match les.reserved() {
                0 => (les.max().into(), format!("up to {} LEs", les.max())),
                reserved => (reserved.into(), format!("{reserved} LEs reserved")),
            })
        }))
        .advise(
            "Reserve no LEs for the job: with SHS 14.0.1 and later, it then shares the LEs that are not \
             reserved.",
        )
        .free_from_holders()
}

/// The services that hold something, largest amount first. `holds` returns the amount, and the same
/// in words.
fn holders(
    view: Option<&NicView>,
    holds: impl Fn(&NicView, &ServiceUsage) -> Option<(u32, String)>,
) -> Vec<HoldingService> {
    let Some(view) = view else { return Vec::new() };
    let holding = view.usage.services.iter().filter_map(|usage| {
        let service = view.service(usage.service)?;
        let (amount, holds) = holds(view, usage)?;
        let holding = HoldingService {
            service: usage.service,
            name: describe::service(service),
            holds,
            // An unused default service needs no action.
            idle: !usage.service.is_default() && is_idle(usage),
        };
        Some((amount, holding))
    });
    let mut holding: Vec<(u32, HoldingService)> = holding.collect();
    holding.sort_by_key(|(amount, holding)| (Reverse(*amount), holding.service));
    holding.into_iter().map(|(_, holding)| holding).collect()
}

/// Returns whether the driver reports nothing of a service as in use. A process cannot use a
/// service without a queue of some kind, so a resource whose use the driver does not report is
/// never the only one in use.
pub(crate) fn is_idle(usage: &ServiceUsage) -> bool {
    let reported = usage.in_use.iter().filter_map(|(_, count)| *count);
    let mut reported = reported.peekable();
    reported.peek().is_some() && reported.all(|count| count == 0)
}
