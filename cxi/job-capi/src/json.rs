//! Arguments as JSON.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cxi::{LnisPerRgid, Member, TrafficClass, Vni, VniAccess, VniRange};
use cxi_ioctl::Errno;
use cxi_job::cluster::keys::{ModeName, PolicyName};
use cxi_job::cluster::{
    Access, Cleaning, ComputeNode, Decision, JobRecord, JobShape, NetworkOptions, ReserveRequest,
    Site, StartingJob, keys,
};
use cxi_job::limits::Mode;
use cxi_job::{AuditOptions, Filter, Grant, JobLimits, JobRequest, NicPolicy, Node};
use cxi_site::HostList;
use cxi_site::{IdSet, JobId, NodeName, StepId, TenantName};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

use crate::controller;
use crate::failure::{Failure, Result};

pub(crate) fn read<T: DeserializeOwned>(what: &str, text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| Failure::invalid(what, &error))
}

pub(crate) fn write<T: Serialize>(value: &T) -> Result<String> {
    let wrong = |error: serde_json::Error| Failure::new(Errno::EIO, error.to_string());
    serde_json::to_string(value).map_err(wrong)
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Open {
    pub(crate) lock: Option<PathBuf>,
    lock_wait_ms: Option<u64>,
}

impl Open {
    pub(crate) fn wait(&self) -> Option<Duration> {
        self.lock_wait_ms.map(Duration::from_millis)
    }
}

/// Request of a job.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Request {
    uid: Option<u32>,
    gid: Option<u32>,
    netns: Option<u32>,
    #[serde(default)]
    vnis: Vec<Vni>,
    vni_range: Option<VniRange>,
    traffic_classes: Option<Vec<TrafficClass>>,
    cores: Option<u32>,
    policy: Option<PolicyName>,
    scale_back: Option<u32>,
    nics_at_least: Option<usize>,
    lnis_per_rgid: Option<LnisPerRgid>,
}

impl Request {
    pub(crate) fn build(self) -> Result<JobRequest> {
        let mut builder = JobRequest::builder().vnis(self.vnis);
        for member in members(self.uid, self.gid, self.netns) {
            builder = builder.member(member);
        }
        if let Some(range) = self.vni_range {
            builder = builder.vni_range(range);
        }
        if let Some(classes) = self.traffic_classes {
            builder = builder.traffic_classes(classes.into_iter().collect());
        }
        if let Some(cores) = self.cores {
            let policy = self.policy.unwrap_or(PolicyName::Hpe).policy();
            let mode = self.scale_back.map_or(Mode::Strict, |floor| Mode::ScaleBack { floor });
            builder = builder.limits(JobLimits::planned(policy, cores, mode));
        }
        if let Some(count) = self.nics_at_least {
            builder = builder.nics(NicPolicy::AnyUsable(count));
        }
        if let Some(count) = self.lnis_per_rgid {
            builder = builder.lnis_per_rgid(count);
        }
        builder.build().map_err(|error| Failure::invalid("request", &error))
    }
}

/// A job on a node of a site.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Place {
    settings: Option<PathBuf>,
    pub(crate) node: NodeName,
    pub(crate) job: JobId,
    pub(crate) component: Option<JobId>,
}

impl Place {
    pub(crate) fn site(&self) -> Result<Site> {
        controller::site(self.settings.as_deref())
    }

    pub(crate) fn node<'a>(&self, site: &'a Site, nics: &'a Node) -> Result<ComputeNode<'a>> {
        Ok(site.node(self.node.clone())?.nics(|| Ok(nics.clone())))
    }
}

/// A job that starts. The controller decides which VNIs it gets, unless the request names them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Starting {
    pub(crate) place: Place,
    request: Request,
    #[serde(default)]
    replace: bool,
}

