//! `cxi explain job`: the state of a job, and the commands that take it to the end.

use cxi_job::cluster::JobRecord;
use cxi_site::JobId;
use serde::Serialize;

use super::list::{Job, of_controller, records};
use crate::exit::{Exit, Failure};
use crate::node::{Intent, Node};
use crate::options::Common;
use crate::output::{Report, by_nic, wrapped};
use crate::service::found::in_use;
use crate::settings;

#[derive(Serialize)]
struct Explained<'a> {
    job: &'a JobId,
    /// According to the record of this node.
    node: Option<Job>,
    /// According to the decision of the controller, if this machine can read it.
    controller: Option<Job>,
    services: Vec<String>,
    next: Vec<String>,
}

pub(crate) fn run(job: &JobId, common: &Common) -> Result<Report, Failure> {
    let record = records(common)?.0.into_iter().find(|record| record.job == *job);
    let sees_controller = common.settings.get(&settings::CONTROLLER_RECORDS)?.is_some();
    let decided = if sees_controller { of_controller(common)? } else { Vec::new() };
    let controller = decided.into_iter().find(|decided| decided.id == *job);
    if record.is_none() && controller.is_none() {
        let failure = Failure::new(Exit::NotFound, format!("job {job} has no record here"));
        return Err(failure
            .hint("It is clean on this node, or was never here: cxi job list shows the jobs.")
            .hint("cxi vni show shows which jobs have VNIs."));
    }
    let services =
        record.as_ref().map_or_else(|| Ok(Vec::new()), |record| services(record, common))?;
    let next = next(record.as_ref(), controller.as_ref());
    let explained = Explained { job, node: record.map(Job::of_node), controller, services, next };
    Ok(Report::new(wrapped(&text(&explained)), &explained))
}

/// Returns the services of the job on this node's NICs.
fn services(record: &JobRecord, common: &Common) -> Result<Vec<String>, Failure> {
    let Some(grant) = &record.grant else {
        return Ok(vec!["its prolog has not ended on this node".to_owned()]);
    };
    let node = Node::open(common, Intent::Read)?;
    let mut texts = Vec::new();
    for device in node.devices() {
        if let Some(id) = grant.service_on(device.id()) {
            let text = in_use(&node, device, id).unwrap_or_else(|error| error.to_string());
            texts.push((device.id(), text));
        }
    }
    Ok(by_nic(texts))
}

/// The commands that continue its life cycle.
fn next(record: Option<&JobRecord>, controller: Option<&Job>) -> Vec<String> {
    let is_over = controller.is_some_and(Job::has_ended);
    let epilog = record.map(|record| {
        let what = if is_over || record.running.is_empty() {
            "destroys its services on this node, and confirms"
        } else {
            "only if it was killed without an epilog"
        };
        format!("cxi job epilog --job {}   ({what})", record.job)
    });
    let missing = controller.into_iter().filter(|job| job.has_ended());
    let missing = missing.flat_map(|job| job.waits_for.iter().map(|node| (&job.id, node)));
    let confirm = missing.map(|(job, node)| {
        format!("cxi job confirm {job} --node {node}   (if {node} was reinstalled or is gone)")
    });
    epilog.into_iter().chain(confirm).collect()
}

fn text(explained: &Explained<'_>) -> String {
    let Explained { job, .. } = explained;
    let mut text = String::new();
    let places = [("on this node", &explained.node), ("on the controller", &explained.controller)];
    for (place, found) in places {
        if let Some(found) = found {
            text += &format!("Job {job} {place}: {}\n", found.words());
        }
    }
    for line in &explained.services {
        text += &format!("{line}\n");
    }
    if !explained.next.is_empty() {
        text += &format!("What to do:\n  {}\n", explained.next.join("\n  "));
    }
    text
}
