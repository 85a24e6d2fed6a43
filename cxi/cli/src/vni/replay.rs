//! `cxi vni replay`.

use std::path::Path;

use cxi_job::IdSet;
use cxi_job::pool::{PoolConfig, Timestamp, VniPool};
use serde::Serialize;

use super::file::{PoolFiles, lock, replace};
use super::log;
use crate::exit::Failure;
use crate::output::Report;

pub(super) fn run(
    arguments: &PoolFiles,
    from: &Path,
    vnis: Option<&IdSet>,
    dry_run: bool,
    force: bool,
) -> Result<Report, Failure> {
    #[derive(Serialize)]
    struct Replayed {
        events: usize,
        jobs: usize,
        free: usize,
        written: bool,
    }
    // Take the lock first: whatever is logged after that is in no pool that this one replaces.
    let file = if dry_run {
        None
    } else {
        Some(lock(arguments)?)
    };
    let events = log::read(from)?;
    let first = events.first().and_then(|event| event.change.config());
    let config = match (vnis, first) {
        (Some(vnis), _) => PoolConfig::new(vnis.clone()),
        (None, Some(config)) => config.clone(),
        (None, None) => {
            return Err(Failure::bad_input(format!(
                "{}: the log does not begin with the configuration of the pool",
                from.display()
            ))
            .hint("Name the VNIs that the pool had at first, such as --vnis 1024-65535."));
        }
    };
    let replayed = VniPool::replay(config, &events)
        .map_err(|error| Failure::bad_input(format!("{}: {error}", from.display())))?;
    if let Some(file) = &file {
        replace(file, &replayed, force)?;
    }
    let metrics = replayed.metrics(Timestamp::now());
    let json = Replayed {
        events: events.len(),
        jobs: replayed.jobs().count(),
        free: metrics.free,
        written: !dry_run,
    };
    let text = format!(
        "{} the pool {} from {} changes: {} jobs have VNIs, {} VNIs are free\n",
        if dry_run { "Would make" } else { "Made" },
        arguments.pool.display(),
        json.events,
        json.jobs,
        json.free
    );
    Ok(Report::new(text, &json))
}
