//! `cxi audit --preflight`: whether a node is fit for the next job.

use std::time::Duration;

use cxi::{DeviceId, Member, Service};
use cxi_job::audit::{Audit, Code, Finding, Severity};
use cxi_job::cluster::keys;
use cxi_job::explain::ContiguousMemory;
use cxi_site::pool::Timestamp;
use cxi_site::{IdSet, ProcFs};
use humantime::format_duration;
use serde::Serialize;

use crate::audit::{AuditArgs, line, lines};
use crate::exit::{Exit, Failure};
use crate::job::node::last_cleanup;
use crate::options::Common;
use crate::output::Report;

/// Answer to whether the node is fit for a job, with what keeps it from being so.
#[derive(Serialize)]
struct Preflight<'a> {
    fit: bool,
    findings: &'a [Finding],
    /// Null where `/proc/buddyinfo` cannot be read.
    contiguous_memory: Option<ContiguousMemory>,
    /// Time at which `cxi job clean` last came to its end; null if it did not since the node started.
    last_cleanup: Option<Timestamp>,
}

/// Judges an audit by what keeps the next job from starting, or from being alone with its VNIs.
pub(crate) fn report(
    mut audit: Audit,
    foreign: &[(DeviceId, Service)],
    arguments: &AuditArgs,
    common: &Common,
) -> Result<Report, Failure> {
    let pool = match &arguments.pool_vnis {
        Some(pool) => pool.clone(),
        None => common.settings.get(&keys::POOL_VNIS)?,
    };
    // An audit only mentions them. A job may get a VNI of the pool, and its user may be that of the
    // other service, which the job's programs might find first.
    let harms = |service: &Service| {
        let vnis: IdSet = service.vnis().iter().map(cxi::Vni::get).collect();
        let of_user = |uid| service.members().is_some_and(|it| it.contains(Member::Uid(uid)));
        !vnis.intersection(&pool).is_empty() || arguments.uid.is_some_and(of_user)
    };
    for finding in &mut audit.findings {
        let mut services = foreign.iter();
        let mut of_finding = || {
            services.find(|(device, service)| {
                (*device, Some(service.id())) == (finding.device, finding.service)
            })
        };
        let keeps_a_job = match finding.code {
            Code::DefaultServiceEnabled | Code::DefaultServiceDisabled | Code::LinkUnstable => true,
            Code::Foreign => of_finding().is_some_and(|(_, service)| harms(service)),
            // The others of these are of services that are there already, and not of the next job.
            _ => finding.severity == Severity::Error,
        };
        finding.severity = match (keeps_a_job, finding.severity) {
            (true, Severity::Info) => Severity::Warning,
            (false, Severity::Warning) => Severity::Info,
            (_, severity) => severity,
        };
    }
    // What runs here gives it back.
    if arguments.in_use {
        for finding in &mut audit.findings {
            if finding.code == Code::NearlyExhausted {
                finding.severity = finding.severity.min(Severity::Warning);
            }
        }
    }
    // The memory of this machine says nothing about a mock node in a file.
    let memory = common.mock.is_none().then(|| ContiguousMemory::read(&ProcFs::system())).flatten();
    let last_cleanup = last_cleanup(common)?;
    let mut more = String::new();
    if let Some(memory) = memory.filter(|memory| memory.address_contexts == 0) {
        let severity = if arguments.in_use { Severity::Warning } else { Severity::Error };
        more += &line(severity, &memory.to_string());
    }
    if let Some(late) = late(last_cleanup, common)? {
        more += &line(Severity::Warning, &late);
    }
    // A node that was found unfit stays so until somebody looks at it: in use, for errors only.
    let fit = if arguments.in_use {
        audit.worst() < Some(Severity::Error)
    } else {
        audit.worst() < Some(Severity::Warning) && more.is_empty()
    };
    let verdict = if fit { "is fit for a job.\n" } else { "is not fit for a job:\n" };
    let text = format!("This node {verdict}{}{more}", lines(&audit));
    let findings = &audit.findings;
    let json = Preflight { fit, findings, contiguous_memory: memory, last_cleanup };
    let report = Report::new(text, &json);
    Ok(if fit { report } else { report.ending_with(Exit::Findings as u8) })
}

/// Says that the last cleanup was too long ago, where the site has set how long ago it may be.
fn late(last: Option<Timestamp>, common: &Common) -> Result<Option<String>, Failure> {
    let Some(within) = common.settings.get(&keys::NODE_CLEANED_WITHIN)? else { return Ok(None) };
    let expected = format!("expected one within {} (node.cleaned-within)", format_duration(within));
    let Some(last) = last else {
        return Ok(Some(format!("no cxi job clean since this node started: {expected}")));
    };
    let ago = Timestamp::now().since(last);
    let late = ago > within;
    let ago = format_duration(Duration::from_secs(ago.as_secs()));
    Ok(late.then(|| format!("the last cxi job clean came to its end {ago} ago: {expected}")))
}
