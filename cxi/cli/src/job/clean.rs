//! `cxi job clean`.

use std::io;
use std::path::Path;
use std::time::Duration;

use cxi_job::clean::{CleanReport, OrphanReason, Verdict};
use cxi_job::{CleanPolicy, IdSet, NodeName, ReleaseOptions, ReleaseStatus, live_vnis};
use serde::Serialize;

use super::cli::LockArgs;
use super::epilog::{gone, report, status};
use super::job_node::JobNode;
use super::progress::Progress;
use super::recorded::{decisions, finish, nothing_left, records};
use crate::exit::{Exit, Failure};
use crate::options::Common;
use crate::output::Report;
use crate::records::controller::Decisions;
use crate::records::node::{NodeRecord, NodeRecords};
use crate::settings;

#[derive(Serialize)]
struct Cleaned<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
    #[serde(flatten)]
    clean: &'a CleanReport,
    /// The jobs that have ended, and of which nothing is left now.
    ended: Vec<String>,
}

/// The options of a clean-up.
pub(super) struct Cleaning<'a> {
    /// VNIs that the scheduler assigns.
    pub(super) pool: IdSet,
    /// VNIs of live jobs besides those with a record.
    pub(super) live: IdSet,
    /// Directory with the VNIs of further live jobs.
    pub(super) live_from: Option<&'a Path>,
    pub(super) none_live: bool,
    pub(super) node: NodeName,
    pub(super) retry: Duration,
    pub(super) lock: &'a LockArgs,
    pub(super) dry_run: bool,
}

/// Where the live jobs of this node come from.
struct KnownJobs<'a> {
    records: NodeRecords,
    decisions: Option<Decisions>,
    node: &'a NodeName,
    none_live: bool,
}

impl<'a> KnownJobs<'a> {
    fn of(cleaning: &'a Cleaning<'_>, common: &Common) -> Result<Self, Failure> {
        Ok(Self {
            records: records(&common.settings)?,
            decisions: decisions(&common.settings)?,
            node: &cleaning.node,
            none_live: cleaning.none_live,
        })
    }

    fn lives(&self, record: &NodeRecord) -> Result<bool, Failure> {
        if self.none_live || record.running.is_empty() {
            return Ok(false);
        }
        match &self.decisions {
            Some(decisions) if record.decided => {
                let decision = decisions.find(&record.job)?;
                Ok(decision.is_some_and(|decision| decision.runs_on(self.node)))
            }
            _ => Ok(true),
        }
    }

    fn live_vnis(&self) -> Result<IdSet, Failure> {
        let mut live = IdSet::new();
        for record in self.records.all()? {
            if self.lives(&record)? {
                live = live.union(&record.vnis());
            }
        }
        Ok(live)
    }

    /// The jobs that have ended, and that this node has not confirmed.
    fn ended(&self) -> Result<Vec<NodeRecord>, Failure> {
        let mut ended = Vec::new();
        let records = self.records.all()?;
        for record in &records {
            if !self.lives(record)? {
                ended.push(record.clone());
            }
        }
        let Some(decisions) = &self.decisions else {
            return Ok(ended);
        };
        // A node that was reset has forgotten them.
        for job in decisions.jobs_ended()? {
            if records.iter().any(|record| record.job == job) {
                continue;
            }
            let decision = decisions.find(&job)?;
            if let Some(decision) = decision.filter(|decision| decision.names(self.node))
                && !decisions.has_confirmed(&job, self.node)?
            {
                ended.push(NodeRecord::of_decision(&decision));
            }
        }
        Ok(ended)
    }
}

