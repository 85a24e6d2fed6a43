//! `cxi job prolog`.

use std::collections::BTreeMap;

use cxi_job::Grant;
use cxi_job::cluster::{JobShape, NetworkOptions, StartingJob};
use serde::Serialize;

use super::cli::PrologArgs;
use super::node::{JobNode, SiteNode};
use super::plan;
use crate::exit::Failure;
use crate::node::Intent;
use crate::options::Common;
use crate::output::shapes::Granted;
use crate::output::{Report, joined, merge, nic_names};
use crate::service::found::vnis;

#[derive(Serialize)]
struct Started<'a> {
    /// Null for a job that gets no service.
    grant: Option<Granted<'a>>,
    environment: BTreeMap<&'static str, String>,
}

pub(super) fn run(arguments: &PrologArgs, common: &Common) -> Result<Report, Failure> {
    let here = SiteNode::new(common, Intent::Change)?.nics_optional(arguments.record.optional);
    if let Some(nothing) = here.without_nics() {
        return Ok(nothing);
    }
    let shape = arguments.size.shape(&arguments.service)?;
    if arguments.dry_run {
        return dry_run(&shape, arguments, common);
    }
    let mut starting = StartingJob::new(arguments.record.job.clone());
    starting.component.clone_from(&arguments.record.component);
    starting.access = arguments.who.undecided();
    starting.shape = shape;
    starting.replace = arguments.replace;
    let started = here.node(None)?.prolog(&starting);
    here.save()?;
    let started = started?;
    let Some(grant) = started.grant else {
        let json = Started { grant: None, environment: BTreeMap::new() };
        return Ok(Report::new("The job needs no VNI and gets no service\n", &json));
    };
    let report = report(&grant)?.with_warnings(started.warnings);
    let common = common.clone();
    Ok(report.or_undo(move || undo(&starting, &grant, &common).err().into_iter().collect()))
}

fn undo(starting: &StartingJob, grant: &Grant, common: &Common) -> Result<(), Failure> {
    let here = SiteNode::new(common, Intent::Change)?;
    let undone = here.node(None)?.undo(&starting.job, starting.component.as_ref(), grant);
    here.save()?;
    Ok(undone?)
}

/// Reports what would be created, and what would prevent it, as far as that can be determined without
/// trying.
fn dry_run(shape: &JobShape, arguments: &PrologArgs, common: &Common) -> Result<Report, Failure> {
    let (network, access) = (NetworkOptions::default(), arguments.who.access());
    let request = access.request(shape, &network, &common.settings)?;
    let node = JobNode::open(common, Intent::Read)?;
    let report = plan::of_node(&node, &arguments.size, &common.settings)?;
    let usable: Vec<_> = node.nics.usable().map(cxi_job::NodeNic::id).collect();
    if report.failures().is_empty() {
        return Ok(report.before(&format!(
            "Would create one service on each of {}: for {}, {}\n",
            nic_names(&usable),
            request.members(),
            vnis(request.vnis()),
        )));
    }
    Ok(report)
}

fn report(grant: &Grant) -> Result<Report, Failure> {
    let mut text = String::new();
    let entries = grant
        .services
        .iter()
        .map(|entry| (entry.device, (entry.service, entry.adopted, entry.vnis)));
    for (devices, (service, adopted, access)) in merge(entries) {
        let what = if adopted { "Adopted" } else { "Created" };
        text += &format!(
            "{what} service {service} on {}: for {}, {}\n",
            nic_names(&devices),
            grant.members,
            vnis(access)
        );
    }
    let cuts = grant.cuts().map(|cut| format!("less than the job's size asks for: {cut}"));
    let left_out = grant
        .left_out
        .iter()
        .map(|nic| format!("the job does not get {}: {}", nic.device, joined(&nic.problems, "; ")));
    let environment = grant.env()?.vars().into_iter().collect();
    let json = Started { grant: Some(grant.into()), environment };
    Ok(Report::new(text, &json).with_warnings(cuts.chain(left_out)))
}
