//! `cxi audit`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use cxi_job::audit::{Audit, Finding, Observation, Severity};
use cxi_job::limits::{LimitPolicy, Mode, Multiplier};
use cxi_job::pool::Timestamp;
use cxi_job::{AuditOptions, IdSet, JobLimits};
use nix::unistd::{Uid, User};
use serde::Serialize;

use crate::args::{RangeArg, duration, number};
use crate::exit::{Exit, Failure};
use crate::job::JobNode;
use crate::options::Common;
use crate::output::{Report, nics};
use crate::state_file::{self, OBSERVATION, StateFile};

#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// VNIs that the scheduler assigns: user services with others are reported
    #[arg(long, value_name = "VNIS")]
    pub(crate) vni_pool: Option<IdSet>,
    /// VNIs of one owner of several, such as gid:500=2048-4095: its services with others are
    /// reported, and owners whose VNIs overlap
    #[arg(long, value_name = "OWNER=VNIS")]
    pub(crate) range: Vec<RangeArg>,
    /// Cores of a typical job: NICs without room for one more are reported
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = number)]
    pub(crate) cores: u32,
    /// NICs with room for this many more typical jobs or fewer are reported too
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = number)]
    pub(crate) few: u32,
    /// File that records idle services for the next audit: those that stay idle are reported
    #[arg(long, value_name = "FILE")]
    pub(crate) idle_file: Option<PathBuf>,
    /// How long a service may be idle
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
}

pub(crate) fn run(arguments: &AuditArgs, common: &Common) -> Result<Report, Failure> {
    let file = arguments.idle_file.as_deref();
    let file = file
        .map(|path| StateFile::lock(OBSERVATION, path, state_file::WAIT))
        .transpose()?;
    let earlier: Option<Observation> = match &file {
        Some(file) => state_file::load(OBSERVATION, file.path())?,
        None => None,
    };
    // A failed lookup says nothing about the user.
    let exists = |uid: u32| !matches!(User::from_uid(Uid::from_raw(uid)), Ok(None));
    let usual = JobLimits::planned(
        LimitPolicy::hpe_recommended(),
        Multiplier::Cores(arguments.cores),
        Mode::Strict,
    );
    let mut options = AuditOptions::new()
        .user_exists(&exists)
        .idle(Timestamp::now(), earlier.as_ref(), arguments.idle_after)
        .room_for(usual, arguments.few);
    if let Some(pool) = &arguments.vni_pool {
        options = options.pool(pool.clone());
    }
    for RangeArg { owner, vnis } in &arguments.range {
        options = options.range(*owner, vnis.clone());
    }
    let node = JobNode::open(common, false)?;
    let audit = node.nics.audit(&options);
    if let Some(file) = &file {
        file.save(&audit.observation)?;
    }
    Ok(report(&audit))
}

/// Findings that several NICs share are printed once.
fn report(audit: &Audit) -> Report {
    let findings = audit.findings.iter();
    let lines = findings.map(|finding| (finding.device, (finding.severity, &finding.text)));
    let mut text: String = nics::merge(lines)
        .into_iter()
        .map(|(devices, (severity, text))| {
            format!("{severity}: {}: {text}\n", nics::name(&devices))
        })
        .collect();
    if text.is_empty() {
        "Nothing was found.\n".clone_into(&mut text);
    }
    let json = Found {
        worst: audit.worst(),
        findings: &audit.findings,
    };
    let report = Report::new(text, &json);
    match audit.worst() {
        Some(Severity::Warning | Severity::Error) => report.ending_with(Exit::Findings as u8),
        _ => report,
    }
}