pub(super) fn run(cleaning: &Cleaning<'_>, common: &Common) -> Result<Report, Failure> {
    let known = KnownJobs::of(cleaning, common)?;
    let ended = known.ended()?;
    let pool = of_pool(cleaning, &ended);
    let clean = services(cleaning, &known, pool, common)?;
    let mut done = Vec::new();
    for record in ended.iter().filter(|_| !cleaning.dry_run) {
        if nothing_left(record, common)? {
            finish(&known.records, record, &cleaning.node, common)?;
            done.push(record.job.to_string());
        }
    }
    Ok(clean_report(&clean, done, cleaning.retry))
}

/// The services that a clean-up of this node would destroy.
pub(crate) fn left_over(
    node: NodeName,
    common: &Common,
) -> Result<Vec<Verdict<OrphanReason>>, Failure> {
    let cleaning = Cleaning {
        pool: common.settings.get(&settings::POOL_VNIS)?,
        live: IdSet::new(),
        live_from: None,
        none_live: false,
        node,
        retry: Duration::ZERO,
        lock: &LockArgs::default(),
        dry_run: true,
    };
    let known = KnownJobs::of(&cleaning, common)?;
    let pool = of_pool(&cleaning, &known.ended()?);
    Ok(services(&cleaning, &known, pool, common)?.orphans)
}

/// The VNIs whose services are looked at: what the scheduler assigns, and what ended jobs have.
fn of_pool(cleaning: &Cleaning<'_>, ended: &[NodeRecord]) -> IdSet {
    let vnis = ended.iter().map(NodeRecord::vnis);
    vnis.fold(cleaning.pool.clone(), |pool, vnis| pool.union(&vnis))
}

/// Destroys what belongs to no live job.
fn services(
    cleaning: &Cleaning<'_>,
    known: &KnownJobs<'_>,
    pool: IdSet,
    common: &Common,
) -> Result<CleanReport, Failure> {
    let node = if cleaning.dry_run {
        JobNode::open(common, false)?
    } else {
        JobNode::locked(common, cleaning.lock)?
    };
    let live = || {
        let live = known.live_vnis();
        let live = live.map_err(|failure| io::Error::other(failure.message()))?;
        let more = cleaning.live_from.map(live_vnis).transpose()?;
        Ok(live.union(&cleaning.live).union(&more.unwrap_or_default()))
    };
    let policy = CleanPolicy::new(pool).live(&live).dry_run(cleaning.dry_run);
    let progress = Progress::new(common.json);
    let tell = |waiting: &cxi_job::release::Waiting| progress.tell(waiting);
    let options = ReleaseOptions::until(cleaning.retry).progress(&tell);
    let clean = node.nics.clean(&policy, &options);
    progress.end();
    node.save()?;
    clean.map_err(|error| {
        Failure::new(Exit::Failed, error.to_string()).hint("Nothing was destroyed.")
    })
}

fn clean_report(clean: &CleanReport, ended: Vec<String>, retry: Duration) -> Report {
    let mut text = String::new();
    for job in &ended {
        text += &format!("Job {job} has ended: nothing is left of it\n");
    }
    let release = clean.release.as_ref();
    let json = Cleaned {
        status: release.map(|release| status(release.status())),
        clean,
        ended,
    };
    let nothing = "Nothing to do: no service is left of a job that has ended\n";
    let Some(release) = release else {
        text += &lines("Would destroy", &clean.orphans);
        if text.is_empty() {
            text += nothing;
        }
        text += &lines("Keeps", &clean.kept);
        let report = Report::new(text, &json);
        return if clean.orphans.is_empty() {
            report.nothing_to_do()
        } else {
            report
        };
    };
    text.insert_str(0, &gone(release));
    if text.is_empty() && release.nics.is_empty() && clean.orphans.is_empty() {
        text += nothing;
    } else if release.status() == ReleaseStatus::NothingToDo && !json.ended.is_empty() {
        return Report::new(text, &json);
    }
    report(text, &json, release, retry)
}

fn lines(what: &str, services: &[impl std::fmt::Display]) -> String {
    services
        .iter()
        .map(|service| format!("{what} {service}\n"))
        .collect()
}
