//! `cxi job clean`.

use std::io;
use std::path::Path;
use std::time::Duration;

use cxi_job::clean::CleanReport;
use cxi_job::{CleanPolicy, IdSet, ReleaseOptions, live_vnis};
use serde::Serialize;

use super::cli::LockArgs;
use super::epilog::{gone, report, status};
use super::job_node::JobNode;
use super::progress::Progress;
use crate::exit::{Exit, Failure};
use crate::options::Common;
use crate::output::Report;

#[derive(Serialize)]
struct Cleaned<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
    #[serde(flatten)]
    clean: &'a CleanReport,
}

/// Where the VNIs of live jobs come from.
pub(super) enum Live<'a> {
    Nobody,
    Vnis(&'a IdSet),
    Directory(&'a Path),
}

impl<'a> Live<'a> {
    pub(super) fn new(vnis: Option<&'a IdSet>, directory: Option<&'a Path>) -> Self {
        match (directory, vnis) {
            (Some(directory), _) => Self::Directory(directory),
            (None, Some(vnis)) => Self::Vnis(vnis),
            (None, None) => Self::Nobody,
        }
    }

    fn now(&self) -> io::Result<IdSet> {
        match self {
            Self::Nobody => Ok(IdSet::new()),
            Self::Vnis(vnis) => Ok((*vnis).clone()),
            Self::Directory(directory) => live_vnis(directory),
        }
    }
}

pub(super) fn run(
    pool: &IdSet,
    live: &Live<'_>,
    retry: Duration,
    lock: &LockArgs,
    dry_run: bool,
    common: &Common,
) -> Result<Report, Failure> {
    let node = if dry_run {
        JobNode::open(common, false)?
    } else {
        JobNode::locked(common, lock)?
    };
    let now = || live.now();
    let policy = CleanPolicy::new(pool.clone()).live(&now).dry_run(dry_run);
    let progress = Progress::new(common.json);
    let tell = |waiting: &cxi_job::release::Waiting| progress.tell(waiting);
    let options = ReleaseOptions::until(retry).progress(&tell);
    let clean = node.nics.clean(&policy, &options);
    progress.end();
    node.save()?;
    let clean = clean.map_err(|error| {
        Failure::new(Exit::Failed, error.to_string()).hint("Nothing was destroyed.")
    })?;
    let json = Cleaned {
        status: clean
            .release
            .as_ref()
            .map(|release| status(release.status())),
        clean: &clean,
    };
    let nothing = "Nothing to do: no service is left of a job that has ended\n";
    let Some(release) = &clean.release else {
        let mut text: String = clean
            .orphans
            .iter()
            .map(|orphan| format!("Would destroy {orphan}\n"))
            .collect();
        if text.is_empty() {
            text += nothing;
        }
        text += &clean
            .kept
            .iter()
            .map(|kept| format!("Keeps {kept}\n"))
            .collect::<String>();
        let report = Report::new(text, &json);
        return Ok(if clean.orphans.is_empty() {
            report.nothing_to_do()
        } else {
            report
        });
    };
    let mut text = gone(release);
    if clean.orphans.is_empty() && release.nics.is_empty() {
        text += nothing;
    }
    Ok(report(text, &json, release, retry))
}
