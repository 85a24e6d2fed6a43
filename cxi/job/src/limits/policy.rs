//! Policies: the number of each resource that a job should have.

use super::nic_usage::ServiceUsage;
use cxi::{Resource, ResourceMap};
use serde::{Deserialize, Serialize};

/// Share of one resource in a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[allow(
    clippy::exhaustive_structs,
    reason = "the three numbers that schedulers have in their configuration"
)]
pub struct ResourcePolicy {
    /// Reserved for each unit of size, unless `res` is given.
    pub def: u32,
    /// Reserved whatever the size; may be 0.
    pub res: Option<u32>,
    /// The most that the job may use, or what the device has if that is less.
    pub max: u32,
}

impl ResourcePolicy {
    /// `def` reserved for each unit of size, at most `max`.
    #[must_use]
    pub const fn scaled(def: u32, max: u32) -> Self {
        Self { def, res: None, max }
    }

    /// `res` reserved whatever the size, at most `max`.
    #[must_use]
    pub const fn fixed(res: u32, max: u32) -> Self {
        Self { def: 0, res: Some(res), max }
    }

    /// The reservation for a job of this size, before any bound.
    #[must_use]
    pub const fn asked(self, size: u32) -> u32 {
        match self.res {
            Some(res) => res,
            None => self.def.saturating_mul(size),
        }
    }
}

/// Services whose share is subtracted before a job gets its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Subtract {
    /// No service's: the job is planned as if the device were empty, and the driver refuses what is
    /// not available.
    None,
    /// That of the default service and of system services, which are always there.
    #[default]
    System,
    /// That of all services.
    All,
}

/// Policy for the number of each resource that a job should have, by its size.
///
/// ```
/// use cxi::Resource;
/// use cxi_job::limits::{LimitPolicy, ResourcePolicy, Subtract};
///
/// let policy = LimitPolicy::hpe_recommended()
///     .with(Resource::Ptes, ResourcePolicy::scaled(4, 1024))
///     .with(Resource::Cts, ResourcePolicy::fixed(0, 64))
///     .tles(false)
///     .subtract(Subtract::All);
/// assert_eq!(policy.get(Resource::Ptes).asked(10), 40);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitPolicy {
    resources: ResourceMap<ResourcePolicy>,
    pub(super) tles: bool,
    subtract: Subtract,
    pub(super) max_of_headroom: bool,
}

/// Returns the number that both schedulers reserve for each core or CPU.
const fn usual_share(resource: Resource) -> u32 {
    match resource {
        Resource::Txqs | Resource::Eqs | Resource::Acs => 2,
        Resource::Tgqs | Resource::Cts | Resource::Tles => 1,
        Resource::Ptes => 6,
        Resource::Les => 16,
    }
}

impl LimitPolicy {
    /// A policy that asks for nothing, to be filled with [`LimitPolicy::with`].
    #[must_use]
    pub fn empty() -> Self {
        Self {
            resources: ResourceMap::default(),
            tles: true,
            subtract: Subtract::default(),
            max_of_headroom: false,
        }
    }

    /// Returns HPE's recommendation, which Flux uses with the number of cores: for each core 2
    /// TXQs, 1 TGQ, 2 EQs, 1 CT, 1 TLE, 6 PTEs, 16 LEs and 2 ACs; at most what a second-generation
    /// NIC is reported to have, or what the NIC has if that is less.
    #[must_use]
    pub fn hpe_recommended() -> Self {
        let resources = ResourceMap::from_fn(|resource| {
            let max = match resource {
                Resource::Txqs | Resource::Tles | Resource::Ptes => 2048,
                Resource::Tgqs => 1024,
                Resource::Eqs | Resource::Cts => 2047,
                Resource::Les => 16384,
                Resource::Acs => 1022,
            };
            ResourcePolicy::scaled(usual_share(resource), max)
        });
        Self { resources, ..Self::empty() }
    }

    /// Returns Slurm's policy: the same shares for each CPU, at most what a first-generation NIC
    /// has, and no more than system services leave. As in Slurm's plugin, this last bound makes a
    /// reservation smaller in every mode. Where other services leave less, the plugin fails the
    /// step, as [`Mode::Strict`](super::Mode::Strict) does.
    #[must_use]
    pub fn slurm() -> Self {
        let recommended = Self::hpe_recommended();
        Self { max_of_headroom: true, ..recommended }
            .with(Resource::Txqs, ResourcePolicy::scaled(2, 1024))
            .with(Resource::Tgqs, ResourcePolicy::scaled(1, 512))
    }

    /// Sets one resource.
    #[must_use]
    pub fn with(mut self, resource: Resource, policy: ResourcePolicy) -> Self {
        self.resources[resource] = policy;
        self
    }

    /// Sets whether jobs get TLEs: at least 8, and no more than are reserved. Each such job takes one
    /// of the NIC's 4 TLE pools, one of which the default service has, so three of them fit on a NIC.
    /// Without TLEs, there are no triggered operations, and any number of jobs fit.
    #[must_use]
    pub const fn tles(mut self, tles: bool) -> Self {
        self.tles = tles;
        self
    }

    /// Sets whose share is subtracted first.
    #[must_use]
    pub const fn subtract(mut self, subtract: Subtract) -> Self {
        self.subtract = subtract;
        self
    }

    /// Returns the policy's share of a resource.
    #[must_use]
    pub fn get(&self, resource: Resource) -> ResourcePolicy {
        self.resources[resource]
    }

    pub(super) const fn subtracts(&self, service: &ServiceUsage) -> bool {
        match self.subtract {
            Subtract::None => false,
            Subtract::System => service.is_permanent(),
            Subtract::All => true,
        }
    }
}
