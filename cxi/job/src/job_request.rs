//! Requests: the services that a job should get on every NIC.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

use super::limits::{LimitPolicy, Mode, NicUsage, RgidSharing, plan};
use super::node::NodeNic;
use cxi::{
    DeviceId, InvalidSpec, Limits, LnisPerRgid, Member, Members, ServiceSpec, TrafficClasses, Vni,
    VniAccess, VniRange,
};
use cxi_site::pool::DEFAULT_VNIS;

/// Request of a job: one service on each NIC, with the same settings apart from the limits that the
/// NIC allows.
///
/// ```
/// use cxi::Vni;
/// use cxi_job::limits::{LimitPolicy, Mode};
/// use cxi_job::{JobLimits, JobRequest, NicPolicy};
///
/// let request = JobRequest::builder()
///     .uid(1000)
///     .vni(Vni::new(4034)?)
///     .limits(JobLimits::Planned {
///         policy: LimitPolicy::hpe_recommended(),
///         size: 64,
///         mode: Mode::ScaleBack { floor: 1 },
///     })
///     .nics(NicPolicy::AnyUsable(1))
///     .build()?;
/// assert_eq!(request.vnis().to_string(), "4034");
/// assert_eq!(
///     JobRequest::builder()
///         .vni(Vni::new(4034)?)
///         .build()
///         .unwrap_err()
///         .to_string(),
///     "no member: name the uid, gid or network namespace of the job, or every user of the node can \
///      use its services"
/// );
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRequest {
    pub(super) spec: ServiceSpec,
    pub(super) limits: JobLimits,
    pub(super) rgids: RgidSharing,
    pub(super) nics: NicPolicy,
    pub(super) adopt: bool,
}

/// Share of each NIC that a job should have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum JobLimits {
    /// No limits. The driver then reserves 8 TLEs and takes one of the NIC's 4 TLE pools for them,
    /// so three such jobs fit on a NIC.
    #[default]
    Unlimited,
    /// These, on every NIC.
    Fixed(Limits),
    /// Calculated from the job's size and what each NIC has; see [`crate::limits`].
    ///
    /// In the modes that scale back, a last-moment refusal by the driver is scaled back too, and
    /// recorded in the [grant](crate::Grant).
    Planned {
        /// The shares for each unit of size.
        policy: LimitPolicy,
        /// The job's size on this node: usually its number of cores.
        size: u32,
        /// Reaction if there is not enough.
        mode: Mode,
    },
}

impl JobLimits {
    /// Calculated from the job's size and what each NIC has.
    #[must_use]
    pub const fn planned(policy: LimitPolicy, size: u32, mode: Mode) -> Self {
        Self::Planned { policy, size, mode }
    }

    /// The limits before any cut: what a NIC without other services would allow.
    pub(super) fn asked(&self, usage: &NicUsage) -> Option<Limits> {
        match self {
            Self::Unlimited => None,
            Self::Fixed(limits) => Some(*limits),
            Self::Planned { policy, size, .. } => {
                let alone = NicUsage::new(usage.device, usage.totals, Vec::new());
                plan(policy, *size, &alone, Mode::Strict).ok().map(|plan| plan.limits)
            }
        }
    }
}

/// NICs that a job should get.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NicPolicy {
    /// Every NIC of the node; an unusable one is an error. A virtual function does not count:
    /// services are made on its physical function.
    #[default]
    All,
    /// The usable ones; fewer than this many are an error. The others are listed in the
    /// [grant](crate::Grant), with the reasons.
    AnyUsable(usize),
    /// These; an unusable one is an error.
    Listed(BTreeSet<DeviceId>),
}

impl NicPolicy {
    /// Returns whether a job gets a service on this NIC. One that is asked for and unusable is
    /// included: the job cannot start.
    #[must_use]
    pub fn includes(&self, nic: &NodeNic) -> bool {
        match self {
            Self::All => !nic.is_virtual_function(),
            Self::AnyUsable(_) => nic.is_usable(),
            Self::Listed(listed) => listed.contains(&nic.id()),
        }
    }
}

impl JobRequest {
    /// Starts building a request. It needs a member and VNIs.
    pub fn builder() -> JobRequestBuilder {
        JobRequestBuilder::default()
    }

    /// Returns the members that may use the services.
    #[must_use]
    pub fn members(&self) -> Members {
        self.spec.members().copied().unwrap_or_default()
    }

    /// The VNIs.
    #[must_use]
    pub fn vnis(&self) -> VniAccess {
        self.spec.vnis()
    }

    /// The traffic classes.
    pub(crate) fn traffic_classes(&self) -> TrafficClasses {
        self.spec.traffic_classes().unwrap_or_default()
    }

    /// Returns the NICs.
    pub(crate) const fn nics(&self) -> &NicPolicy {
        &self.nics
    }
}

/// Builds a [`JobRequest`].
#[derive(Debug, Clone)]
#[must_use]
pub struct JobRequestBuilder {
    members: Vec<Member>,
    vnis: Vec<Vni>,
    range: Option<VniRange>,
    traffic_classes: TrafficClasses,
    limits: JobLimits,
    rgids: RgidSharing,
    nics: NicPolicy,
    adopt: bool,
    default_vnis: bool,
}

