//! Planning limits from policy, size and usage.

use serde::{Deserialize, Serialize};
use std::fmt;

use cxi::pools::MIN_TLES;
use cxi::{DeviceId, Limit, Limits, Resource};

use super::nic_usage::{HeldBy, NicUsage, ServiceUsage};
use super::policy::LimitPolicy;

/// Reaction if a job cannot have everything that the policy asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Mode {
    /// Refuse the job.
    #[default]
    Strict,
    /// Reserve what is available, but not less than the policy asks for at size `floor`: 1 is one
    /// rank's worth.
    ///
    /// Pools are all or nothing, whatever the floor: without a free TLE pool, or with fewer than 8
    /// TLEs, there are no TLEs; without a free LE pool no LEs are reserved.
    ScaleBack {
        /// The size.
        floor: u32,
    },
    /// Reserve nothing and share everything up to the maximum. TLEs, which cannot be shared, are
    /// still reserved as far as available.
    BestEffort,
}

impl Mode {
    /// The least reservation that is still acceptable; `None` if only the full amount is.
    pub(crate) fn floor(self, policy: &LimitPolicy, resource: Resource) -> Option<u32> {
        match self {
            Self::Strict => None,
            Self::ScaleBack { floor } => Some(policy.get(resource).def.saturating_mul(floor)),
            Self::BestEffort => Some(0),
        }
    }
}

/// The limits for a job's service on one NIC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LimitPlan {
    /// The NIC.
    pub device: DeviceId,
    /// The limits of the service.
    pub limits: Limits,
    /// Resources that are less than the policy asks for, in the driver's order.
    pub cuts: Vec<Cut>,
}

/// Plans the limits of a job's service on one NIC. Pure arithmetic on its arguments.
///
/// # Errors
/// [`PlanError`] names everything that is short, and the services that hold it.
pub fn plan(
    policy: &LimitPolicy,
    size: u32,
    nic: &NicUsage,
    mode: Mode,
) -> Result<LimitPlan, PlanError> {
    let mut planner =
        Planner { policy, count: size, nic, mode, cuts: Vec::new(), short: Vec::new() };
    let limits = Limits::from_fn(|resource| match resource {
        Resource::Tles => planner.tles(),
        _ => planner.resource(resource),
    });
    if planner.short.is_empty() {
        Ok(LimitPlan { device: nic.device, limits, cuts: planner.cuts })
    } else {
        Err(PlanError { short: planner.short })
    }
}

struct Planner<'a> {
    policy: &'a LimitPolicy,
    count: u32,
    nic: &'a NicUsage,
    mode: Mode,
    cuts: Vec<Cut>,
    short: Vec<Cut>,
}

/// Bounds of one resource.
struct Bounds {
    wanted: u32,
    max: u32,
    /// The reservation before services that come and go are subtracted.
    bounded: u32,
    available: u32,
}

impl Planner<'_> {
    fn bounds(&self, resource: Resource) -> Bounds {
        let policy = self.policy.get(resource);
        let total = self.nic.totals[resource];
        let held = self.subtracted().map(|service| service.holds(resource));
        let available = held.fold(total, |left, held| left.saturating_sub(held.into()));
        let bound = if self.policy.max_of_headroom { available } else { total };
        let wanted = policy.asked(self.count);
        Bounds {
            wanted,
            max: policy.max.min(bound),
            bounded: wanted.min(policy.max).min(self.headroom(resource)),
            available,
        }
    }

    /// Returns the number that is there at any time: the total, less the holdings of permanent
    /// services if the policy subtracts them.
    fn headroom(&self, resource: Resource) -> u32 {
        self.bounding(resource).fold(self.nic.totals[resource], |left, service| {
            left.saturating_sub(service.holds(resource).into())
        })
    }

    fn bounding(&self, resource: Resource) -> impl Iterator<Item = &ServiceUsage> {
        let held = self.subtracted().filter(|_| self.policy.max_of_headroom);
        held.filter(move |service| service.is_permanent() && service.holds(resource) > 0)
    }

    fn subtracted(&self) -> impl Iterator<Item = &ServiceUsage> {
        self.nic.services.iter().filter(|service| self.policy.subtracts(service))
    }

    fn resource(&mut self, resource: Resource) -> Limit {
        let Bounds { wanted, max, bounded, available } = self.bounds(resource);
        if self.mode == Mode::BestEffort {
            // A cut is recorded even where the NIC has none of the resource.
            if wanted.min(self.policy.get(resource).max) > 0 {
                self.record(false, resource, wanted, 0, CutReason::BestEffort);
            }
            return Limit::at_most(narrow(max));
        }
        if resource == Resource::Les && bounded > 0 && self.le_pools_taken() {
            let reason = CutReason::NoLePool(holders(self.nic.le_pool_holders(), resource));
            self.record(self.mode == Mode::Strict, resource, wanted, 0, reason);
            return Limit::at_most(narrow(max));
        }
        if bounded > available {
            let reason = CutReason::Held(self.held(resource));
            let floor = self.mode.floor(self.policy, resource);
            let floor = floor.map_or(bounded, |floor| floor.min(bounded));
            self.record(available < floor, resource, wanted, available, reason);
        } else if bounded < wanted {
            self.record_bound(resource, wanted, bounded);
        }
        let reserved = narrow(bounded.min(available).min(max));
        Limit::new(reserved, narrow(max)).unwrap_or(Limit::exactly(reserved))
    }

    /// The driver reserves all TLEs of a service, at least 8, in a pool.
    fn tles(&mut self) -> Limit {
        let resource = Resource::Tles;
        let Bounds { wanted, bounded, available, .. } = self.bounds(resource);
        if !self.policy.tles || bounded == 0 {
            return Limit::NONE;
        }
        let least = u32::from(MIN_TLES);
        let raised = bounded.max(least);
        if self.nic.reservations().tle_pools_left() == 0 {
            let reason = CutReason::NoTlePool(holders(self.nic.tle_pool_holders(), resource));
            self.record(self.mode == Mode::Strict, resource, wanted, 0, reason);
            return Limit::NONE;
        }
        if raised > available {
            let got = if available < least { 0 } else { available };
            let reason = CutReason::Held(self.held(resource));
            let strict = self.mode == Mode::Strict;
            let left = if strict { available } else { got };
            self.record(strict, resource, wanted, left, reason);
            return Limit::exactly(narrow(got));
        }
        if bounded < wanted {
            self.record_bound(resource, wanted, raised);
        }
        Limit::exactly(narrow(raised))
    }

    fn le_pools_taken(&self) -> bool {
        self.nic.reservations().le_pools_left() == 0
    }

    fn held(&self, resource: Resource) -> Vec<HeldBy> {
        let holding = self.subtracted().filter(|service| service.holds(resource) > 0);
        holders(holding, resource)
    }

    fn bound_reason(&self, resource: Resource) -> CutReason {
        let (max, total) = (self.policy.get(resource).max, self.nic.totals[resource]);
        if self.headroom(resource) < max.min(total) {
            CutReason::Held(holders(self.bounding(resource), resource))
        } else if max < total {
            CutReason::PolicyMax
        } else {
            CutReason::DeviceTotal
        }
    }

    /// Records that a job can never get what it asks for. What the policy itself allows no more of is
    /// no shortage.
    fn record_bound(&mut self, resource: Resource, wanted: u32, available: u32) {
        let reason = self.bound_reason(resource);
        let is_short = self.mode == Mode::Strict && reason == CutReason::DeviceTotal;
        self.record(is_short, resource, wanted, available, reason);
    }

    /// Records that a job gets less than it asks for; with `is_short`, that it gets no plan.
    fn record(
        &mut self,
        is_short: bool,
        resource: Resource,
        wanted: u32,
        available: u32,
        reason: CutReason,
    ) {
        let cuts = if is_short { &mut self.short } else { &mut self.cuts };
        cuts.push(Cut { device: self.nic.device, resource, wanted, available, reason });
    }
}