impl Starting {
    pub(crate) fn starting(&self) -> StartingJob {
        let Request { uid, gid, netns, .. } = self.request;
        let vnis = self.request.vnis.iter().copied();
        let mut access = Access::new(members(uid, gid, netns), vnis);
        access.vni_range = self.request.vni_range;
        let asked = !access.vnis.is_empty() || access.vni_range.is_some();
        let classes = self.request.traffic_classes.as_ref();
        let floor = self.request.scale_back;
        let mut shape = JobShape::default();
        shape.size = self.request.cores;
        shape.policy = self.request.policy;
        shape.mode = floor.map(|_| ModeName::ScaleBack);
        shape.floor = floor;
        shape.traffic_classes = classes.map(|classes| classes.iter().copied().collect());
        shape.lnis_per_rgid = self.request.lnis_per_rgid;
        shape.nics_at_least = self.request.nics_at_least;
        let mut starting = StartingJob::new(self.place.job.clone());
        starting.component.clone_from(&self.place.component);
        starting.access = asked.then_some(access);
        starting.shape = shape;
        starting.replace = self.replace;
        starting
    }
}

/// The result of a recorded prolog; it has no grant if the job needs no VNI.
#[derive(Serialize)]
pub(crate) struct Recorded<'a> {
    pub(crate) grant: Option<&'a Grant>,
    pub(crate) warnings: Vec<String>,
}

fn members(uid: Option<u32>, gid: Option<u32>, netns: Option<u32>) -> impl Iterator<Item = Member> {
    uid.map(Member::Uid).into_iter().chain(gid.map(Member::Gid)).chain(netns.map(Member::NetNs))
}

/// The output of `cxi_job_allocate` or of `cxi --json job prolog`.
#[derive(Deserialize)]
pub(crate) struct Granted {
    pub(crate) grant: Grant,
}

/// The services of a job: those of a grant, or those with certain VNIs and members.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Job {
    grant: Option<Grant>,
    #[serde(rename = "environment")]
    _environment: Option<IgnoredAny>,
    vnis: Option<Vec<Vni>>,
    uid: Option<u32>,
    gid: Option<u32>,
    netns: Option<u32>,
}

impl Job {
    pub(crate) fn filter(self) -> Result<Filter> {
        let wrong = |text: &str| Failure::invalid("job", &text);
        let mut members = members(self.uid, self.gid, self.netns).peekable();
        match (self.grant, self.vnis) {
            (Some(grant), None) if members.peek().is_none() => Ok(Filter::for_grant(&grant)),
            (Some(_), _) => Err(wrong("expected a grant alone, or VNIs and members")),
            (None, Some(vnis)) if vnis.is_empty() => Err(wrong("expected VNIs in vnis")),
            (None, vnis) => Filter::for_job(vnis.unwrap_or_default(), members)
                .ok_or_else(|| wrong("expected a grant, VNIs or members")),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Clean {
    #[serde(default)]
    pub(crate) place: NodePlace,
    pool: Option<IdSet>,
    #[serde(default)]
    live: IdSet,
    live_from: Option<PathBuf>,
    #[serde(default)]
    none_live: bool,
    #[serde(default)]
    foreign: bool,
    #[serde(default)]
    dry_run: bool,
}

/// A node of a site. The place of a job can be used too: its job means nothing here.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NodePlace {
    settings: Option<PathBuf>,
    node: Option<NodeName>,
    #[serde(rename = "job")]
    _job: Option<IgnoredAny>,
    #[serde(rename = "component")]
    _component: Option<IgnoredAny>,
}

impl NodePlace {
    pub(crate) fn site(&self) -> Result<Site> {
        controller::site(self.settings.as_deref())
    }

    /// The name of the node; by default that of this machine.
    pub(crate) fn name(&self) -> Result<NodeName> {
        match &self.node {
            Some(name) => Ok(name.clone()),
            None => NodeName::of_this_machine().map_err(|error| Failure::invalid("place", &error)),
        }
    }

    pub(crate) fn node<'a>(&self, site: &'a Site, nics: &'a Node) -> Result<ComputeNode<'a>> {
        Ok(site.node(self.name()?)?.nics(|| Ok(nics.clone())))
    }
}

impl Clean {
    pub(crate) fn cleaning(&self, site: &Site) -> Result<Cleaning> {
        let pool = match &self.pool {
            Some(pool) => pool.clone(),
            None => site
                .settings()
                .get(&keys::POOL_VNIS)
                .map_err(|error| Failure::invalid("settings", &error))?,
        };
        let mut cleaning = Cleaning::new(pool);
        cleaning.live = self.live.clone();
        cleaning.live_from.clone_from(&self.live_from);
        cleaning.none_live = self.none_live;
        cleaning.foreign = self.foreign;
        cleaning.dry_run = self.dry_run;
        Ok(cleaning)
    }
}

/// The pool of a site. It may name the VNIs that the pool should consist of, and ask to take the lead,
/// which happens last.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pool {
    pub(crate) settings: Option<PathBuf>,
    pub(crate) vnis: Option<IdSet>,
    #[serde(default)]
    pub(crate) rest_ms: u64,
    #[serde(default)]
    pub(crate) lead: bool,
}

/// A job whose VNIs the controller decides on.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reserve {
    pub(crate) settings: Option<PathBuf>,
    job: JobId,
    component: Option<JobId>,
    uid: u32,
    nodes: HostList,
    #[serde(default)]
    network: NetworkOptions,
    vnis: Option<u8>,
    tenant: Option<TenantName>,
}

