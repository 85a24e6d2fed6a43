//! `cxi collectives`: reservations at the fabric manager.

pub(crate) mod cli;

use std::collections::BTreeSet;
use std::env;

use cxi_job::cluster::{self, Warning, fabric_manager};
use cxi_site::collectives::{CLEAR, CollectivesEnv, preflight};
use cxi_site::{JobId, StepId, durable};
use serde_json::json;

use crate::exit::{Exit, Failure};
use crate::files;
use crate::output::Report;
use crate::settings::Settings;
use cli::{CollectivesCommand, ReserveArgs, SweepArgs};

pub(crate) fn run(command: &CollectivesCommand, settings: &Settings) -> Result<Report, Failure> {
    match command {
        CollectivesCommand::Reserve(arguments) => reserve(arguments, settings),
        CollectivesCommand::StepEnd { job, step } => end_step(job.as_ref(), step, settings),
        CollectivesCommand::Release { job } => {
            let there = fabric_manager(settings)?.release(job)?;
            let text = format!("Released the reservation of job {job}\n");
            let nothing = format!("Nothing to do: job {job} has no reservation\n");
            Ok(done(there, &text, &nothing))
        }
        CollectivesCommand::Sweep(arguments) => sweep(arguments, settings),
        CollectivesCommand::Preflight => Ok(preflight_of_process()),
    }
}

/// A report of what was done, or that there was nothing to do.
fn done(there: bool, text: &str, nothing: &str) -> Report {
    let text = if there { text } else { nothing };
    Report::of(text, "done", &there).nothing_to_do_if(!there)
}

fn end_step(job: Option<&JobId>, step: &StepId, settings: &Settings) -> Result<Report, Failure> {
    let there = if let Some(job) = job {
        fabric_manager(settings)?.end_step(job, step)?
    } else {
        let inherited =
            CollectivesEnv::inherit(env::var_os, step.clone()).map_err(Failure::bad_input)?;
        let Some(inherited) = inherited else {
            return Err(Failure::bad_input(
                "no --job, and the environment has no FI_CXI_COLL_JOB_ID",
            ));
        };
        cluster::end_inherited_step(inherited.reservation(), step, settings)?
    };
    let text = format!("Ended step {step}\n");
    let nothing = "Nothing to do: the job has no reservation\n";
    Ok(done(there, &text, nothing))
}

fn preflight_of_process() -> Report {
    let findings = preflight(env::var_os, |path| durable::exists(path).unwrap_or(false));
    let Some(findings) = findings else {
        let text = "No reservation: FI_CXI_COLL_… are not set\n";
        return Report::of(text, "findings", &[(); 0]).nothing_to_do_if(true);
    };
    let text: String = findings.iter().map(|finding| format!("{finding}\n")).collect();
    if findings.is_empty() {
        return Report::of("No problems found.\n", "findings", &findings);
    }
    Report::of(text, "findings", &findings).ending_with(Exit::Findings as u8)
}

fn reserve(arguments: &ReserveArgs, settings: &Settings) -> Result<Report, Failure> {
    let manager = fabric_manager(settings)?;
    match manager.offload(&arguments.job, arguments.step.clone(), arguments.limit) {
        Ok(env) => {
            let env = match arguments.min_nodes {
                Some(nodes) => env.min_nodes(nodes),
                None => env,
            };
            Ok(Report::environment(env.vars(), &CLEAR))
        }
        Err(error) if arguments.required => Err(error.into()),
        Err(error) => {
            let warning = Warning::WithoutCollectives(error).to_string();
            Ok(Report::environment(Vec::new(), &CLEAR).with_warnings([warning]))
        }
    }
}

fn sweep(arguments: &SweepArgs, settings: &Settings) -> Result<Report, Failure> {
    let (manager, dry_run) = (fabric_manager(settings)?, arguments.dry_run);
    let mut jobs: Option<Result<BTreeSet<JobId>, Failure>> = None;
    let mut ended = Vec::new();
    let swept = manager.sweep(|job| {
        // Read once, when there is a list to compare it with. If it cannot be read, nothing is released.
        let jobs = jobs.get_or_insert_with(|| match &arguments.live_from {
            Some(path) => files::jobs(path),
            None => Ok(arguments.live.iter().cloned().collect()),
        });
        let lives = jobs.as_ref().map_or(true, |jobs| jobs.contains(job));
        if dry_run && !lives {
            ended.push(job.clone());
        }
        lives || dry_run
    });
    let mut swept = swept?;
    if let Some(Err(failure)) = jobs {
        return Err(failure.hint("Nothing was released."));
    }
    if dry_run {
        swept.live.retain(|job| !ended.contains(job));
        swept.released = ended;
    }
    let failed = swept.failed.iter().map(|(job, _)| job);
    let json = json!({
        "dry_run": dry_run,
        "live": swept.live,
        "released": swept.released,
        "failed": failed.collect::<Vec<_>>(),
        "others": swept.others,
    });
    let what = if dry_run { "Would release" } else { "Released" };
    let released = swept.released.iter();
    let mut text: String =
        released.map(|job| format!("{what} the reservation of job {job}\n")).collect();
    let nothing = swept.released.is_empty() && swept.failed.is_empty();
    if nothing {
        text += "Nothing to do: every reservation belongs to a live job\n";
    }
    let report = Report::new(text, &json).nothing_to_do_if(nothing);
    let failures = swept.failed.into_iter().map(|(_, error)| error.into());
    Ok(report.with_failures(failures.collect()))
}