fn holders<'a>(
    services: impl Iterator<Item = &'a ServiceUsage>,
    resource: Resource,
) -> Vec<HeldBy> {
    services.map(|service| HeldBy::of(service, resource)).collect()
}

/// The kernel counts in 16 bits.
fn narrow(count: u32) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}

/// A reservation that is smaller than the policy says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Cut {
    /// The NIC.
    pub device: DeviceId,
    /// The resource.
    pub resource: Resource,
    /// Number that the policy asks for at the job's size.
    pub wanted: u32,
    /// Number that is available to the job.
    pub available: u32,
    /// The reason for which no more is available.
    pub reason: CutReason,
}

/// Reason for which a reservation is smaller than the policy says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CutReason {
    /// The policy has a maximum.
    PolicyMax,
    /// The device has no more.
    DeviceTotal,
    /// Other services hold it.
    Held(Vec<HeldBy>),
    /// All TLE pools are taken.
    NoTlePool(Vec<HeldBy>),
    /// All LE pools are taken.
    NoLePool(Vec<HeldBy>),
    /// Nothing is reserved in this mode.
    BestEffort,
}

impl Cut {
    /// Returns the shortage and its reason, without the NIC's name.
    #[must_use]
    pub fn text(&self) -> String {
        let reason = match &self.reason {
            CutReason::PolicyMax => "the policy allows no more".to_owned(),
            CutReason::Held(by) if !by.is_empty() => {
                list(by, |held| format!("{} held by {held}", held.amount))
            }
            CutReason::DeviceTotal | CutReason::Held(_) => "the NIC has no more".to_owned(),
            CutReason::NoTlePool(by) => pools("TLE", by),
            CutReason::NoLePool(by) => pools("LE", by),
            CutReason::BestEffort => "best effort reserves nothing".to_owned(),
        };
        format!("{} {} wanted, {} available: {reason}", self.wanted, self.resource, self.available)
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.device, self.text())
    }
}

fn pools(kind: &str, by: &[HeldBy]) -> String {
    let services = list(by, HeldBy::to_string);
    format!("all {} {kind} pools are taken, by {services}", by.len())
}

fn list(by: &[HeldBy], one: impl Fn(&HeldBy) -> String) -> String {
    by.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Reason for which there is no plan: each shortage, with the services that hold the resource.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", sentences(short))]
#[non_exhaustive]
pub struct PlanError {
    /// The shortages, in the driver's order.
    pub short: Vec<Cut>,
}

fn sentences(short: &[Cut]) -> String {
    let lines: Vec<String> = short.iter().map(Cut::to_string).collect();
    lines.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_known_holder_is_left_out() {
        let cut = Cut {
            device: DeviceId::new(1),
            resource: Resource::Cts,
            wanted: 9,
            available: 5,
            reason: CutReason::Held(Vec::new()),
        };
        assert_eq!(cut.to_string(), "cxi1: 9 CTs wanted, 5 available: the NIC has no more");
    }
}
