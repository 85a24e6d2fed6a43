//! `cxi audit`.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use anstyle::Style;
use clap::Args;
use cxi::{DeviceId, Host, Member, Service, ServiceId};
use cxi_job::audit::{Audit, Code, Finding, Observation, Severity};
use cxi_job::explain::ContiguousMemory;
use cxi_job::limits::{LimitPolicy, Mode};
use cxi_job::pool::Timestamp;
use cxi_job::site::{Mismatch, Site, keys};
use cxi_job::{AuditOptions, IdSet, JobLimits, Node, NodeNic, ProcFs};
use cxi_vni_etcd::SitePool;
use nix::unistd::{Uid, User, geteuid};
use serde::Serialize;

use crate::args::{duration, number, range};
use crate::exit::{Exit, Failure};
use crate::files::{self, OBSERVATION, StateFile};
use crate::job::node::{JobNode, foreign};
use crate::node::Intent;
use crate::options::Common;
use crate::output::{ERROR, Report, WARNING, by_nic, merge, nic_names, wrapped};

#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// VNIs that the scheduler assigns: user services with other VNIs are reported
    #[arg(long, value_name = "VNIS")]
    pub(crate) vni_pool: Option<IdSet>,
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
    /// Say whether this node is fit for a job: all NICs, their links, the default service, foreign
    /// services, room for a job of --cores, and memory for its address contexts. Ends with code 0 if it
    /// is, or 9
    #[arg(long, conflicts_with_all = ["idle_file", "range"])]
    pub(crate) preflight: bool,
    /// With --preflight: the user of the job, of whom no service may be left
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
    let (policy, cores) = (LimitPolicy::hpe_recommended(), arguments.cores);
    let mut audit = JobNode::open(common, Intent::Read)?.nics.audit(&AuditOptions {
        nics: common.settings.get(&keys::NODE_NICS)?.map(NonZeroU32::get),
        without_driver: without_driver(common),
        pool: arguments.vni_pool.clone(),
        ranges: arguments.range.clone(),
        foreign: foreign.iter().map(|(device, service)| (*device, service.id())).collect(),
        // A failed lookup says nothing about the user.
        user_exists: Some(|uid| !matches!(User::from_uid(Uid::from_raw(uid)), Ok(None))),
        earlier: earlier.as_ref(),
        now: Timestamp::now(),
        idle_after: arguments.idle_after,
        job: JobLimits::planned(policy, cores, Mode::Strict),
        few: arguments.few,
    });
    if let Some(file) = &file {
        file.save(&audit.observation)?;
    }
    if arguments.preflight {
        // The memory of this machine says nothing about a mock node in a file.
        let memory = common.mock.is_none().then(|| ContiguousMemory::read(&ProcFs::system()));
        let report = preflight(&mut audit, &foreign, arguments.uid, memory.flatten());
        let unseen = "foreign services were not looked for: only root can read all records";
        return Ok(report.with_warnings((!reads_records).then(|| unseen.to_owned())));
    }
    let (pool, failed) = match of_pool(common) {
        Ok(pool) => (pool, None),
        Err(failure) => (Vec::new(), Some(format!("the pool was not audited: {failure:#}"))),
    };
    Ok(report(&audit, pool).with_warnings(failed))
}

/// The NICs of this machine that no driver has; a mock node in a file has none.
pub(crate) fn without_driver(common: &Common) -> Vec<String> {
    if common.mock.is_some() { Vec::new() } else { Host::system().without_driver() }
}

/// Returns whether this node is fit for a job. What an audit only mentions may keep one from
/// starting: services that nobody may destroy, and memory.
fn preflight(
    audit: &mut Audit,
    foreign: &[(DeviceId, Service)],
    uid: Option<u32>,
    memory: Option<ContiguousMemory>,
) -> Report {
    let of_user = |service: &Service| {
        uid.is_some_and(|uid| service.members().is_some_and(|it| it.contains(Member::Uid(uid))))
    };
    for finding in &mut audit.findings {
        let is_of_user = foreign.iter().any(|(device, service)| {
            (*device, Some(service.id())) == (finding.device, finding.service) && of_user(service)
        });
        if finding.code == Code::Foreign && (uid.is_none() || is_of_user) {
            finding.severity = Severity::Warning;
        }
    }
    let no_memory = memory.filter(|memory| memory.address_contexts == 0);
    let fit = audit.worst() < Some(Severity::Warning) && no_memory.is_none();
    let verdict = if fit { "is fit for a job.\n" } else { "is not fit for a job:\n" };
    let mut text = format!("This node {verdict}{}", lines(audit));
    if let Some(memory) = no_memory {
        text += &wrapped(&format!("error: {memory}\n"));
    }
    let json = Preflight { fit, findings: &audit.findings, contiguous_memory: memory };
    let report = Report::new(text, &json);
    if fit { report } else { report.ending_with(Exit::Findings as u8) }
}

#[derive(Serialize)]
struct Preflight<'a> {
    fit: bool,
    findings: &'a [Finding],
    /// Null where `/proc/buddyinfo` cannot be read.
    contiguous_memory: Option<ContiguousMemory>,
}

/// VNIs that two jobs have or may get, where this machine has the controller's pool and records.
fn of_pool(common: &Common) -> Result<Vec<Mismatch>, Failure> {
    if common.settings.get(&keys::CONTROLLER_RECORDS)?.is_none() {
        return Ok(Vec::new());
    }
    let store = SitePool::of(&common.settings)?;
    if !store.is_here() {
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
fn lines(audit: &Audit) -> String {
    let findings = audit.findings.iter();
    let lines = findings.map(|finding| (finding.device, (finding.severity, &finding.text)));
    merge(lines)
        .into_iter()
        .map(|(devices, (severity, text))| {
            let style = match severity {
                Severity::Error => ERROR,
                Severity::Warning => WARNING,
                _ => Style::new(),
            };
            let rest = wrapped(&format!("{severity}: {}: {text}\n", nic_names(&devices)));
            let (severity, rest) = rest.split_once(':').unwrap_or_default();
            format!("{style}{severity}:{style:#}{rest}")
        })
        .collect()
}

fn report(audit: &Audit, pool: Vec<Mismatch>) -> Report {
    let mut text = lines(audit);
    for mismatch in &pool {
        text += &wrapped(&format!("error: pool: {mismatch}: cxi vni reconcile --records\n"))
            .replacen("error:", &format!("{ERROR}error:{ERROR:#}"), 1);
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
