//! How many more jobs fit.

use super::{AuditOptions, Code, Finding, Seen, Severity};
use crate::describe;
use crate::job_request::JobLimits;
use crate::limits::{Bottleneck, Mode, NicUsage, ServiceUsage, forecast};
use cxi::pools::{LE_POOLS, MIN_TLES, TLE_POOLS};
use cxi::{Limit, Limits, Resource};

pub(super) fn check(nic: &Seen, options: &AuditOptions<'_>) -> Option<Finding> {
    let usage = &nic.view.usage;
    let mut limits = options.job.asked(usage).unwrap_or_else(unlimited);
    if let JobLimits::Planned {
        mode: Mode::BestEffort,
        ..
    } = options.job
    {
        for resource in Resource::ALL {
            if resource != Resource::Tles {
                limits[resource] = Limit::at_most(limits[resource].max());
            }
        }
    }
    let forecast = forecast(usage, &limits);
    let (fits, first) = (forecast.fits?, forecast.first_out?);
    if fits > options.few {
        return None;
    }
    let jobs = match fits {
        0 => "no more such job fits".to_owned(),
        1 => "one more such job fits".to_owned(),
        2 => "two more such jobs fit".to_owned(),
        fits => format!("{fits} more such jobs fit"),
    };
    Some(Finding {
        severity: if fits == 0 {
            Severity::Error
        } else {
            Severity::Warning
        },
        code: Code::NearlyExhausted,
        device: nic.device,
        service: None,
        text: format!("{jobs}: {}", bottleneck(nic, first, &limits)),
    })
}

/// What a service without limits takes.
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
    let services = usage.services.iter();
    services
        .filter(|service| service.limits[resource].reserved() > 0)
        .collect()
}
