//! `cxi collectives`: reservations at the fabric manager.

pub(crate) mod cli;
pub(crate) mod reserve;
mod sweep;

use std::env;
use std::path::Path;
use std::sync::Arc;

use cxi_job::collectives::{CollectivesEnv, preflight};
use cxi_job::fabric::{FabricError, FabricManager, HttpError, Problem, Session};
use cxi_job::{JobId, StepId};
use serde::Serialize;

use crate::exit::{Exit, Failure};
use crate::output::Report;
use crate::settings::Settings;
use cli::{CollectivesCommand, ManagerArgs};

pub(crate) fn run(command: &CollectivesCommand, settings: &Settings) -> Result<Report, Failure> {
    match command {
        CollectivesCommand::Reserve {
            job,
            step,
            limit,
            min_nodes,
            required,
            manager,
        } => reserve::run(
            &open(manager, settings)?,
            job,
            step,
            (*limit, *min_nodes),
            *required,
        ),
        CollectivesCommand::StepEnd { job, step, manager } => {
            end_step(job.as_ref(), step, manager, settings)
        }
        CollectivesCommand::Release { job, manager } => {
            let there = open(manager, settings)?
                .release(job)
                .map_err(|error| failure(&error))?;
            let text = format!("Released the reservation of job {job}\n");
            Ok(done(
                there,
                text,
                &format!("Nothing to do: job {job} has no reservation\n"),
            ))
        }
        CollectivesCommand::Sweep {
            live,
            live_from,
            none_live: _,
            dry_run,
            manager,
        } => sweep::run(
            &open(manager, settings)?,
            live,
            live_from.as_deref(),
            *dry_run,
        ),
        CollectivesCommand::Preflight => Ok(preflight_of_process()),
    }
}

/// What was done, if there was something to do.
fn done(there: bool, text: String, nothing: &str) -> Report {
    #[derive(Serialize)]
    struct Done {
        done: bool,
    }
    let json = Done { done: there };
    if there {
        Report::new(text, &json)
    } else {
        Report::new(nothing, &json).nothing_to_do()
    }
}

/// The fabric manager of the options, or else of the settings.
pub(crate) fn open(options: &ManagerArgs, settings: &Settings) -> Result<FabricManager, Failure> {
    let manager = options.or(settings)?.open();
    manager.map_err(|error| failure(&error))
}

fn end_step(
    job: Option<&JobId>,
    step: &StepId,
    options: &ManagerArgs,
    settings: &Settings,
) -> Result<Report, Failure> {
    let there = if let Some(job) = job {
        open(options, settings)?.end_step(job, step)
    } else {
        let inherited = CollectivesEnv::inherit(env::var_os, step.clone())
            .map_err(|error| Failure::bad_input(error.to_string()))?;
        let Some(inherited) = inherited else {
            return Err(Failure::bad_input(
                "no --job, and the environment has no FI_CXI_COLL_JOB_ID",
            ));
        };
        let options = options.or(settings)?;
        let transport = options.transport().map_err(|error| failure(&error))?;
        let session = Session::new(inherited.reservation().clone(), Arc::new(transport));
        session.patience(options.patience()).end_step(step)
    };
    let there = there.map_err(|error| failure(&error))?;
    let text = format!("Ended step {step}\n");
    Ok(done(
        there,
        text,
        "Nothing to do: the job has no reservation\n",
    ))
}

fn preflight_of_process() -> Report {
    let findings = preflight(env::var_os, Path::exists);
    let Some(findings) = findings else {
        return Report::new("No reservation: FI_CXI_COLL_… are not set\n", &()).nothing_to_do();
    };
    let text: String = findings
        .iter()
        .map(|finding| format!("{finding}\n"))
        .collect();
    if findings.is_empty() {
        return Report::new("Nothing was found.\n", &findings);
    }
    Report::new(text, &findings).ending_with(Exit::Findings as u8)
}

/// The failure for what went wrong with a fabric manager.
pub(crate) fn failure(error: &FabricError) -> Failure {
    let failure = Failure::new(error.code().into(), error.to_string());
    match error.problem() {
        Problem::Transport(HttpError::Untrusted(_)) => failure
            .hint("--certificate names the authorities by which the fabric manager is verified."),
        _ => failure,
    }
}
