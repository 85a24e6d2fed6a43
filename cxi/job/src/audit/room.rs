//! Room for more jobs.

use super::{AuditOptions, Code, Finding, Seen, Severity};
use crate::describe;
use crate::job_request::JobLimits;
use crate::limits::{Bottleneck, Mode, NicUsage, ServiceUsage, forecast};
use cxi::pools::{LE_POOLS, MIN_TLES, TLE_POOLS};
use cxi::{Limit, Limits, Resource};

pub(super) fn check(nic: &Seen, options: &AuditOptions<'_>) -> Option<Finding> {
    let usage = &nic.view.usage;
    let mut job = options.job;
    // A job that is scaled back starts if there is room for its smallest size.
    if let JobLimits::Planned { size, mode: Mode::ScaleBack { floor }, .. } = &mut job {
        *size = (*size).min(*floor);
    }
    let mut limits = match job {
        JobLimits::Unlimited => unlimited(),
        job => match job.asked(usage) {
            Some(limits) => limits,
            // The NIC has too little for it, even without other users.
            None => return Some(finding(nic, 0, "no such job fits, even alone".to_owned())),
        },
    };
    if let JobLimits::Planned { mode: Mode::BestEffort, .. } = job {
        for resource in Resource::ALL {
            if resource != Resource::Tles {
                limits[resource] = Limit::at_most(limits[resource].max());
            }
        }
    }
    let (fits, first) = forecast(usage, &limits)?;
    if fits > options.few {
        return None;
    }
    let jobs = match fits {
        0 => "no more such job fits".to_owned(),
        1 => "one more such job fits".to_owned(),
        2 => "two more such jobs fit".to_owned(),
        fits => format!("{fits} more such jobs fit"),
    };
    let text = format!("{jobs}: {}", bottleneck(nic, first, &limits));
    Some(finding(nic, fits, text))
}

fn finding(nic: &Seen, fits: u32, text: String) -> Finding {
    let mut finding = Finding::new(Code::NearlyExhausted, nic.device, None, text);
    if fits == 0 {
        finding.severity = Severity::Error;
    }
    finding
}

/// Returns the limits that a service without limits takes.
fn unlimited() -> Limits {
    let mut limits = Limits::default();
    limits[Resource::Tles] = Limit::exactly(MIN_TLES);
    limits[Resource::Les] = Limit::at_most(u16::MAX);
    limits
}

fn bottleneck(nic: &Seen, first: Bottleneck, limits: &Limits) -> String {
    let usage = &nic.view.usage;
    let (what, holders): (String, Vec<&ServiceUsage>) = match first {
        Bottleneck::TlePools => {
            let holders: Vec<_> = usage.tle_pool_holders().collect();
            let text = format!("of {TLE_POOLS} TLE pools {} are taken", holders.len());
            (text, holders)
        }
        Bottleneck::LePools => {
            let holders: Vec<_> = usage.le_pool_holders().collect();
            let text = format!("of {LE_POOLS} LE pools {} are taken", holders.len());
            (text, holders)
        }
        Bottleneck::Resource(resource) => (
            format!(
                "a job reserves {2} {resource}, {0} of {1} are left, the others are reserved",
                usage.unreserved(resource),
                usage.totals[resource],
                limits[resource].reserved()
            ),
            reserving(usage, resource),
        ),
    };
    let names = holders.iter().filter_map(|usage| {
        let service = nic.view.service(usage.service)?;
        Some(describe::service(service))
    });
    let names: Vec<String> = names.collect();
    if names.is_empty() {
        return what;
    }
    format!("{what} by {}", names.join(", "))
}

fn reserving(usage: &NicUsage, resource: Resource) -> Vec<&ServiceUsage> {
    usage.services.iter().filter(|service| service.limits[resource].reserved() > 0).collect()
}

#[cfg(test)]
mod tests {
    use cxi::{DeviceId, ResourceMap};

    use super::*;
    use crate::limits::LimitPolicy;
    use crate::view::NicView;

    #[test]
    fn a_nic_that_is_too_small_for_a_job_is_not_asked_for_another_one() {
        let mut totals = ResourceMap::<u32>::default();
        for resource in Resource::ALL {
            totals[resource] = 100;
        }
        totals[Resource::Tles] = u32::from(MIN_TLES) - 1;
        let device = DeviceId::new(0);
        let nic = Seen {
            device,
            usable: true,
            view: NicView {
                services: Vec::new(),
                usage: NicUsage::new(device, totals, Vec::new()),
            },
        };
        let policy = LimitPolicy::hpe_recommended();
        let job = JobLimits::planned(policy, 1, Mode::Strict);
        let found = check(&nic, &AuditOptions { job, ..AuditOptions::default() }).unwrap();
        assert_eq!(found.to_string(), "error: cxi0: no such job fits, even alone");
    }
}
