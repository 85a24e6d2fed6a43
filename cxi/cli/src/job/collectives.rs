//! Hardware collectives of a job: the controller reserves once for all its nodes, and releases. A
//! job that has a reservation is among those that run, so that a sweep knows what nobody has.

use std::ffi::OsString;

use cxi_job::collectives::CollectivesEnv;
use cxi_job::fabric::ReservationInfo;
use cxi_job::{JobId, StepId};

use super::record_args::ReleaseArgs;
use crate::collectives::cli::ManagerArgs;
use crate::collectives::reserve::without;
use crate::collectives::{failure, open};
use crate::exit::Failure;
use crate::records::Reservation;
use crate::records::controller::{Decision, Decisions};
use crate::settings::{self, Settings};

/// Whether a job is to have a reservation.
pub(super) fn wanted(decision: &Decision, settings: &Settings) -> Result<bool, Failure> {
    if decision.vnis.is_empty() || settings.get(&settings::COLLECTIVES_TREES)? == 0 {
        return Ok(false);
    }
    let live = decision.components.values().filter(|one| !one.ended);
    let nodes: usize = live.map(|component| component.nodes.names().len()).sum();
    let smallest = settings.get(&settings::COLLECTIVES_MIN_NODES)?;
    Ok(decision.collectives || nodes >= smallest as usize)
}

/// Reserves for a job, and records what its nodes need; what went wrong, for a job that starts all
/// the same. What an earlier run recorded is better than nothing.
pub(super) fn reserve(
    decision: &Decision,
    decisions: &Decisions,
    settings: &Settings,
) -> Result<Option<String>, Failure> {
    let job = &decision.job;
    if !decision.collectives {
        return Ok(None);
    }
    match variables(job, settings) {
        Ok(reservation) => {
            decisions.keep_reservation(job, &reservation)?;
            Ok(None)
        }
        Err(failure) if has_one(job, decisions)? => Ok(Some(format!(
            "job {job} keeps the reservation that it has: {}",
            failure.message()
        ))),
        Err(failure) if settings.get(&settings::COLLECTIVES_REQUIRED)? => Err(failure),
        Err(failure) => {
            decisions.keep_reservation(job, &Reservation::default())?;
            Ok(Some(without(&failure.message())))
        }
    }
}

fn has_one(job: &JobId, decisions: &Decisions) -> Result<bool, Failure> {
    let before = decisions.reservation(job)?;
    Ok(before.is_some_and(|before| !before.variables.is_empty()))
}

fn variables(job: &JobId, settings: &Settings) -> Result<Reservation, Failure> {
    let limit = settings.get(&settings::COLLECTIVES_TREES)?;
    let manager = open(&ManagerArgs::default(), settings)?;
    let ReservationInfo {
        reservation,
        limit: reserved,
        ..
    } = manager
        .reserve(job, limit)
        .map_err(|error| failure(&error))?;
    let env = CollectivesEnv::new(reservation, all_steps()?)
        .addresses_per_job(reserved.unwrap_or(limit))
        .min_nodes(settings.get(&settings::COLLECTIVES_MIN_NODES)?);
    let variables = env.vars().into_iter();
    Ok(Reservation {
        variables: variables
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
    })
}

/// The step of programs that name none.
fn all_steps() -> Result<StepId, Failure> {
    let step = "0".parse();
    step.map_err(|error: cxi_job::NameError| Failure::bad_input(error.to_string()))
}

/// What a step sets; without a name of its own, it is one of all steps.
pub(super) fn of_step(
    reservation: &Reservation,
    step: Option<&StepId>,
) -> Result<Vec<(&'static str, String)>, Failure> {
    let variables = &reservation.variables;
    let step = step.cloned().map_or_else(all_steps, Ok)?;
    let env = CollectivesEnv::inherit(|name| variables.get(name).map(OsString::from), step);
    let env = env.map_err(|error| Failure::bad_input(error.to_string()))?;
    Ok(env.map_or_else(Vec::new, |env| env.vars()))
}

/// Releases what a job has, if it is about to end, before anybody else can use its name; what went
/// wrong.
pub(super) fn release(
    arguments: &ReleaseArgs,
    decisions: &Decisions,
    settings: &Settings,
) -> Result<Option<String>, Failure> {
    let Some(job) = &arguments.job else {
        return Ok(None);
    };
    let Some(decision) = decisions.find_running(job)?.filter(|one| one.collectives) else {
        return Ok(None);
    };
    let stays = |component: &JobId| {
        let ends = arguments.component.as_ref();
        ends.is_some_and(|ends| ends != component)
    };
    let mut components = decision.components.iter();
    if components.any(|(component, state)| !state.ended && stays(component))
        // One that is not known may have been made.
        || (decisions.reservation(job)?.is_some() && !has_one(job, decisions)?)
    {
        return Ok(None);
    }
    let released = open(&ManagerArgs::default(), settings)
        .and_then(|manager| manager.release(job).map_err(|error| failure(&error)));
    Ok(released.err().map(|failure| left(&failure)))
}

/// Releases what jobs have that do not run, with the lock held, so that none of them starts
/// in the meantime; what went wrong.
pub(super) fn sweep(decisions: &Decisions, settings: &Settings) -> Result<Vec<String>, Failure> {
    if settings.get(&settings::COLLECTIVES_TREES)? == 0 {
        return Ok(Vec::new());
    }
    let running = decisions.jobs_running()?;
    let swept = open(&ManagerArgs::default(), settings).and_then(|manager| {
        let swept = manager.sweep(|job| running.contains(job));
        swept.map_err(|error| failure(&error))
    });
    Ok(match swept {
        Ok(swept) => {
            let failed = swept.failed.iter();
            failed.map(|(_, error)| left(&failure(error))).collect()
        }
        Err(failure) => vec![left(&failure)],
    })
}

fn left(failure: &Failure) -> String {
    format!(
        "{}; cxi collectives sweep releases what is left",
        failure.message()
    )
}
