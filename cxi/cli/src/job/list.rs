//! `cxi job list`.

use std::collections::BTreeSet;

use cxi_job::site::JobRecord;
use cxi_job::{Grant, JobId};
use serde::Serialize;

use super::controller::controller;
use super::node::Here;
use crate::exit::Failure;
use crate::options::Common;
use crate::output::{Columns, Report};
use crate::vni::cli::PoolArgs;

/// A job that is running or has ended; nothing is known of one that is clean.
#[derive(Serialize)]
pub(crate) struct Job {
    #[serde(rename = "job")]
    pub(crate) id: JobId,
    pub(crate) state: &'static str,
    pub(crate) vnis: String,
    /// The nodes that have not confirmed yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) waits_for: Vec<String>,
    /// Where the job has less than its size asks for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) scaled_back: Vec<String>,
}

pub(super) fn run(controller: bool, common: &Common) -> Result<Report, Failure> {
    let jobs = if controller {
        of_controller(common)?
    } else {
        of_node(common)?
    };
    let mut table = Columns::new(&["JOB", "STATE", "VNIS", ""]);
    for job in &jobs {
        let more = match (job.waits_for.is_empty(), job.scaled_back.is_empty()) {
            (false, _) => format!("waits for {}", job.waits_for.join(",")),
            (true, false) => format!("scaled back: {}", job.scaled_back.join(",")),
            (true, true) => String::new(),
        };
        let vnis = if job.vnis.is_empty() { "-" } else { &job.vnis };
        table.row([job.id.as_str(), job.state, vnis, &more]);
    }
    Ok(Report::of(table.render(0), "jobs", &jobs))
}

/// The jobs with a record on this node.
pub(crate) fn records(common: &Common) -> Result<Vec<JobRecord>, Failure> {
    let here = Here::new(common, None)?;
    let node = here.node(None)?;
    Ok(node.list()?)
}

pub(crate) fn of_node(common: &Common) -> Result<Vec<Job>, Failure> {
    let jobs = records(common)?.into_iter().map(|record| {
        let cuts = record.grant.iter().flat_map(Grant::cuts);
        // Each once, however many NICs lack it.
        let names: BTreeSet<_> = cuts.map(|cut| cut.resource.to_string()).collect();
        Job {
            state: state(record.running.is_empty()),
            vnis: record.vni_set().to_string(),
            waits_for: Vec::new(),
            scaled_back: names.into_iter().collect(),
            id: record.job,
        }
    });
    Ok(jobs.collect())
}

pub(crate) fn of_controller(common: &Common) -> Result<Vec<Job>, Failure> {
    let jobs = controller(&PoolArgs::default(), common)?.list()?;
    let jobs = jobs.into_iter().map(|(decision, waits_for)| {
        let vnis: Vec<String> = decision.vnis.iter().map(ToString::to_string).collect();
        Job {
            state: state(decision.ended()),
            vnis: vnis.join(","),
            waits_for,
            scaled_back: Vec::new(),
            id: decision.job,
        }
    });
    Ok(jobs.collect())
}

fn state(ended: bool) -> &'static str {
    if ended { "ended" } else { "running" }
}