impl Default for JobRequestBuilder {
    fn default() -> Self {
        Self {
            members: Vec::new(),
            vnis: Vec::new(),
            range: None,
            traffic_classes: TrafficClasses::LOW_LATENCY | TrafficClasses::BEST_EFFORT,
            limits: JobLimits::default(),
            rgids: RgidSharing::default(),
            nics: NicPolicy::default(),
            adopt: true,
            default_vnis: false,
        }
    }
}

impl JobRequestBuilder {
    /// Admits processes of this user.
    pub fn uid(self, uid: u32) -> Self {
        self.member(Member::Uid(uid))
    }

    /// Admits a member; at most two, and a network namespace only on its own.
    pub fn member(mut self, member: Member) -> Self {
        self.members.push(member);
        self
    }

    /// Adds a VNI; at most four. The first is the application's.
    pub fn vni(mut self, vni: Vni) -> Self {
        self.vnis.push(vni);
        self
    }

    /// Adds VNIs; at most four in all.
    pub fn vnis(mut self, vnis: impl IntoIterator<Item = Vni>) -> Self {
        self.vnis.extend(vnis);
        self
    }

    /// Requests a block of VNIs instead. Needs SHS 13.1 or later.
    pub fn vni_range(mut self, range: VniRange) -> Self {
        self.range = Some(range);
        self
    }

    /// Sets the traffic classes. The default is LOW_LATENCY and BEST_EFFORT.
    pub fn traffic_classes(mut self, classes: TrafficClasses) -> Self {
        self.traffic_classes = classes;
        self
    }

    /// Sets how much of each NIC the job gets. The default is no limits.
    pub fn limits(mut self, limits: JobLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets how many LNIs share an RGID, for jobs of more than 255 processes on a NIC.
    pub fn lnis_per_rgid(mut self, count: LnisPerRgid) -> Self {
        self.rgids = RgidSharing::Exactly(count);
        self
    }

    /// Lets as many LNIs share an RGID as it takes for this many processes, spread evenly over
    /// `nics` NICs (by default all that the job gets), with the RGIDs that are free on each NIC
    /// ([`lnis_per_rgid`](crate::limits::lnis_per_rgid)). Where the driver does not say how many
    /// are free, up to SHS 12.0, nothing is shared.
    pub fn spread(mut self, processes: u32, nics: Option<u32>) -> Self {
        self.rgids = RgidSharing::Spread { processes, nics };
        self
    }

    /// Sets which NICs the job gets. The default is all, and all must be usable.
    pub fn nics(mut self, policy: NicPolicy) -> Self {
        self.nics = policy;
        self
    }

    /// Sets whether an existing service with the same members, VNIs, traffic classes and limits is
    /// taken for the job's own, so that a prolog can run twice. The default is true.
    pub fn adopt(mut self, adopt: bool) -> Self {
        self.adopt = adopt;
        self
    }

    /// Sets whether the job may have VNIs of the default service, 1 and 10: where that is enabled,
    /// every user of a node can use them. The default is false.
    pub fn default_vnis(mut self, allow: bool) -> Self {
        self.default_vnis = allow;
        self
    }

    /// Checks everything that does not depend on the NICs.
    ///
    /// # Errors
    ///
    /// [`InvalidJobRequest`] says what is wrong and what would be right.
    pub fn build(self) -> Result<JobRequest, InvalidJobRequest> {
        if self.members.is_empty() {
            return Err(InvalidJobRequest::NoMember);
        }
        if self.traffic_classes.contains(TrafficClasses::ETHERNET) {
            return Err(InvalidJobRequest::Ethernet);
        }
        match &self.nics {
            NicPolicy::AnyUsable(0) => return Err(InvalidJobRequest::NoNicWanted),
            NicPolicy::Listed(nics) if nics.is_empty() => {
                return Err(InvalidJobRequest::NoNicWanted);
            }
            _ => {}
        }
        let mut spec =
            ServiceSpec::builder().members(self.members).traffic_classes(self.traffic_classes);
        if !self.vnis.is_empty() {
            spec = spec.vnis(self.vnis);
        }
        if let Some(range) = self.range {
            spec = spec.vni_range(range);
        }
        if let JobLimits::Fixed(limits) = self.limits {
            spec = spec.limits(limits);
        }
        let spec = spec.build()?;
        let vnis = spec.vnis();
        let default = vnis.iter().find(|vni| DEFAULT_VNIS.contains(&vni.get()));
        if let (Some(vni), false) = (default, self.default_vnis) {
            return Err(InvalidJobRequest::DefaultVni(vni));
        }
        Ok(JobRequest {
            spec,
            limits: self.limits,
            rgids: self.rgids,
            nics: self.nics,
            adopt: self.adopt,
        })
    }
}

/// Reason for which a request is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidJobRequest {
    /// No member is named.
    #[error(
        "no member: name the uid, gid or network namespace of the job, or every user of the node can \
         use its services"
    )]
    NoMember,
    /// The Ethernet class.
    #[error(
        "traffic class ETHERNET is not for jobs: expected dedicated-access, low-latency, \
         bulk-data or best-effort"
    )]
    Ethernet,
    /// The request is for no NIC.
    #[error("no NIC requested: expected at least one")]
    NoNicWanted,
    /// A VNI of the default service, which jobs get only if [it is
    /// permitted](JobRequestBuilder::default_vnis).
    #[error(
        "VNI {0} is one of the default service's, which every user of a node may have: expected another \
         VNI than 1 and 10"
    )]
    DefaultVni(Vni),
    /// The specification of the services is invalid.
    #[error(transparent)]
    Spec(#[from] InvalidSpec),
}
