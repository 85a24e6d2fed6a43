//! `cxi job clean`.

use std::time::Duration;

use cxi_job::clean::Clean;
use cxi_job::{CleanPolicy, IdSet, ReleaseOptions};
use serde::Serialize;

use super::epilog::{gone, report, status};
use super::node::JobNode;
use super::progress::Progress;
use crate::exit::Failure;
use crate::options::Common;
use crate::output::Report;

#[derive(Serialize)]
struct Cleaned<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
    #[serde(flatten)]
    clean: &'a Clean,
}

pub(super) fn run(
    pool: &IdSet,
    live: Option<&IdSet>,
    retry: Duration,
    dry_run: bool,
    common: &Common,
) -> Result<Report, Failure> {
    let node = JobNode::open(common, !dry_run)?;
    let mut policy = CleanPolicy::new(pool.clone()).dry_run(dry_run);
    if let Some(live) = live {
        policy = policy.keep_vnis(live);
    }
    let progress = Progress::new(common.json);
    let tell = |waiting: &cxi_job::release::Waiting| progress.tell(waiting);
    let options = ReleaseOptions::until(retry).progress(&tell);
    let clean = node.nics.clean(&policy, &options);
    progress.end();
    node.save()?;
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
            .spared
            .iter()
            .map(|spared| format!("Spares {spared}\n"))
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
