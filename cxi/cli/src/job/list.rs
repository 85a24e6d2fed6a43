//! `cxi job list`.

use std::collections::BTreeSet;
use std::time::SystemTime;

use cxi_job::site::JobRecord;
use cxi_job::{Grant, JobId};
use serde::Serialize;

use super::controller::controller;
use super::node::Here;
use crate::exit::Failure;
use crate::node::Intent;
use crate::options::Common;
use crate::output::{Columns, Report, joined};

/// A job that is running or has ended. A job that has been cleaned up is not recorded.
#[derive(Serialize)]
pub(crate) struct Job {
    #[serde(rename = "job")]
    pub(crate) id: JobId,
    pub(crate) state: &'static str,
    pub(crate) vnis: String,
    /// The nodes that have not confirmed yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) waits_for: Vec<String>,
    /// NICs on which the job has less than its size asks for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) scaled_back: Vec<String>,
}

impl Job {
    pub(super) fn of_node(record: JobRecord) -> Self {
        let cuts = record.grant.iter().flat_map(Grant::cuts);
        // List each resource once, even if several NICs lack it.
        let names: BTreeSet<_> = cuts.map(|cut| cut.resource.to_string()).collect();
        Self {
            state: state(record.running.is_empty()),
            vnis: record.vni_set().to_string(),
            waits_for: Vec::new(),
            scaled_back: names.into_iter().collect(),
            id: record.job,
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.state == ENDED
    }

    fn vnis(&self) -> &str {
        if self.vnis.is_empty() { "-" } else { &self.vnis }
    }

    fn remark(&self) -> String {
        match (self.waits_for.is_empty(), self.scaled_back.is_empty()) {
            (false, _) => format!("waits for {}", self.waits_for.join(",")),
            (true, false) => format!("scaled back: {}", self.scaled_back.join(",")),
            (true, true) => String::new(),
        }
    }

    /// The contents of the row in the list.
    pub(super) fn words(&self) -> String {
        let remark = self.remark();
        let comma = if remark.is_empty() { "" } else { ", " };
        format!("{}, VNIs {}{comma}{remark}", self.state, self.vnis())
    }
}

pub(super) fn run(controller: bool, common: &Common) -> Result<Report, Failure> {
    let (jobs, broken) =
        if controller { (of_controller(common)?, Vec::new()) } else { of_node(common)? };
    let mut table = Columns::new(&["Job", "State", "VNIs", ""]);
    for job in &jobs {
        table.row([job.id.as_str(), job.state, job.vnis(), &job.remark()]);
    }
    Ok(Report::of(table.render(0), "jobs", &jobs).with_warnings(broken))
}

/// The jobs with a record on this node, and what is wrong with records that cannot be used.
pub(crate) fn records(common: &Common) -> Result<(Vec<JobRecord>, Vec<String>), Failure> {
    let (records, broken) = Here::new(common, Intent::Read)?.node(None)?.list()?;
    Ok((records, broken.iter().map(ToString::to_string).collect()))
}

pub(crate) fn of_node(common: &Common) -> Result<(Vec<Job>, Vec<String>), Failure> {
    let (records, broken) = records(common)?;
    Ok((records.into_iter().map(Job::of_node).collect(), broken))
}

pub(crate) fn of_controller(common: &Common) -> Result<Vec<Job>, Failure> {
    let jobs = controller(common)?.list()?.into_iter().map(|(decision, waits_for)| Job {
        state: state(decision.ended()),
        vnis: joined(&decision.vnis, ","),
        waits_for,
        scaled_back: Vec::new(),
        id: decision.job,
    });
    Ok(jobs.collect())
}

/// When the controller last ended the jobs that the scheduler has lost.
pub(crate) fn last_sweep(common: &Common) -> Result<Option<SystemTime>, Failure> {
    Ok(controller(common)?.last_sweep()?)
}

const ENDED: &str = "ended";

fn state(ended: bool) -> &'static str {
    if ended { ENDED } else { "running" }
}
