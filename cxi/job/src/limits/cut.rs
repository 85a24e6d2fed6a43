//! What a job does not get, and why.

use std::fmt;

use super::nic_usage::HeldBy;
use cxi::{DeviceId, Resource};

/// A reservation that is smaller than the policy says.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Cut {
    /// The NIC.
    pub device: DeviceId,
    /// The resource.
    pub resource: Resource,
    /// What the policy asks for at the job's size.
    pub wanted: u32,
    /// What is available to the job.
    pub available: u32,
    /// Why no more is available.
    pub reason: CutReason,
}

/// Why a reservation is smaller than the policy says.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
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
    /// What is missing and why, without the NIC's name.
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
        format!(
            "{} {} wanted, {} available: {reason}",
            self.wanted, self.resource, self.available
        )
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

/// Why there is no plan: each shortage, with the services that hold what is missing.
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
    fn what_nobody_is_known_to_hold_is_not_there() {
        let cut = Cut {
            device: DeviceId::new(1),
            resource: Resource::Cts,
            wanted: 9,
            available: 5,
            reason: CutReason::Held(Vec::new()),
        };
        assert_eq!(
            cut.to_string(),
            "cxi1: 9 CTs wanted, 5 available: the NIC has no more"
        );
    }
}
