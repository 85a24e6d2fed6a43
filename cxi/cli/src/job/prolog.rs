//! `cxi job prolog`.

use std::collections::BTreeMap;
use std::time::Duration;

use cxi_job::{AllocateError, ErrorCode, Filter, Grant, JobRequest, ReleaseOptions};
use serde::Serialize;

use super::cli::{LockArgs, SizeArgs};
use super::epilog::left;
use super::job_node::JobNode;
use super::plan;
use crate::exit::{Exit, Failure};
use crate::options::Common;
use crate::output::{Report, nics};

#[derive(Serialize)]
struct Granted<'a> {
    grant: &'a Grant,
    environment: BTreeMap<&'static str, String>,
}

pub(super) fn run(
    request: &JobRequest,
    lock: &LockArgs,
    common: &Common,
) -> Result<Report, Failure> {
    let (node, grant) = make(request, lock, common)?;
    let report = report(&grant)?;
    Ok(report.or_undo(move || undo(&node, &grant)))
}

pub(super) fn make(
    request: &JobRequest,
    lock: &LockArgs,
    common: &Common,
) -> Result<(JobNode, Grant), Failure> {
    let node = JobNode::locked(common, lock)?;
    let result = node.nics.allocate(request);
    node.save()?;
    let grant = result.map_err(|error| failure(&error))?;
    Ok((node, grant))
}

/// Destroys services whose grant could not be reported; returns what is left, as failures.
pub(super) fn undo(node: &JobNode, grant: &Grant) -> Vec<Failure> {
    let mut made = grant.clone();
    made.services.retain(|entry| !entry.adopted);
    let filter = Filter::for_grant(&made);
    let release = node.nics.release(&filter, &ReleaseOptions::once());
    let mut left = left(&release, Duration::ZERO);
    left.extend(node.save().err());
    left
}

/// Reports what would be made, and what would prevent it, as far as that can be determined without
/// trying.
pub(super) fn dry_run(
    request: &JobRequest,
    size: &SizeArgs,
    common: &Common,
) -> Result<Report, Failure> {
    let node = JobNode::open(common, false)?;
    let report = plan::of_node(&node, size, &common.settings)?;
    let usable: Vec<_> = node.nics.usable().map(cxi_job::NodeNic::id).collect();
    if report.failures().is_empty() {
        return Ok(report.before(&format!(
            "Would create one service on each of {}: for {}, {}\n",
            nics::name(&usable),
            request.members(),
            vnis(request.vnis()),
        )));
    }
    Ok(report)
}

pub(super) fn report(grant: &Grant) -> Result<Report, Failure> {
    let mut text = String::new();
    let entries = grant
        .services
        .iter()
        .map(|entry| (entry.device, (entry.service, entry.adopted, entry.vnis)));
    for (devices, (service, adopted, access)) in nics::merge(entries) {
        let what = if adopted { "Adopted" } else { "Created" };
        text += &format!(
            "{what} service {service} on {}: for {}, {}\n",
            nics::name(&devices),
            grant.members,
            vnis(access)
        );
    }
    let cuts = grant
        .cuts()
        .map(|cut| format!("less than the job's size asks for: {cut}"));
    let left_out = grant.left_out.iter().map(|nic| {
        let problems: Vec<_> = nic.problems.iter().map(ToString::to_string).collect();
        format!(
            "the job does not get {}: {}",
            nic.device,
            problems.join("; ")
        )
    });
    let environment = grant
        .env()
        .map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
    let json = Granted {
        grant,
        environment: environment.vars().into_iter().collect(),
    };
    Ok(Report::new(text, &json).with_warnings(cuts.chain(left_out)))
}

fn vnis(access: cxi::VniAccess) -> String {
    match access {
        cxi::VniAccess::List(list) if list.len() == 1 => format!("VNI {list}"),
        access => format!("VNIs {access}"),
    }
}

/// A failed allocation, with everything that the NICs report about it; what several NICs report is
/// printed once.
pub(super) fn failure(error: &AllocateError) -> Failure {
    let code = error.code();
    if let AllocateError::Locked(error) = error {
        return Failure::new(code.into(), error.to_string())
            .errno(error.errno())
            .hint("--lock or CXI_LOCK names the lock file that all commands on this node share.");
    }
    if error.failures().is_empty() {
        return Failure::new(code.into(), error.to_string());
    }
    let failures = error.failures().iter();
    let failures = failures.map(|failure| (failure.device, failure.text()));
    let mut text: Vec<String> = nics::merge(failures)
        .into_iter()
        .map(|(devices, text)| format!("{}: {text}", nics::name(&devices)))
        .collect();
    text.push(error.remains());
    let failure = Failure::new(code.into(), text.join("\n"));
    if code == ErrorCode::NotEnough {
        failure
            .hint("--no-tles makes a job without TLEs, --mode=scale-back takes what is available.")
            .hint("cxi job plan shows how many jobs of a size fit, cxi service usage who has what.")
    } else {
        failure
    }
}
