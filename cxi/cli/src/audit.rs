//! `cxi audit`.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use cxi::{DeviceId, Host, Member, Service, ServiceId};
use cxi_job::audit::{Audit, Code, Finding, Observation, Severity};
use cxi_job::cluster::{JobShape, Mismatch, NetworkOptions, Site, keys};
use cxi_job::limits::{LimitPolicy, Mode};
use cxi_job::{AuditOptions, JobLimits, Node, NodeNic};
use cxi_site::IdSet;
use cxi_site::pool::Timestamp;
use cxi_vni_etcd::SitePool;
use nix::unistd::{Uid, User, geteuid};
use serde::Serialize;

use crate::args::{duration, number, range};
use crate::exit::{Exit, Failure};
use crate::files::{self, OBSERVATION, StateFile};
use crate::job::node::{JobNode, foreign};
use crate::node::Intent;
use crate::options::Common;
use crate::output::style::{ERROR, PLAIN, WARNING};
use crate::output::{Report, by_nic, merge, nic_names, wrapped};
use crate::preflight;

#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// VNIs that the scheduler assigns: user services with other VNIs are reported
    #[arg(long, alias = "vni-pool", value_name = "VNIS")]
    pub(crate) pool_vnis: Option<IdSet>,
    /// VNIs of one of several owners, such as gid:500=2048-4095: services of this owner with other
    /// VNIs are reported, and so are owners whose VNIs overlap
    #[arg(long, value_name = "OWNER=VNIS", value_parser = range)]
    pub(crate) range: Vec<(Member, IdSet)>,
    /// Cores of a typical job: NICs without room for another one are reported
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = number)]
    pub(crate) cores: u32,
    /// Also report NICs with room for at most this many more typical jobs
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = number)]
    pub(crate) few: u32,
    /// Say whether this node is fit for the next job: all NICs and their links, the default service as
    /// node.default-service wants it, foreign services with VNIs of the pool, room for a job of --cores
    /// by the site's policy and mode, memory for its address contexts, and the last cleanup. Ends with
    /// code 0 if it is, or 9
    #[arg(long, conflicts_with_all = ["idle_file", "range"])]
    pub(crate) preflight: bool,
    /// With --preflight: jobs may be running, so that warnings, and what jobs have taken of the room and
    /// the memory, do not make the node unfit
    #[arg(long, requires = "preflight")]
    pub(crate) in_use: bool,
    /// With --preflight: the user of the job, of whom no foreign service may be left
    #[arg(long, value_name = "UID", requires = "preflight")]
    pub(crate) uid: Option<u32>,
    /// File that records idle services for the next audit: those that stay idle are reported
    #[arg(long, value_name = "FILE")]
    pub(crate) idle_file: Option<PathBuf>,
    /// Longest time that a service may be idle
    #[arg(
        long,
        value_name = "TIME",
        value_parser = duration,
        default_value = "1h",
        requires = "idle_file"
    )]
    pub(crate) idle_after: Duration,
}

#[derive(Serialize)]
struct Found<'a> {
    /// The worst severity; null if nothing was found.
    worst: Option<Severity>,
    findings: &'a [Finding],
    /// Jobs on which the controller's records and its pool disagree, on the controller.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pool: Vec<Mismatch>,
}

pub(crate) fn run(arguments: &AuditArgs, common: &Common) -> Result<Report, Failure> {
    let file = arguments.idle_file.as_deref();
    let file = file.map(|path| StateFile::lock(OBSERVATION, path)).transpose()?;
    let earlier: Option<Observation> = match &file {
        Some(file) => files::load(OBSERVATION, file.path())?,
        None => None,
    };
    // Records of other users are not readable: only root knows what is foreign.
    let reads_records = geteuid().is_root() || common.mock.is_some();
    let foreign = if reads_records { foreign(common)? } else { Vec::new() };
    let job = if arguments.preflight {
        // As the next prolog will ask for it.
        let shape = JobShape::of_size(arguments.cores);
        shape.limits(&NetworkOptions::default(), &common.settings)?
    } else {
        JobLimits::planned(LimitPolicy::hpe_recommended(), arguments.cores, Mode::Strict)
    };
    let wanted = common.settings.get(&keys::NODE_DEFAULT_SERVICE)?;
    let mut options = AuditOptions::default();
    options.nics = common.settings.get(&keys::NODE_NICS)?.map(NonZeroU32::get);
    options.without_driver = without_driver(common);
    options.default_service = wanted.should_be_enabled();
    // A VNI that no job gets does not keep one from starting.
    options.pool = arguments.pool_vnis.clone().filter(|_| !arguments.preflight);
    options.ranges.clone_from(&arguments.range);
    options.foreign = foreign.iter().map(|(device, service)| (*device, service.id())).collect();
    // A failed lookup says nothing about the user.
    options.user_exists = Some(|uid| !matches!(User::from_uid(Uid::from_raw(uid)), Ok(None)));
    options.earlier = earlier.as_ref();
    options.now = Timestamp::now();
    options.idle_after = arguments.idle_after;
    options.job = job;
    options.few = arguments.few;
    let audit = JobNode::open(common, Intent::Read)?.nics.audit(&options);
    if let Some(file) = &file {
        file.save(&audit.observation)?;
    }
    if arguments.preflight {
        let report = preflight::report(audit, &foreign, arguments, common)?;
        let unseen = "foreign services were not looked for: only root can read all records";
        return Ok(report.with_warnings((!reads_records).then(|| unseen.to_owned())));
    }
    let (pool, failed) = match of_pool(common) {
        Ok(pool) => (pool, None),
        Err(failure) => (Vec::new(), Some(format!("the pool was not audited: {failure:#}"))),
    };
    Ok(report(&audit, pool).with_warnings(failed))
}

