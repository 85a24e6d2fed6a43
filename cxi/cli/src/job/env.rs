//! `cxi job env`.

use std::path::Path;

use cxi::TrafficClasses;
use cxi_job::environment::{CLEAR, JobService};
use cxi_job::{Grant, SlingshotEnv};
use serde::Deserialize;

use super::cli::EnvArgs;
use super::node::{Here, JobNode};
use crate::exit::Failure;
use crate::files;
use crate::node::Intent;
use crate::options::Common;
use crate::output::Report;

/// Far more than a grant for all NICs of a node takes.
const LONGEST_GRANT: u64 = 1 << 24;

pub(super) fn run(arguments: &EnvArgs, common: &Common) -> Result<Report, Failure> {
    if let Some(job) = &arguments.job {
        let here = Here::new(common, None)?;
        let node = here.node(None)?;
        let found = node.environment(job, arguments.step.as_ref())?;
        return Ok(Report::environment(found.set, &found.clear));
    }
    let found = if let Some(path) = &arguments.which.grant {
        // The grant contains everything: no NIC is queried.
        read_grant(path)?.env()
    } else {
        let filter = arguments.which.filter()?;
        let node = JobNode::open(common, Intent::Read)?;
        let selected = node.nics.select(&filter);
        let services: Vec<JobService> = selected?
            .into_iter()
            .filter(|(_, service)| service.is_enabled())
            .map(|(device, service)| JobService {
                device,
                service: service.id(),
                vnis: service.vnis().iter().collect(),
                traffic_classes: service.traffic_classes().unwrap_or(TrafficClasses::all()),
            })
            .collect();
        SlingshotEnv::from_services(&services)
    };
    Ok(Report::environment(found?.vars(), &CLEAR))
}

/// Parses what `cxi --json job prolog` printed.
pub(super) fn read_grant(path: &Path) -> Result<Grant, Failure> {
    let files::Input { name, text } = files::read(path, LONGEST_GRANT)?;
    parse_grant(&name, &text)
}

pub(crate) fn parse_grant(name: &str, text: &str) -> Result<Grant, Failure> {
    #[derive(Deserialize)]
    struct Printed {
        grant: Grant,
    }
    serde_json::from_str::<Printed>(text)
        .map(|printed| printed.grant)
        .map_err(|error| {
            Failure::bad_input(format!("{name}: not a grant: {error}"))
                .hint("Expected what cxi --json job prolog printed.")
        })
}
