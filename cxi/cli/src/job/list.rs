//! `cxi job list`.

use std::collections::BTreeSet;
use std::time::SystemTime;

use cxi_job::Grant;
use cxi_job::cluster::JobRecord;
use cxi_site::JobId;
use serde::Serialize;

use super::controller::controller;
use super::node::SiteNode;
use crate::exit::{Exit, Failure};
use crate::node::Intent;
use crate::options::Common;
use crate::output::shapes::Vnis;
use crate::output::{Columns, Report};

/// A job that is running or has ended. A job that has been cleaned up is not recorded.
#[derive(Serialize)]
pub(crate) struct Job {
    #[serde(rename = "job")]
    pub(crate) id: JobId,
    pub(crate) state: &'static str,
    #[serde(flatten)]
    pub(crate) vnis: Vnis,
    /// The nodes that have not confirmed yet.
    pub(crate) waits_for: Vec<String>,
    /// Resources of which the job has less than its size asks for.
    pub(crate) scaled_back: Vec<String>,
}

impl Job {
    pub(super) fn of_node(record: JobRecord) -> Self {
        let cuts = record.grant.iter().flat_map(Grant::cuts);
        // List each resource once, even if several NICs lack it.
        let names: BTreeSet<_> = cuts.map(|cut| cut.resource.to_string()).collect();
        Self {
            state: state(record.running.is_empty()),
            vnis: record.vnis.map_or_else(|| Vnis::from(&record.vni_set()), Vnis::from),
            waits_for: Vec::new(),
            scaled_back: names.into_iter().collect(),
            id: record.job,
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.state == ENDED
    }

    fn vnis(&self) -> String {
        let vnis = self.vnis.to_string();
        if vnis.is_empty() { "-".to_owned() } else { vnis }
    }

    fn remark(&self) -> String {
        match (self.waits_for.is_empty(), self.scaled_back.is_empty()) {
            (false, _) => format!("waits for {}", self.waits_for.join(",")),
            (true, false) => format!("scaled back: {}", self.scaled_back.join(",")),
            (true, true) => String::new(),
        }
    }

    /// The contents of the row in the list.
    pub(crate) fn words(&self) -> String {
        let remark = self.remark();
        let comma = if remark.is_empty() { "" } else { ", " };
        format!("{}, VNIs {}{comma}{remark}", self.state, self.vnis())
    }
}

/// The named jobs, each of which must be known; all of them if none is named.
pub(super) fn run(named: &[JobId], controller: bool, common: &Common) -> Result<Report, Failure> {
    let (mut jobs, broken) =
        if controller { (of_controller(common)?, Vec::new()) } else { of_node(common)? };
    let is_missing = |named: &&JobId| !jobs.iter().any(|job| job.id == **named);
    if let Some(missing) = named.iter().find(is_missing) {
        let place = if controller { "the controller" } else { "this node" };
        let text = format!("job {missing} has no record on {place}");
        return Err(Failure::new(Exit::NotFound, text).hint("cxi job list shows the jobs."));
    }
    jobs.retain(|job| named.is_empty() || named.contains(&job.id));
    let mut table = Columns::new(&["Job", "State", "VNIs", ""]);
    for job in &jobs {
        table.row([job.id.as_str(), job.state, &job.vnis(), &job.remark()]);
    }
    Ok(Report::of(table.render(0), "jobs", &jobs).with_warnings(broken))
}

/// The jobs with a record on this node, and what is wrong with records that cannot be used.
pub(crate) fn records(common: &Common) -> Result<(Vec<JobRecord>, Vec<String>), Failure> {
    let (records, broken) = SiteNode::new(common, Intent::Read)?.node(None)?.list()?;
    Ok((records, broken.iter().map(ToString::to_string).collect()))
}

pub(crate) fn of_node(common: &Common) -> Result<(Vec<Job>, Vec<String>), Failure> {
    let (records, broken) = records(common)?;
    Ok((records.into_iter().map(Job::of_node).collect(), broken))
}

pub(crate) fn of_controller(common: &Common) -> Result<Vec<Job>, Failure> {
    let jobs = controller(common)?.list()?.into_iter().map(|(decision, waits_for)| Job {
        state: state(decision.ended()),
        vnis: Vnis { vnis: decision.vnis.clone(), vni_range: None },
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
