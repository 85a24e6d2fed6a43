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

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            device,
            resource,
            wanted,
            available,
            reason,
        } = self;
        write!(
            f,
            "{device}: {wanted} {resource} wanted, {available} available: "
        )?;
        match reason {
            CutReason::PolicyMax => f.write_str("the policy allows no more"),
            CutReason::DeviceTotal => f.write_str("the NIC has no more"),
            CutReason::Held(by) if by.is_empty() => f.write_str("the NIC has no more"),
            CutReason::Held(by) => {
                for (position, held) in by.iter().enumerate() {
                    if position > 0 {
                        f.write_str(", ")?;
                    }
                    write!(f, "{} held by {held}", held.amount)?;
                }
                Ok(())
            }
            CutReason::NoTlePool(by) => pools(f, "TLE", by),
            CutReason::NoLePool(by) => pools(f, "LE", by),
            CutReason::BestEffort => f.write_str("best effort reserves nothing"),
        }
    }
}

fn pools(f: &mut fmt::Formatter<'_>, kind: &str, by: &[HeldBy]) -> fmt::Result {
    write!(f, "all {} {kind} pools are taken, by ", by.len())?;
    for (position, held) in by.iter().enumerate() {
        if position > 0 {
            f.write_str(", ")?;
        }
        write!(f, "{held}")?;
    }
    Ok(())
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
