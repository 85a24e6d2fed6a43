//! `cxi job list`.

use std::collections::BTreeSet;

use cxi_job::JobId;
use serde::Serialize;

use super::{controller, recorded};
use crate::exit::Failure;
use crate::options::Common;
use crate::output::Report;
use crate::output::table::Columns;

#[derive(Serialize)]
struct Jobs {
    jobs: Vec<Job>,
}

/// A job that is running or has ended; of one that is clean nothing is known.
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
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) scaled_back: BTreeSet<String>,
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
            (true, false) => format!("scaled back: {}", join(&job.scaled_back)),
            (true, true) => String::new(),
        };
        let vnis = if job.vnis.is_empty() { "-" } else { &job.vnis };
        table.row([job.id.as_str(), job.state, vnis, &more]);
    }
    Ok(Report::new(table.render(0), &Jobs { jobs }))
}

pub(crate) fn of_node(common: &Common) -> Result<Vec<Job>, Failure> {
    let records = recorded::records(&common.settings)?.all()?;
    let jobs = records.into_iter().map(|record| Job {
        state: if record.running.is_empty() {
            "ended"
        } else {
            "running"
        },
        vnis: record.vnis().to_string(),
        waits_for: Vec::new(),
        scaled_back: record
            .grant
            .iter()
            .flat_map(cxi_job::Grant::cuts)
            .map(|cut| cut.resource.to_string())
            .collect(),
        id: record.job,
    });
    Ok(jobs.collect())
}

pub(crate) fn of_controller(common: &Common) -> Result<Vec<Job>, Failure> {
    let decisions = controller::decisions(&common.settings)?;
    let mut jobs = Vec::new();
    // One that ends meanwhile is in both lists.
    let all = [decisions.jobs_running()?, decisions.jobs_ended()?].concat();
    for job in all.into_iter().collect::<BTreeSet<_>>() {
        let Some(decision) = decisions.find(&job)? else {
            continue;
        };
        let ended = decision.ended();
        let vnis: Vec<String> = decision.vnis.iter().map(ToString::to_string).collect();
        jobs.push(Job {
            id: job,
            state: if ended { "ended" } else { "running" },
            vnis: vnis.join(","),
            waits_for: if ended {
                decisions.missing(&decision)?
            } else {
                Vec::new()
            },
            scaled_back: BTreeSet::new(),
        });
    }
    Ok(jobs)
}

fn join(words: &BTreeSet<String>) -> String {
    words
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(",")
}
