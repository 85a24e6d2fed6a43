//! Finding problems with a node's services before a job runs into them.
//!
//! ```
//! # use std::sync::Arc;
//! # use cxi::Device;
//! # use cxi_mock::{Credentials, MockNode, NicConfig};
//! # let config = NicConfig::new().parameters(|params| params.disable_default_svc = false);
//! # let mock = MockNode::with_nics(1, &config)?;
//! # let file = mock.nics()[0].open()?.transport(Credentials::user(1000, 1000));
//! # let node = cxi_job::Node::from_devices([Device::cxi0(Arc::new(file))]);
//! use cxi_job::AuditOptions;
//! use cxi_job::audit::Code;
//!
//! let audit = node.audit(&AuditOptions::default());
//! assert_eq!(audit.findings[0].code, Code::DefaultServiceEnabled);
//! assert_eq!(
//!     audit.findings[0].to_string(),
//!     "warning: cxi0: the default service is enabled: every user of the node can use VNIs 1,10, \
//!      unseen by the scheduler; disable it"
//! );
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

mod across;
mod idle;
mod link;
mod room;
mod services;

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

use super::job_request::JobLimits;
use super::limits::{LimitPolicy, Mode};
use super::node::Node;
use super::parallel;
use super::view::NicView;
use cxi::{DeviceId, Member, ServiceId};
use cxi_site::IdSet;
use cxi_site::pool::Timestamp;

pub use idle::{IdleService, Observation};

/// A problem, or one about to arise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Finding {
    /// Severity of the finding.
    pub severity: Severity,
    /// The kind of finding, for programs.
    pub code: Code,
    /// The NIC concerned.
    pub device: DeviceId,
    /// The service concerned.
    pub service: Option<ServiceId>,
    /// The problem and its remedy, for people.
    pub text: String,
}

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Should be fixed.
    Warning,
    /// Jobs are not isolated, or cannot run.
    Error,
}

/// The kind of finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Code {
    /// The node should have a NIC that it does not have.
    NicMissing,
    /// A job cannot use the NIC.
    NicUnusable,
    /// The NIC does not list its services.
    NicUnreadable,
    /// The link restarts repeatedly.
    LinkUnstable,
    /// The default service is enabled, and should not be.
    DefaultServiceEnabled,
    /// The default service is disabled, or not there, and should be enabled.
    DefaultServiceDisabled,
    /// An enabled service is open to everyone.
    NoMembers,
    /// An enabled service lists no VNIs.
    NoVnis,
    /// Enabled services of different users have the same VNI.
    SharedVni,
    /// A service was abandoned before it had a VNI.
    Unfinished,
    /// A member is a user that the node does not know.
    DeadUser,
    /// A VNI is not in the scheduler's pool.
    OutsidePool,
    /// No record says who made a service.
    Foreign,
    /// A VNI is not in the range of its service's owner.
    OutsideRange,
    /// Two owners may use the same VNIs.
    RangesOverlap,
    /// A service has had nothing in use for a long time.
    Idle,
    /// Few or no more jobs fit.
    NearlyExhausted,
    /// A job's service is not on all NICs.
    MissingOnNic,
    /// A job's services have different limits or traffic classes.
    ServicesDiffer,
    /// The default service differs between NICs.
    DefaultServicesDiffer,
}

impl Code {
    /// Returns the severity of a finding of this kind. [`Code::NearlyExhausted`] may turn out more
    /// severe.
    const fn severity(self) -> Severity {
        match self {
            Self::NicMissing
            | Self::NicUnusable
            | Self::NicUnreadable
            | Self::NoMembers
            | Self::NoVnis
            | Self::SharedVni
            | Self::OutsideRange
            | Self::RangesOverlap => Severity::Error,
            Self::LinkUnstable
            | Self::DefaultServiceEnabled
            | Self::DefaultServiceDisabled
            | Self::Unfinished
            | Self::DeadUser
            | Self::OutsidePool
            | Self::Idle
            | Self::NearlyExhausted
            | Self::MissingOnNic
            | Self::DefaultServicesDiffer => Severity::Warning,
            Self::ServicesDiffer | Self::Foreign => Severity::Info,
        }
    }
}

impl Finding {
    fn new(code: Code, device: DeviceId, service: Option<ServiceId>, text: String) -> Self {
        Self { severity: code.severity(), code, device, service, text }
    }
}

/// Findings of an audit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Audit {
    /// The problems, by NIC and service.
    pub findings: Vec<Finding>,
    /// The idle services, for the next audit.
    pub observation: Observation,
}

impl Audit {
    /// The worst severity; `None` if nothing was found.
    #[must_use]
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }
}