/// The NICs of this machine that no driver has; a mock node in a file has no bus to look at.
pub(crate) fn without_driver(common: &Common) -> Option<Vec<String>> {
    if common.mock.is_some() { None } else { Host::system().without_driver() }
}

/// VNIs that two jobs have or may get, where this machine has the controller's pool and records.
fn of_pool(common: &Common) -> Result<Vec<Mismatch>, Failure> {
    if common.settings.get(&keys::CONTROLLER_RECORDS)?.is_none() {
        return Ok(Vec::new());
    }
    let store = SitePool::of(&common.settings)?;
    if !store.is_here()? {
        return Ok(Vec::new());
    }
    let mut found = Site::open(common.settings.clone())?.controller(&store)?.compare()?;
    found.retain(Mismatch::is_harmful);
    Ok(found)
}

/// Warnings about services of other users that have VNIs of services that were just created.
pub(crate) fn shared_vnis(nics: &Node, made: &[(DeviceId, ServiceId)]) -> Vec<String> {
    let shares_with = |made: &Service, found: &Service| {
        let (vnis, others) = (made.vnis(), found.vnis());
        made.is_enabled() && vnis.iter().any(|vni| others.contains(vni))
    };
    // A finding names one of two services that share a VNI. If that service has a VNI of a new
    // service, the new service is the other one, or shares the VNI with both.
    let concerned = |finding: &&Finding| {
        let device = nics.nic(finding.device).and_then(NodeNic::device);
        let (Some(device), Some(id)) = (device, finding.service) else { return false };
        let service = |id| device.services().get(id).ok();
        let mut here = made.iter().filter(|(nic, _)| *nic == finding.device);
        finding.code == Code::SharedVni
            && here.any(|(_, made)| {
                let pair = service(*made).zip(service(id));
                pair.is_some_and(|(made, found)| shares_with(&made, &found))
            })
    };
    let audit = nics.audit(&AuditOptions::default());
    let shared = audit.findings.iter().filter(concerned);
    by_nic(shared.map(|finding| (finding.device, &finding.text)))
}

/// The findings, one a line. Those that several NICs share are printed once.
pub(crate) fn lines(audit: &Audit) -> String {
    let findings = audit.findings.iter();
    let lines = findings.map(|finding| (finding.device, (finding.severity, &finding.text)));
    merge(lines)
        .into_iter()
        .map(|(devices, (severity, text))| {
            line(severity, &format!("{}: {text}", nic_names(&devices)))
        })
        .collect()
}

/// A finding as a line of its own, with its severity in front.
pub(crate) fn line(severity: Severity, text: &str) -> String {
    let style = match severity {
        Severity::Error => ERROR,
        Severity::Warning => WARNING,
        _ => PLAIN,
    };
    let text = wrapped(&format!("{severity}: {text}\n"));
    let (severity, rest) = text.split_once(':').unwrap_or_default();
    format!("{style}{severity}:{style:#}{rest}")
}

fn report(audit: &Audit, pool: Vec<Mismatch>) -> Report {
    let mut text = lines(audit);
    for mismatch in &pool {
        let remedy = format!("pool: {mismatch}: cxi vni reconcile --records");
        text += &line(Severity::Error, &remedy);
    }
    if text.is_empty() {
        "No problems found.\n".clone_into(&mut text);
    }
    let worst = if pool.is_empty() { audit.worst() } else { Some(Severity::Error) };
    let report = Report::new(text, &Found { worst, findings: &audit.findings, pool });
    match worst {
        Some(Severity::Warning | Severity::Error) => report.ending_with(Exit::Findings as u8),
        _ => report,
    }
}
