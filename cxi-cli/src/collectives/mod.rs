//! `cxi collectives`: reservations at the fabric manager.

pub(crate) mod cli;
mod reserve;
mod sweep;

use std::env;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cxi_job::collectives::{Certificate, CollectivesEnv, preflight};
use cxi_job::fabric::{
    Cluster, Credentials, FabricError, FabricManager, Http, Patience, Problem, Session,
    TransportError,
};
use cxi_job::{JobId, StepId};
use serde::Serialize;

use crate::exit::{Exit, Failure};
use crate::output::Report;
use cli::{AccessArgs, Auth, CollectivesCommand, ManagerArgs, OptionalManagerArgs};

pub(crate) fn run(command: &CollectivesCommand) -> Result<Report, Failure> {
    match command {
        CollectivesCommand::Reserve {
            job,
            step,
            limit,
            min_nodes,
            required,
            manager,
        } => reserve::run(&open(manager)?, job, step, (*limit, *min_nodes), *required),
        CollectivesCommand::StepEnd { job, step, manager } => end_step(job.as_ref(), step, manager),
        CollectivesCommand::Release { job, manager } => {
            let there = open(manager)?
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
        } => sweep::run(&open(manager)?, live, live_from.as_deref(), *dry_run),
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

fn open(arguments: &ManagerArgs) -> Result<FabricManager, Failure> {
    manager(&arguments.url, &arguments.cluster, &arguments.access)
}

fn manager(url: &str, cluster: &Cluster, access: &AccessArgs) -> Result<FabricManager, Failure> {
    let directory = access.auth_dir.as_deref();
    let credentials = match access.auth {
        Auth::Oauth => Credentials::oauth(directory),
        Auth::Basic => Credentials::basic(directory),
    };
    let transport = Arc::new(http(&access.certificate)?);
    let certificate = access.certificate.clone();
    let manager = FabricManager::new(url, cluster.clone(), credentials, transport, certificate);
    let manager = manager.map_err(|error| failure(&error))?;
    Ok(manager.patience(patience(access.deadline)))
}

fn http(certificate: &Certificate) -> Result<Http, Failure> {
    Http::new(certificate).map_err(|error| Failure::bad_input(error.to_string()))
}

fn patience(deadline: Duration) -> Patience {
    let usual = Patience::default();
    Patience {
        attempt: usual.attempt.min(deadline),
        deadline,
        ..usual
    }
}

fn end_step(
    job: Option<&JobId>,
    step: &StepId,
    arguments: &OptionalManagerArgs,
) -> Result<Report, Failure> {
    let access = &arguments.access;
    let there = if let Some(job) = job {
        let missing = |option, variable| {
            Failure::bad_input(format!("--job needs {option}, or the variable {variable}"))
        };
        let url = arguments.url.as_deref();
        let url = url.ok_or_else(|| missing("--url", "CXI_FABRIC_MANAGER"))?;
        let cluster = arguments.cluster.as_ref();
        let cluster = cluster.ok_or_else(|| missing("--cluster", "CXI_CLUSTER"))?;
        manager(url, cluster, access)?.end_step(job, step)
    } else {
        let inherited = CollectivesEnv::inherit(env::var_os, step.clone())
            .map_err(|error| Failure::bad_input(error.to_string()))?;
        let Some(inherited) = inherited else {
            return Err(Failure::bad_input(
                "no --job, and the environment has no FI_CXI_COLL_JOB_ID",
            ));
        };
        let transport = Arc::new(http(&access.certificate)?);
        let session = Session::new(inherited.reservation().clone(), transport);
        session.patience(patience(access.deadline)).end_step(step)
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
pub(super) fn failure(error: &FabricError) -> Failure {
    let exit = match error.problem() {
        Problem::Deadline { .. } => Exit::Busy,
        Problem::Refused {
            status: 401 | 403, ..
        } => Exit::NotPermitted,
        Problem::Refused { status: 507, .. } => Exit::NotEnough,
        Problem::Credentials(_) | Problem::Name(_) => Exit::BadInput,
        Problem::Token { problem, .. } => match **problem {
            Problem::Refused { .. } => Exit::NotPermitted,
            _ => Exit::Failed,
        },
        _ => Exit::Failed,
    };
    let failure = Failure::new(exit, error.to_string());
    match error.problem() {
        Problem::Transport(TransportError::Untrusted(_)) => {
            failure.hint("--certificate names the authorities that vouch for the fabric manager.")
        }
        _ => failure,
    }
}
