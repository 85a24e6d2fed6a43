//! `cxi vni show`.

use std::time::Duration;

use cxi::Vni;
use cxi_job::pool::{Holding, Metrics, Phase, Stray, Timestamp};
use cxi_job::{IdSet, JobId};
use serde::Serialize;

use super::file::PoolFile;
use crate::exit::{Exit, Failure};
use crate::output::Report;
use crate::output::table::Columns;

#[derive(Serialize)]
struct Pool<'a> {
    vnis: &'a IdSet,
    total: usize,
    free: usize,
    reserved: usize,
    draining: usize,
    resting: usize,
    outside: usize,
    jobs: Vec<Job<'a>>,
    strays: Vec<StrayVni<'a>>,
}

#[derive(Serialize)]
struct Job<'a> {
    job: &'a JobId,
    #[serde(flatten)]
    holding: &'a Holding,
}

#[derive(Serialize)]
struct StrayVni<'a> {
    vni: Vni,
    #[serde(flatten)]
    stray: &'a Stray,
}

pub(super) fn run(file: &PoolFile, job: Option<&JobId>) -> Result<Report, Failure> {
    let pool = file.look()?;
    let at = Timestamp::now();
    let mut jobs: Vec<(&JobId, &Holding)> = pool
        .jobs()
        .filter(|(id, _)| job.is_none_or(|wanted| wanted == *id))
        .collect();
    if let (Some(job), true) = (job, jobs.is_empty()) {
        return Err(Failure::new(
            Exit::NotFound,
            format!("job {job} has no VNIs in the pool"),
        ));
    }
    jobs.sort_by_key(|(job, _)| *job);
    let metrics = pool.metrics(at);
    let mut text = if job.is_some() {
        String::new()
    } else {
        totals(pool.config().vnis(), &metrics)
    };
    if !jobs.is_empty() {
        let mut table = Columns::new(&["JOB", "VNIS", "TENANT", "SINCE", "STATE"]);
        for (id, held) in &jobs {
            let tenant = held.tenant.as_ref().map_or("-", |tenant| tenant.as_str());
            table.row([
                id.to_string(),
                vnis(held),
                tenant.to_owned(),
                age(at.since(held.reserved_at)),
                phase(&held.phase),
            ]);
        }
        text += &table.render(0);
    }
    for (vni, stray) in pool.strays().filter(|_| job.is_none()) {
        let nodes: Vec<&str> = stray.nodes.iter().map(cxi_job::NodeName::as_str).collect();
        text += &format!(
            "VNI {vni} is on {} although no job has it\n",
            nodes.join(", ")
        );
    }
    let json = Pool {
        vnis: pool.config().vnis(),
        total: metrics.total,
        free: metrics.free,
        reserved: metrics.reserved,
        draining: metrics.draining,
        resting: metrics.resting,
        outside: metrics.outside,
        jobs: jobs
            .into_iter()
            .map(|(job, holding)| Job { job, holding })
            .collect(),
        strays: pool
            .strays()
            .map(|(vni, stray)| StrayVni { vni, stray })
            .collect(),
    };
    Ok(Report::new(text, &json))
}

fn totals(configured: &IdSet, metrics: &Metrics) -> String {
    let mut text = format!(
        "VNIs {configured}: {} in the pool, {} free, {} reserved, {} draining, {} resting\n",
        metrics.total, metrics.free, metrics.reserved, metrics.draining, metrics.resting
    );
    if metrics.outside > 0 {
        text += &format!(
            "{} more are in use that the pool no longer has\n",
            metrics.outside
        );
    }
    if let Some((holder, since)) = &metrics.oldest_draining {
        text += &format!("Longest draining: {holder}, for {}\n", age(*since));
    }
    text
}

fn vnis(held: &Holding) -> String {
    let set: IdSet = held.vnis.iter().map(Vni::get).collect();
    set.to_string()
}

/// The state of a job's VNIs, in words.
pub(super) fn phase(phase: &Phase) -> String {
    match phase {
        Phase::Reserved { steps, .. } if steps.is_empty() => "reserved".to_owned(),
        Phase::Reserved { steps, .. } => {
            let names: Vec<&str> = steps.iter().map(cxi_job::StepId::as_str).collect();
            format!("reserved, steps {}", names.join(", "))
        }
        Phase::Draining {
            nodes_known: false, ..
        } => "draining until all nodes are confirmed at once".to_owned(),
        Phase::Draining { waiting, .. } => {
            let names: Vec<&str> = waiting.iter().map(cxi_job::NodeName::as_str).collect();
            format!("draining, waits for {}", names.join(", "))
        }
        _ => "unknown".to_owned(),
    }
}

/// A duration, rounded for people.
fn age(time: Duration) -> String {
    humantime::format_duration(Duration::from_secs(time.as_secs())).to_string()
}
