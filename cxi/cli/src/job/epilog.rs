//! `cxi job epilog` and `clean`.

use std::time::Duration;

use cxi_ioctl::Errno;
use cxi_job::clean::{KeepReason, OrphanReason, Verdict};
use cxi_job::cluster::{Cleaned, Cleaning};
use cxi_job::release::{Outcome, Released, Waiting};
use cxi_job::{ReleaseOptions, ReleaseReport, ReleaseStatus};
use cxi_site::{JobId, NodeName};
use serde::Serialize;

use super::cli::{CleanArgs, EpilogArgs};
use super::node::SiteNode;
use crate::exit::{Exit, Failure};
use crate::node::Intent;
use crate::options::Common;
use crate::output::shapes::Release;
use crate::output::{Progress, Report};
use crate::settings;

pub(super) fn run(arguments: &EpilogArgs, common: &Common) -> Result<Report, Failure> {
    let record = &arguments.record;
    let retry = arguments.wait.time(&common.settings)?;
    let here = SiteNode::new(common, Intent::Change)?.nics_optional(record.optional);
    let node = here.node(arguments.node.as_ref())?;
    let release =
        until(retry, |options| node.epilog(&record.job, record.component.as_ref(), options));
    here.save()?;
    let release = release?;
    // It has confirmed to the controller nevertheless.
    if let Some(nothing) = here.without_nics() {
        return Ok(nothing);
    }
    let json = Done { status: status(release.status()), release: (&release).into() };
    let mut text = gone(&release);
    if release.status() == ReleaseStatus::NothingToDo {
        text += "Nothing to do: the job has no service on this node\n";
    }
    let foreign: Vec<String> = release.foreign().map(ToString::to_string).collect();
    let hint = "its VNI is not free; a service is destroyed by whoever made it, or with: cxi service destroy ID";
    let foreign = foreign.into_iter().map(|service| format!("{service}; {hint}"));
    Ok(report(text, &json, &release, retry).with_warnings(foreign))
}

/// Tries to release for at most this long, and shows what it is waiting for.
pub(super) fn until<T>(retry: Duration, release: impl FnOnce(&ReleaseOptions<'_>) -> T) -> T {
    let progress = Progress::new();
    let tell = |waiting: &Waiting| progress.tell(format_args!("Waiting: {waiting}"));
    release(&ReleaseOptions::until(retry).progress(&tell))
}

#[derive(Serialize)]
struct Done<'a> {
    status: &'static str,
    #[serde(flatten)]
    release: Release<'a>,
}

fn status(status: ReleaseStatus) -> &'static str {
    match status {
        ReleaseStatus::NothingToDo => "nothing_to_do",
        ReleaseStatus::Done => "done",
        ReleaseStatus::StillBusy => "still_busy",
        _ => "failed",
    }
}

/// The services that were destroyed, one per line.
fn gone(release: &ReleaseReport) -> String {
    let gone = release.services.iter().filter(|service| service.is_gone());
    gone.map(|service| format!("{service}\n")).collect()
}

/// The report of a release. Each remaining service is a failure; those that a retry cannot destroy
/// come first.
fn report(text: String, json: &impl Serialize, release: &ReleaseReport, retry: Duration) -> Report {
    Report::new(text, json)
        .with_failures(left(release, retry))
        .nothing_to_do_if(release.status() == ReleaseStatus::NothingToDo)
}

pub(crate) fn left(release: &ReleaseReport, retry: Duration) -> Vec<Failure> {
    let nics = release.nics.iter().map(|nic| Failure::failed(nic.reason.clone()));
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
            // Other commands held the lock the whole time.
            Errno::EAGAIN => Exit::Busy,
            _ => Exit::Failed,
        };
        Failure::new(exit, released).errno(errno)
    } else {
        let failure = Failure::new(Exit::Busy, released).errno(Errno::EBUSY);
        if retry.is_zero() {
            failure.hint(
                "--retry-busy TIME keeps trying until it is idle; ending its processes helps.",
            )
        } else {
            failure
        }
    };
    failure.hint("Its VNIs must not be given to another job on this node before it is destroyed.")
}

