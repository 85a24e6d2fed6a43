//! `cxi job reserve`, `release` and `confirm`: what the controller of a site does.

use std::ffi::OsString;
use std::io;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use cxi_job::cluster::{Controller, Done, ReserveRequest, Site};
use cxi_site::{JobId, NodeName, end_within, input};
use cxi_vni_etcd::SitePool;
use serde_json::json;

use super::cli::{ReleaseArgs, ReserveArgs};
use crate::exit::{Exit, Failure};
use crate::options::Common;
use crate::output::{Report, joined};
use crate::{files, settings};

pub(super) fn controller(common: &Common) -> Result<Controller<'static>, Failure> {
    Ok(Site::open(common.settings.clone())?.controller(SitePool::of(&common.settings)?)?)
}

fn with_manager(common: &Common) -> Result<Controller<'static>, Failure> {
    Ok(controller(common)?.fabric_manager_of(&common.settings)?)
}

pub(super) fn reserve(arguments: &ReserveArgs, common: &Common) -> Result<Report, Failure> {
    let nodes = arguments.nodes.clone();
    let mut request = ReserveRequest::new(arguments.job.clone(), arguments.uid, nodes);
    request.component.clone_from(&arguments.component);
    request.network.clone_from(&arguments.network);
    request.vnis = arguments.vnis;
    request.tenant.clone_from(&arguments.tenant);
    let reserved = with_manager(common)?.reserve(&request)?;
    let vnis = &reserved.result.vnis;
    let json = json!({"job": arguments.job, "vnis": vnis});
    let warnings = reserved.warnings.iter().map(ToString::to_string);
    Ok(Report::new(joined(vnis, ",") + "\n", &json).with_warnings(warnings))
}

pub(super) fn release(arguments: &ReleaseArgs, common: &Common) -> Result<Report, Failure> {
    let done = with_manager(common)?.release(&arguments.job, arguments.component.as_ref())?;
    Ok(released(&done))
}

pub(super) fn sweep(live: &[OsString], common: &Common) -> Result<Report, Failure> {
    let wait = common.settings.get(&settings::WAIT)?;
    let done = with_manager(common)?.sweep(|| listed_by(live, wait))?;
    Ok(released(&done))
}

fn released(done: &Done<Vec<JobId>>) -> Report {
    let ended = done.result.iter();
    let mut text: String = ended.map(|job| format!("Job {job} has ended\n")).collect();
    if text.is_empty() {
        text += "Nothing to do: no such job is running\n";
    }
    let warnings = done.warnings.iter().map(ToString::to_string);
    Report::of(text, "released", &done.result)
        .nothing_to_do_if(done.result.is_empty())
        .with_warnings(warnings)
}

/// The jobs that a command of the scheduler prints; an error if it takes longer than `wait`.
fn listed_by(command: &[OsString], wait: Duration) -> Result<Vec<JobId>, Failure> {
    let (program, arguments) = command.split_first().expect("clap requires one");
    let name = program.display();
    let failed = |why: String| {
        Failure::new(Exit::Failed, format!("{name}: {why}")).hint("Nothing was released.")
    };
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    let stdout = child.stdout.take().expect("it is piped");
    let deadline = Instant::now() + wait;
    // A process that the command started may keep the pipe open.
    let text = input::piped(&stdout, files::LONGEST, wait, wait);
    // A command that goes on printing ends.
    drop(stdout);
    let late = match &text {
        Ok(text) => text.is_none(),
        Err(error) => error.kind() == io::ErrorKind::TimedOut,
    };
    let left =
        if late { Duration::ZERO } else { deadline.saturating_duration_since(Instant::now()) };
    let ended = end_within(&mut child, left).map_err(|error| failed(error.to_string()))?;
    let Some(status) = ended.filter(|_| !late) else {
        let wait = humantime::format_duration(wait);
        return Err(failed(format!(
            "no list of jobs within {wait}: the setting wait changes how long to wait"
        )));
    };
    let text = text.map(Option::unwrap_or_default).and_then(input::text);
    let text = text.map_err(|error| failed(error.to_string()))?;
    if !status.success() {
        return Err(failed(format!("ended with {status}")));
    }
    let jobs = text.split_whitespace().map(JobId::new);
    jobs.collect::<Result<_, _>>().map_err(|error| failed(error.to_string()))
}

pub(super) fn confirm(job: &JobId, node: &NodeName, common: &Common) -> Result<Report, Failure> {
    controller(common)?.confirm(job, node)?;
    let text = format!("Job {job}: confirmed for {node}\n");
    Ok(Report::new(text, &json!({"job": job, "node": node})))
}