impl Reserve {
    pub(crate) fn request(self) -> ReserveRequest {
        let mut request = ReserveRequest::new(self.job, self.uid, self.nodes);
        request.component = self.component;
        request.network = self.network;
        request.vnis = self.vnis;
        request.tenant = self.tenant;
        request
    }
}

#[derive(Serialize)]
pub(crate) struct Reserved {
    pub(crate) decision: Decision,
    pub(crate) warnings: Vec<String>,
}

/// The jobs that end for the controller: one job, or all jobs that are not live.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, untagged)]
pub(crate) enum Ending {
    Job { settings: Option<PathBuf>, job: JobId, component: Option<JobId> },
    Live { settings: Option<PathBuf>, live: Vec<JobId> },
}

impl Ending {
    pub(crate) fn settings(&self) -> Option<&Path> {
        let (Self::Job { settings, .. } | Self::Live { settings, .. }) = self;
        settings.as_deref()
    }
}

#[derive(Serialize)]
pub(crate) struct Ended {
    pub(crate) ended: Vec<JobId>,
    pub(crate) warnings: Vec<String>,
}

/// A step of a job on a node.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    pub(crate) place: Place,
    step: Option<String>,
}

impl Step {
    pub(crate) fn id(&self) -> Result<Option<StepId>> {
        let step = self.step.as_deref().map(str::parse);
        step.transpose().map_err(|error| Failure::invalid("step", &error))
    }
}

/// The variables of a step, and those that it must not inherit.
#[derive(Serialize)]
pub(crate) struct Variables {
    pub(crate) set: BTreeMap<&'static str, String>,
    pub(crate) clear: Vec<&'static str>,
}

/// The jobs with a record on a node, and what is wrong with records that cannot be used.
#[derive(Serialize)]
pub(crate) struct Listed<'a> {
    pub(crate) jobs: Vec<ListedJob<'a>>,
    pub(crate) broken: Vec<String>,
}

#[derive(Serialize)]
pub(crate) struct ListedJob<'a> {
    job: &'a JobId,
    state: &'static str,
    vnis: Vec<Vni>,
    vni_range: Option<VniRange>,
    members: &'a [Member],
}