#[derive(Serialize)]
struct CleanedJson<'a> {
    /// Null for a dry run, as is what became of the orphans.
    status: Option<&'static str>,
    orphans: &'a [Verdict<OrphanReason>],
    kept: &'a [Verdict<KeepReason>],
    release: Option<Release<'a>>,
    ended: &'a [JobId],
    broken: &'a [String],
}

pub(super) fn clean(arguments: &CleanArgs, common: &Common) -> Result<Report, Failure> {
    let settings = &common.settings;
    let pool = settings.or(arguments.pool_vnis.clone(), &settings::POOL_VNIS)?;
    let mut cleaning = Cleaning::new(pool);
    cleaning.live = arguments.live.clone().unwrap_or_default();
    cleaning.live_from.clone_from(&arguments.live_from);
    cleaning.none_live = arguments.none_live;
    cleaning.foreign = arguments.foreign;
    cleaning.dry_run = arguments.dry_run;
    let retry = arguments.wait.time(settings)?;
    let intent = if arguments.dry_run { Intent::Read } else { Intent::Change };
    let here = SiteNode::new(common, intent)?.nics_optional(arguments.optional);
    let node = here.node(arguments.node.as_ref())?;
    let cleaned = until(retry, |options| node.clean(&cleaning, options));
    here.save()?;
    let cleaned = cleaned?;
    match here.without_nics() {
        Some(nothing) if cleaned.ended.is_empty() => Ok(nothing),
        _ => Ok(clean_report(&cleaned, retry)),
    }
}

/// The services that a cleanup of this node would destroy.
pub(crate) fn left_over(
    name: Option<&NodeName>,
    common: &Common,
) -> Result<Vec<Verdict<OrphanReason>>, Failure> {
    let mut cleaning = Cleaning::new(common.settings.get(&settings::POOL_VNIS)?);
    cleaning.dry_run = true;
    let here = SiteNode::new(common, Intent::Read)?;
    Ok(here.node(name)?.clean(&cleaning, &ReleaseOptions::once())?.clean.orphans)
}

fn clean_report(cleaned: &Cleaned, retry: Duration) -> Report {
    let Cleaned { clean, ended, broken, .. } = cleaned;
    let release = clean.release.as_ref();
    let json = CleanedJson {
        status: release.map(|release| status(release.status())),
        orphans: &clean.orphans,
        kept: &clean.kept,
        release: release.map(Release::from),
        ended,
        broken,
    };
    let mut text = release.map(gone).unwrap_or_default();
    for job in ended {
        text += &format!("Job {job} has ended: nothing is left of it\n");
    }
    let is_nothing = text.is_empty() && clean.orphans.is_empty();
    if is_nothing && release.is_none_or(|release| release.nics.is_empty()) {
        text += "Nothing to do: no service is left of a job that has ended\n";
    }
    let foreign = clean.kept.iter().filter(|kept| kept.reason == KeepReason::Foreign);
    // A dry run prints all that is kept.
    let foreign = foreign
        .filter(|_| release.is_some())
        .map(|kept| format!("left {kept}; --foreign destroys it, too, or: cxi service destroy ID"));
    let aside = if release.is_some() { "; it was put aside" } else { "" };
    let broken = broken.iter().map(|error| format!("{error}{aside}"));
    let warnings: Vec<String> = foreign.chain(broken).collect();
    let report = match release {
        // Nothing had to be destroyed, but a record was removed.
        Some(release) if release.status() == ReleaseStatus::NothingToDo && !ended.is_empty() => {
            Report::new(text, &json)
        }
        Some(release) => report(text, &json, release, retry),
        // A dry run also says what is kept, and why.
        None => {
            let lines = clean.to_string();
            text.extend(lines.lines().flat_map(|line| [line, "\n"]));
            Report::new(text, &json).nothing_to_do_if(clean.orphans.is_empty())
        }
    };
    report.with_warnings(warnings)
}
