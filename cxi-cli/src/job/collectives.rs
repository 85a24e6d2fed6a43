//! Hardware collectives of a job with a record: reserved by its prolog, on each node the same, and
//! released by its epilog.

use std::collections::BTreeMap;

use cxi_job::JobId;
use cxi_job::collectives::{CLEAR, CollectivesEnv};
use cxi_job::fabric::ReservationInfo;

use crate::collectives::cli::ManagerArgs;
use crate::collectives::reserve::without;
use crate::collectives::{failure, open};
use crate::exit::{Exit, Failure};
use crate::options::Common;
use crate::records::node::NodeRecords;
use crate::settings;

/// The variables that a step has to set, by name.
type Vars = BTreeMap<String, String>;

/// Reserves, if the settings say so; what went wrong with it, for a job that starts all the same.
pub(super) fn begin(
    records: &NodeRecords,
    job: &JobId,
    uid: Option<u32>,
    common: &Common,
) -> Result<Option<String>, Failure> {
    let settings = &common.settings;
    let limit = settings.get(&settings::COLLECTIVES)?;
    if limit == 0 {
        return Ok(None);
    }
    let reserved = open(&ManagerArgs::default(), settings)
        .and_then(|manager| manager.reserve(job, limit).map_err(|error| failure(&error)));
    let (vars, warning) = match reserved {
        Ok(reserved) => (variables(reserved, limit)?, None),
        Err(failure) if settings.get(&settings::COLLECTIVES_REQUIRED)? => return Err(failure),
        Err(failure) => (Vec::new(), Some(without(&failure.message()))),
    };
    let vars: Vars = vars
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    let text = serde_json::to_string(&vars);
    let text = text.map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
    records.write_secret(job, uid, &text)?;
    Ok(warning)
}

fn variables(
    reserved: ReservationInfo,
    limit: u32,
) -> Result<Vec<(&'static str, String)>, Failure> {
    // All steps together.
    let step = "0".parse();
    let step = step.map_err(|error: cxi_job::NameError| Failure::bad_input(error.to_string()))?;
    let env = CollectivesEnv::new(reserved.reservation, step);
    Ok(env
        .addresses_per_job(reserved.limit.unwrap_or(limit))
        .vars())
}

/// What a step of the job has to set; nothing is known of a job whose prolog reserved nothing.
pub(super) fn vars(
    records: &NodeRecords,
    job: &JobId,
) -> Result<Option<Vec<(&'static str, String)>>, Failure> {
    let Some(text) = records.read_secret(job)? else {
        return Ok(None);
    };
    let mut vars: Vars = serde_json::from_str(&text)
        .map_err(|error| Failure::bad_input(format!("the reservation of job {job}: {error}")))?;
    let known = CLEAR
        .into_iter()
        .filter_map(|name| Some((name, vars.remove(name)?)));
    Ok(Some(known.collect()))
}

/// Releases what the prolog reserved; what went wrong with it. `cxi collectives sweep` does the rest.
pub(super) fn end(records: &NodeRecords, job: &JobId, common: &Common) -> Option<String> {
    let end = || {
        let Some(vars) = vars(records, job)? else {
            return Ok(());
        };
        if !vars.is_empty() {
            let manager = open(&ManagerArgs::default(), &common.settings)?;
            manager.release(job).map_err(|error| failure(&error))?;
        }
        records.remove_secret(job)
    };
    end().err().map(|failure: Failure| {
        format!(
            "{}; cxi collectives sweep releases what is left",
            failure.message()
        )
    })
}
