//! Size of a job on a node, and the services that follow from it.

use std::collections::BTreeMap;
use std::fmt;

use cxi::{Limit, LnisPerRgid, Resource, TrafficClasses};

use super::keys::{self, ModeName, PolicyName};
use super::network::NetworkOptions;
use crate::limits::{Mode, ResourcePolicy, Subtract};
use crate::{JobLimits, JobRequestBuilder, NicPolicy};
use cxi_site::settings::{Settings, SettingsError};

/// Size of a job on a node, and the properties of its services. What is `None` is as the site's
/// settings say.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct JobShape {
    /// Its size, usually its number of cores; `None` for no limits: the job may have everything that the NIC has.
    pub size: Option<u32>,
    /// Policy for the number of each resource for each unit of size.
    pub policy: Option<PolicyName>,
    /// Limits that replace what the policy gives.
    pub limits: BTreeMap<Resource, Limit>,
    /// No TLEs, so that more than three jobs fit on a NIC.
    pub no_tles: bool,
    /// Reaction if not enough is available.
    pub mode: Option<ModeName>,
    /// With [`ModeName::ScaleBack`]: reserve at least as much as for a job of this size.
    pub floor: Option<u32>,
    /// Its traffic classes.
    pub traffic_classes: Option<TrafficClasses>,
    /// Number of LNIs that may share an RGID.
    pub lnis_per_rgid: Option<LnisPerRgid>,
    /// Number of NICs that suffice; `None` for all.
    pub nics_at_least: Option<usize>,
}

impl fmt::Display for JobShape {
    /// All that it says, so that two shapes with the same text are the same.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said =
            vec![self.size.map_or_else(|| "unlimited".to_owned(), |it| format!("size {it}"))];
        said.extend(self.policy.map(|policy| format!("policy {policy}")));
        said.extend(self.limits.iter().map(|(resource, limit)| format!("{resource} {limit}")));
        said.extend(self.no_tles.then(|| "no TLEs".to_owned()));
        said.extend(self.mode.map(|mode| format!("mode {mode}")));
        said.extend(self.floor.map(|floor| format!("floor {floor}")));
        said.extend(self.traffic_classes.map(|classes| format!("classes {classes}")));
        said.extend(self.lnis_per_rgid.map(|count| format!("{count} LNIs per RGID")));
        said.extend(self.nics_at_least.map(|count| format!("at least {count} NICs")));
        f.write_str(&said.join(", "))
    }
}

impl JobShape {
    /// The shape of a job of this size, usually its number of cores.
    #[must_use]
    pub fn of_size(size: u32) -> Self {
        Self { size: Some(size), ..Self::default() }
    }

    /// The limits on each NIC.
    ///
    /// # Errors
    ///
    /// A setting is invalid.
    pub fn limits(
        &self,
        network: &NetworkOptions,
        settings: &Settings,
    ) -> Result<JobLimits, SettingsError> {
        let Some(size) = self.size else { return Ok(JobLimits::Unlimited) };
        let mut policy = settings.or(self.policy, &keys::POLICY)?.policy();
        for (resource, limit) in &self.limits {
            let fixed = ResourcePolicy::fixed(limit.reserved().into(), limit.max().into());
            policy = policy.with(*resource, fixed);
        }
        policy = network.apply(policy);
        if self.no_tles || !network.asks_for_tles() && !settings.get(&keys::TLES)? {
            policy = policy.tles(false);
        }
        policy = policy.subtract(match network.adjust_limits {
            Some(false) => Subtract::None,
            _ => Subtract::System,
        });
        let mode = match settings.or(self.mode, &keys::MODE)? {
            ModeName::Strict => Mode::Strict,
            ModeName::ScaleBack => {
                Mode::ScaleBack { floor: settings.or(self.floor, &keys::FLOOR)? }
            }
            ModeName::BestEffort => Mode::BestEffort,
        };
        let size = network.depth.unwrap_or(size);
        Ok(JobLimits::planned(policy, size, mode))
    }

    /// A request with this shape.
    ///
    /// # Errors
    ///
    /// A setting is invalid.
    pub fn apply(
        &self,
        mut request: JobRequestBuilder,
        network: &NetworkOptions,
        settings: &Settings,
    ) -> Result<JobRequestBuilder, SettingsError> {
        let classes = network.traffic_classes.or(self.traffic_classes);
        request = request
            .limits(self.limits(network, settings)?)
            .traffic_classes(settings.or(classes, &keys::TRAFFIC_CLASSES)?)
            .default_vnis(settings.get(&keys::ALLOW_DEFAULT_VNIS)?);
        if let Some(count) = self.nics_at_least {
            request = request.nics(NicPolicy::AnyUsable(count));
        }
        if let Some(count) = self.lnis_per_rgid {
            return Ok(request.lnis_per_rgid(count));
        }
        // With Slurm's policy, or if the site or the user asks for it, as many LNIs share an RGID
        // as Slurm's plugin would allow.
        let slurm = settings.or(self.policy, &keys::POLICY)? == PolicyName::Slurm;
        let nics = network.nic_distribution_count;
        Ok(match self.size {
            Some(size) if slurm || nics.is_some() => {
                let usual = settings.get(&keys::NIC_DISTRIBUTION_COUNT)?;
                request.spread(size, nics.or(usual.map(Into::into)))
            }
            _ => request,
        })
    }
}