/// Options of an audit: by default, everything that needs no knowledge of the site.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AuditOptions<'a> {
    /// The scheduler's VNIs: user services with other VNIs are reported.
    pub pool: Option<IdSet>,
    /// Number of NICs that the node should have; `None` for those that it has.
    pub nics: Option<u32>,
    /// The PCI addresses of NICs without a driver, as [`Host::without_driver`](cxi::Host::without_driver)
    /// finds them; `None` if nobody looked.
    pub without_driver: Option<Vec<String>>,
    /// `true` if the default service should be enabled; `None` if that does not matter.
    pub default_service: Option<bool>,
    /// Owners of VNIs, such as another scheduler's group: services with this member that have other
    /// VNIs are reported, and so are owners whose VNIs overlap. An owner may occur again with more.
    pub ranges: Vec<(Member, IdSet)>,
    /// The services of which no record says who made them, as
    /// [`ComputeNode::foreign`](crate::cluster::ComputeNode::foreign) finds them.
    pub foreign: Vec<(DeviceId, ServiceId)>,
    /// Function that says whether a user exists: members that do not exist are reported.
    pub user_exists: Option<fn(u32) -> bool>,
    /// Observation of an earlier audit: services that had nothing in use then and now are reported
    /// if they have been idle for [`idle_after`](Self::idle_after).
    pub earlier: Option<&'a Observation>,
    /// The time.
    pub now: Timestamp,
    /// Longest time that a service may be idle.
    pub idle_after: Duration,
    /// A typical job: NICs with room for [`few`](Self::few) or fewer more such jobs are reported. By
    /// default, a one-core job with the limits that HPE recommends.
    pub job: JobLimits,
    /// Number of jobs that is too few; by default none.
    pub few: u32,
}

impl Default for AuditOptions<'_> {
    fn default() -> Self {
        let policy = LimitPolicy::hpe_recommended();
        Self {
            pool: None,
            nics: None,
            without_driver: None,
            default_service: Some(false),
            ranges: Vec::new(),
            foreign: Vec::new(),
            user_exists: None,
            earlier: None,
            now: Timestamp::default(),
            idle_after: Duration::from_secs(3600),
            job: JobLimits::planned(policy, 1, Mode::Strict),
            few: 0,
        }
    }
}

/// A NIC and what was read from it.
struct Seen {
    device: DeviceId,
    usable: bool,
    view: NicView,
}

impl Node {
    /// Looks for problems with the node's services. Changes nothing and needs no privilege.
    #[must_use]
    pub fn audit(&self, options: &AuditOptions<'_>) -> Audit {
        let mut findings: Vec<Finding> = self.nics().iter().filter_map(unusable).collect();
        findings.extend(self.missing(options));
        findings.extend(self.nics().iter().filter_map(|nic| link::check(nic, options)));
        let nics: Vec<_> = self.manageable().collect();
        let views = parallel::each(&nics, |(_, device)| NicView::read(device));
        let mut seen = Vec::new();
        for ((nic, _), view) in nics.iter().zip(views) {
            let device = nic.id();
            match view {
                Ok(view) => seen.push(Seen { device, usable: nic.is_usable(), view }),
                // A NIC that does not answer at all has already been reported.
                Err(_) if nic.info().is_none() => {}
                Err(error) => {
                    let text = error.to_string();
                    findings.push(Finding::new(Code::NicUnreadable, device, None, text));
                }
            }
        }
        for nic in &seen {
            findings.extend(services::check(nic, options));
            findings.extend(services::shared_vnis(nic));
            findings.extend(services::ranges(nic, options));
            findings.extend(room::check(nic, options));
        }
        findings.extend(across::check(&seen));
        let observation = Observation::of(&seen, options);
        findings.extend(idle::check(&observation, &seen, options));
        findings.sort_by_key(|finding| (finding.device, finding.service, finding.code));
        Audit { findings, observation }
    }
}

/// Largest number of findings that say that a NIC is missing: a setting may name any number.
const MOST_MISSING: u32 = 64;

impl Node {
    /// The NICs that should be there, by the lowest numbers that are not.
    fn missing(&self, options: &AuditOptions<'_>) -> Vec<Finding> {
        let there = self.nics().iter().filter(|nic| !nic.is_virtual_function()).count();
        let there = u32::try_from(there).unwrap_or(u32::MAX);
        let dead = options.without_driver.as_deref();
        let known = u32::try_from(dead.map_or(0, <[_]>::len)).unwrap_or(u32::MAX);
        let missing = options.nics.map_or(known, |wanted| wanted.saturating_sub(there).max(known));
        let expected = options.nics.map_or_else(String::new, |nics| format!(" of {nics} expected"));
        // Which of the missing NICs has which address is not known; that each has one of its own is.
        let mut addresses = dead.into_iter().flatten();
        let numbers = (0..).map(DeviceId::new).filter(|id| self.nic(*id).is_none());
        numbers
            .take(missing.min(MOST_MISSING) as usize)
            .map(|id| {
                let why = match (addresses.next(), dead) {
                    (Some(address), _) => {
                        format!("PCI device {address} has no driver; dmesg says why")
                    }
                    (None, Some(_)) => {
                        "the PCI bus does not show it either; look at the hardware".to_owned()
                    }
                    (None, None) => "look at the PCI bus (lspci) and at dmesg".to_owned(),
                };
                let text = format!("the NIC is not there ({there}{expected}): {why}");
                Finding::new(Code::NicMissing, id, None, text)
            })
            .collect()
    }
}

fn unusable(nic: &super::node::NodeNic) -> Option<Finding> {
    let problems: Vec<String> = nic.problems().iter().map(ToString::to_string).collect();
    if problems.is_empty() || nic.is_virtual_function() {
        return None;
    }
    let text = format!("jobs cannot use the NIC: {}", problems.join("; "));
    Some(Finding::new(Code::NicUnusable, nic.id(), None, text))
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.severity, self.device, self.text)
    }
}
