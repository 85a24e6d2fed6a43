//! `cxi collectives reserve`.

use std::collections::BTreeMap;

use cxi_job::collectives::{CLEAR, CollectivesEnv};
use cxi_job::fabric::{FabricError, FabricManager, Offload, OnFailure};
use cxi_job::{JobId, StepId};
use serde::Serialize;

use super::failure;
use crate::exit::Failure;
use crate::output::Report;

#[derive(Serialize)]
struct Environment {
    environment: BTreeMap<&'static str, String>,
    /// Variables that the job must not have.
    clear: Vec<&'static str>,
}

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
        OnFailure::GoOn
    };
    let offload = manager.offload(job, step.clone(), limit, on_failure);
    match offload.map_err(|error| failure(&error))? {
        Offload::With(env) => Ok(env_report(Some(match min_nodes {
            Some(nodes) => env.min_nodes(nodes),
            None => env,
        }))),
        Offload::Without(error) => Ok(env_report(None).with_warnings([without(&error)])),
        _ => Ok(env_report(None)),
    }
}

fn without(error: &FabricError) -> String {
    format!("the job starts without hardware collectives: {error}")
}

fn env_report(env: Option<CollectivesEnv>) -> Report {
    let vars = env.map_or_else(Vec::new, |env| env.vars());
    let is_set = |name: &&str| vars.iter().any(|(set, _)| set == name);
    let clear: Vec<&'static str> = CLEAR.into_iter().filter(|name| !is_set(name)).collect();
    let set = vars
        .iter()
        .map(|(name, value)| format!("export {name}={}\n", quoted(value)));
    let unset = clear.iter().map(|name| format!("unset {name}\n"));
    let text: String = set.chain(unset).collect();
    let environment = vars.iter().cloned().collect();
    Report::new(text, &Environment { environment, clear })
}

/// A word that a shell takes as it is.
fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', r"'\''"))
}
