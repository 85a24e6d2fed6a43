//! `cxi collectives reserve`.

use cxi_job::collectives::{CLEAR, CollectivesEnv};
use cxi_job::fabric::{FabricManager, Offload, OnFailure};
use cxi_job::site::Warning;
use cxi_job::{JobId, StepId};

use super::failure;
use crate::exit::Failure;
use crate::output::Report;
use crate::output::environment;

pub(super) fn run(
    manager: &FabricManager,
    job: &JobId,
    step: &StepId,
    (limit, min_nodes): (u32, Option<u32>),
    required: bool,
) -> Result<Report, Failure> {
    let on_failure = if required {
        OnFailure::Fail
    } else {
        OnFailure::Continue
    };
    let offload = manager.offload(job, step.clone(), limit, on_failure);
    match offload.map_err(|error| failure(&error))? {
        Offload::With(env) => Ok(env_report(Some(match min_nodes {
            Some(nodes) => env.min_nodes(nodes),
            None => env,
        }))),
        Offload::Without(error) => {
            let warning = Warning::WithoutCollectives(error).to_string();
            Ok(env_report(None).with_warnings([warning]))
        }
        _ => Ok(env_report(None)),
    }
}

fn env_report(env: Option<CollectivesEnv>) -> Report {
    let vars = env.map_or_else(Vec::new, |env| env.vars());
    environment::report(vars, &CLEAR)
}