impl<'a> ListedJob<'a> {
    pub(crate) fn of(record: &'a JobRecord) -> Self {
        let (vnis, vni_range) = match record.vnis {
            Some(VniAccess::List(list)) => (list.iter().collect(), None),
            Some(VniAccess::Range(range)) => (Vec::new(), Some(range)),
            _ => (Vec::new(), None),
        };
        Self {
            job: &record.job,
            state: if record.running.is_empty() { "ended" } else { "running" },
            vnis,
            vni_range,
            members: &record.members,
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Audit {
    /// With it, the site's settings and records count, too.
    place: Option<NodePlace>,
    pool: Option<IdSet>,
}

impl Audit {
    pub(crate) fn options(self, nics: &Node) -> Result<AuditOptions<'static>> {
        let mut options = AuditOptions::default();
        options.pool = self.pool;
        let Some(place) = self.place else { return Ok(options) };
        let site = place.site()?;
        let foreign = place.node(&site, nics)?.foreign()?;
        options.foreign = foreign.iter().map(|(nic, service)| (*nic, service.id())).collect();
        let settings = site.settings();
        let invalid = |error| Failure::invalid("settings", &error);
        options.nics = settings.get(&keys::NODE_NICS).map_err(invalid)?.map(NonZeroU32::get);
        let wanted = settings.get(&keys::NODE_DEFAULT_SERVICE).map_err(invalid)?;
        options.default_service = wanted.should_be_enabled();
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    const HEADER: &str = include_str!("../include/cxi_job.h");

    /// The objects in the comment of a function, and the alternatives to their members, without the words
    /// beside them.
    fn examples(function: &str) -> Vec<Value> {
        let (before, _) = HEADER.split_once(&format!("int {function}(")).expect("a declaration");
        let comment = before.rsplit_once("/* ").expect("a comment").1;
        let begin = |line: &&str| !line.starts_with(" *   {");
        let mut rest = comment.lines().skip_while(begin).peekable();
        let mut found = Vec::new();
        while rest.peek().is_some() {
            let (mut object, mut others) = (String::new(), Vec::new());
            for line in rest.by_ref() {
                let line = line.trim_start_matches(" *").trim();
                let (member, beside) = line.split_once("  ").unwrap_or((line, ""));
                object += member;
                let other =
                    beside.trim().strip_prefix("or ").filter(|other| other.contains("\": "));
                others.extend(other.and_then(|other| other.split("  ").next()));
                if object.matches('{').count() == object.matches('}').count() {
                    break;
                }
            }
            found.push(serde_json::from_str(&object).expect(&object));
            for other in others {
                found.push(serde_json::from_str(&format!("{{{other}}}")).expect(other));
            }
            while rest.next_if(begin).is_some() {}
        }
        assert!(!found.is_empty(), "{function}");
        found
    }

    /// Parses the first examples of a function, which are arguments; the others are results.
    fn accept<T: DeserializeOwned>(function: &str, arguments: usize) {
        let examples = examples(function);
        assert!(examples.len() >= arguments, "{function}: {examples:?}");
        for example in &examples[..arguments] {
            let parsed = serde_json::from_value::<T>(example.clone());
            assert!(parsed.is_ok(), "{function}: {example}: {:?}", parsed.err());
        }
    }

    #[test]
    fn what_the_header_shows_is_accepted() {
        accept::<Open>("cxi_job_node_open", 1);
        accept::<Request>("cxi_job_allocate", 2);
        accept::<Starting>("cxi_job_prolog", 1);
        accept::<Pool>("cxi_job_pool", 1);
        accept::<Reserve>("cxi_job_reserve", 1);
        accept::<Clean>("cxi_job_clean", 1);
        accept::<NodePlace>("cxi_job_list", 1);
        accept::<Audit>("cxi_job_audit", 1);
        // The lock is the one that the commands and the plugin take.
        let lock = &examples("cxi_job_node_open")[0]["lock"];
        assert_eq!(lock, "/run/cxi/node.lock");
        let range = &examples("cxi_job_allocate")[1]["vni_range"];
        let range: VniRange = serde_json::from_value(range.clone()).unwrap();
        assert_eq!(range.to_string(), "1024-1031");
    }
}
