//! `cxi job epilog`.

use std::time::Duration;

use cxi::{DeviceId, ServiceId};
use cxi_ioctl::Errno;
use cxi_job::release::{Outcome, Released};
use cxi_job::{Filter, ReleaseOptions, ReleaseReport, ReleaseStatus};
use serde::Serialize;

use super::cli::{LockArgs, WhichArgs};
use super::job_node::JobNode;
use super::progress::Progress;
use super::which::{filter, selected};
use crate::exit::{Exit, Failure};
use crate::options::Common;
use crate::output::Report;

pub(super) fn run(
    which: &WhichArgs,
    retry: Duration,
    lock: &LockArgs,
    dry: bool,
    common: &Common,
) -> Result<Report, Failure> {
    let filter = filter(which)?;
    if dry {
        let node = JobNode::open(common, false)?;
        return Ok(dry_run(&selected(&node, &filter)?));
    }
    Ok(release_report(
        &destroy(&filter, retry, lock, common)?,
        retry,
    ))
}

pub(super) fn destroy(
    filter: &Filter,
    retry: Duration,
    lock: &LockArgs,
    common: &Common,
) -> Result<ReleaseReport, Failure> {
    let node = JobNode::locked(common, lock)?;
    let progress = Progress::new(common.json);
    let tell = |waiting: &cxi_job::release::Waiting| progress.tell(waiting);
    let options = ReleaseOptions::until(retry).progress(&tell);
    let release = node.nics.release(filter, &options);
    progress.end();
    node.save()?;
    Ok(release)
}

pub(super) fn release_report(release: &ReleaseReport, retry: Duration) -> Report {
    let json = Done {
        status: status(release.status()),
        release,
    };
    let mut text = gone(release);
    if release.status() == ReleaseStatus::NothingToDo {
        text += "Nothing to do: the job has no service on this node\n";
    }
    report(text, &json, release, retry)
}

#[derive(Serialize)]
pub(super) struct Done<'a> {
    pub(super) status: &'static str,
    #[serde(flatten)]
    pub(super) release: &'a ReleaseReport,
}

pub(super) fn status(status: ReleaseStatus) -> &'static str {
    match status {
        ReleaseStatus::NothingToDo => "nothing_to_do",
        ReleaseStatus::Done => "done",
        ReleaseStatus::StillBusy => "still_busy",
        _ => "failed",
    }
}

/// The services that are gone, one line each.
pub(super) fn gone(release: &ReleaseReport) -> String {
    let gone = release.services.iter().filter(|service| service.is_gone());
    gone.map(|service| format!("{service}\n")).collect()
}

/// The report of a release. What is left are failures; those that retrying cannot help come first.
pub(super) fn report(
    text: String,
    json: &impl Serialize,
    release: &ReleaseReport,
    retry: Duration,
) -> Report {
    let report = Report::new(text, json).with_failures(left(release, retry));
    if release.status() == ReleaseStatus::NothingToDo {
        report.nothing_to_do()
    } else {
        report
    }
}

pub(super) fn left(release: &ReleaseReport, retry: Duration) -> Vec<Failure> {
    let nics = release
        .nics
        .iter()
        .map(|nic| Failure::new(Exit::Failed, nic.reason.clone()));
    let mut failures: Vec<Failure> = nics.collect();
    failures.extend(release.left().map(|service| of_service(service, retry)));
    failures.sort_by_key(|failure| failure.kind() == Exit::Busy);
    failures
}

fn of_service(released: &Released, retry: Duration) -> Failure {
    let failure = if let Outcome::Failed { errno, .. } = &released.outcome {
        let errno = Errno::from_raw(*errno);
        let exit = match errno {
            Errno::EPERM | Errno::EACCES => Exit::NotPermitted,
            // Other commands held the lock for the whole time.
            Errno::EAGAIN => Exit::Busy,
            _ => Exit::Failed,
        };
        Failure::new(exit, released.to_string()).errno(errno)
    } else {
        let failure = Failure::new(Exit::Busy, released.to_string()).errno(Errno::EBUSY);
        if retry.is_zero() {
            failure.hint("--retry-busy TIME tries until it is idle; ending its processes helps.")
        } else {
            failure
        }
    };
    failure.hint("Its VNIs must not be given to another job on this node before it is destroyed.")
}

fn dry_run(found: &[(DeviceId, cxi::Service)]) -> Report {
    #[derive(Serialize)]
    struct Would {
        would_destroy: Vec<One>,
    }
    #[derive(Serialize)]
    struct One {
        device: DeviceId,
        service: ServiceId,
    }
    let text: String = found
        .iter()
        .map(|(device, service)| format!("Would destroy service {} on {device}\n", service.id()))
        .collect();
    let would_destroy = found.iter().map(|(device, service)| One {
        device: *device,
        service: service.id(),
    });
    let json = Would {
        would_destroy: would_destroy.collect(),
    };
    if found.is_empty() {
        let text = "Nothing to do: the job has no service on this node\n";
        return Report::new(text, &json).nothing_to_do();
    }
    Report::new(text, &json)
}
