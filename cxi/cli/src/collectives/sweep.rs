//! `cxi collectives sweep`.

use std::collections::BTreeSet;
use std::path::Path;

use cxi_job::JobId;
use cxi_job::fabric::FabricManager;
use serde::Serialize;

use super::failure;
use crate::exit::Failure;
use crate::input;
use crate::output::Report;

/// Far more than the ids of all jobs of a system.
const LONGEST_LIST: u64 = 1 << 26;

#[derive(Serialize)]
struct Swept<'a> {
    dry_run: bool,
    live: &'a [JobId],
    released: &'a [JobId],
    failed: Vec<&'a JobId>,
    others: usize,
}

pub(super) fn run(
    manager: &FabricManager,
    live: &[JobId],
    live_from: Option<&Path>,
    dry_run: bool,
) -> Result<Report, Failure> {
    let mut jobs: Option<Result<BTreeSet<JobId>, Failure>> = None;
    let mut ended = Vec::new();
    let swept = manager.sweep(|job| {
        // Read once, when there is a list to compare it with. If it cannot be read, nothing is released.
        let jobs = jobs.get_or_insert_with(|| match live_from {
            Some(path) => read(path),
            None => Ok(live.iter().cloned().collect()),
        });
        let lives = jobs.as_ref().map_or(true, |jobs| jobs.contains(job));
        if dry_run && !lives {
            ended.push(job.clone());
        }
        lives || dry_run
    });
    let mut swept = swept.map_err(|error| failure(&error))?;
    if let Some(Err(failure)) = jobs {
        return Err(failure.hint("Nothing was released."));
    }
    if dry_run {
        swept.live.retain(|job| !ended.contains(job));
        swept.released = ended;
    }
    let failed = swept.failed.iter().map(|(job, _)| job);
    let json = Swept {
        dry_run,
        live: &swept.live,
        released: &swept.released,
        failed: failed.collect(),
        others: swept.others,
    };
    let what = if dry_run { "Would release" } else { "Released" };
    let released = swept.released.iter();
    let mut text: String = released
        .map(|job| format!("{what} the reservation of job {job}\n"))
        .collect();
    let nothing = swept.released.is_empty() && swept.failed.is_empty();
    if nothing {
        text += "Nothing to do: every reservation is of a job that lives\n";
    }
    let failures = swept
        .failed
        .iter()
        .map(|(_, error)| failure(error))
        .collect();
    let report = Report::new(text, &json).with_failures(failures);
    Ok(if nothing {
        report.nothing_to_do()
    } else {
        report
    })
}

fn read(path: &Path) -> Result<BTreeSet<JobId>, Failure> {
    let input = input::read(path, LONGEST_LIST)?;
    let lines = input.text.lines().enumerate();
    let jobs = lines.filter(|(_, line)| !line.trim().is_empty());
    jobs.map(|(index, line)| {
        let of = |error| Failure::bad_input(format!("{}: line {}: {error}", input.name, index + 1));
        line.trim().parse().map_err(of)
    })
    .collect()
}
