//! `cxi collectives`: reservations at the fabric manager.

pub(crate) mod cli;
pub(crate) mod reserve;
mod sweep;

use std::env;
use std::path::Path;
use std::sync::Arc;

use cxi_job::collectives::{Certificate, CollectivesEnv, preflight};
use cxi_job::fabric::{
    Credentials, FabricError, FabricManager, Http, HttpError, Identity, Patience, Problem, Session,
};
use cxi_job::settings::Key;
use cxi_job::{JobId, StepId};
use serde::Serialize;

use crate::exit::{Exit, Failure};
use crate::output::Report;
use crate::settings::{self, Settings};
use cli::{Auth, CollectivesCommand, ManagerArgs};

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
    let url = given(options.url.as_ref(), settings, &settings::FABRIC_URL)?;
    let cluster = given(
        options.cluster.as_ref(),
        settings,
        &settings::FABRIC_CLUSTER,
    )?;
    let missing = |what| Failure::bad_input(format!("no {what} is configured"));
    let url = url.ok_or_else(|| {
        missing("fabric manager")
            .hint("Expected --url, CXI_FABRIC_MANAGER or the setting fabric-manager.url.")
    })?;
    let cluster = cluster.ok_or_else(|| {
        missing("name of this cluster")
            .hint("Expected --cluster, CXI_CLUSTER or the setting fabric-manager.cluster.")
    })?;
    let directory = given(
        options.auth_dir.as_ref(),
        settings,
        &settings::FABRIC_AUTH_DIR,
    )?;
    let credentials = match settings.or(options.auth, &settings::FABRIC_AUTH)? {
        Auth::Oauth => Credentials::oauth(directory.as_deref()),
        Auth::Basic => Credentials::basic(directory.as_deref()),
    };
    let (transport, certificate) = http(options, settings)?;
    let transport = Arc::new(transport);
    let manager = FabricManager::new(&url, cluster, credentials, transport, certificate);
    let manager = manager.map_err(|error| failure(&error))?;
    Ok(manager.patience(patience(options, settings)?))
}

/// An option, or else a setting that may be absent.
fn given<T: Clone>(
    option: Option<&T>,
    settings: &Settings,
    key: &Key<Option<T>>,
) -> Result<Option<T>, Failure> {
    match option {
        Some(value) => Ok(Some(value.clone())),
        None => Ok(settings.get(key)?),
    }
}

/// How to reach it, and how its certificate is verified.
fn http(options: &ManagerArgs, settings: &Settings) -> Result<(Http, Certificate), Failure> {
    let certificate = settings.or(options.certificate.clone(), &settings::FABRIC_CERTIFICATE)?;
    let shown = given(
        options.client_certificate.as_ref(),
        settings,
        &settings::FABRIC_IDENTITY,
    )?;
    let key = given(options.client_key.as_ref(), settings, &settings::FABRIC_KEY)?;
    let http = match (shown, key) {
        (None, None) => Http::new(&certificate),
        (Some(shown), Some(key)) => {
            let identity = Identity {
                certificate: shown,
                key,
            };
            Http::with_identity(&certificate, &identity)
        }
        _ => {
            return Err(Failure::bad_input(
                "a certificate to show to the fabric manager needs its key, and the other way round",
            ));
        }
    };
    let http = http.map_err(|error| Failure::bad_input(error.to_string()))?;
    Ok((http, certificate))
}

fn patience(options: &ManagerArgs, settings: &Settings) -> Result<Patience, Failure> {
    let deadline = settings.or(options.deadline, &settings::FABRIC_DEADLINE)?;
    let usual = Patience::default();
    Ok(Patience {
        attempt: usual.attempt.min(deadline),
        deadline,
        ..usual
    })
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
        let (transport, _) = http(options, settings)?;
        let session = Session::new(inherited.reservation().clone(), Arc::new(transport));
        session
            .patience(patience(options, settings)?)
            .end_step(step)
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
        Problem::Transport(HttpError::Untrusted(_)) => failure
            .hint("--certificate names the authorities by which the fabric manager is verified."),
        _ => failure,
    }
}
