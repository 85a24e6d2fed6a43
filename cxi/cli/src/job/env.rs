//! `cxi job env`.

use cxi::TrafficClasses;
use cxi_job::SlingshotEnv;
use cxi_job::environment::{CLEAR, JobService};

use super::cli::EnvArgs;
use super::node::{Here, JobNode};
use crate::exit::Failure;
use crate::files;
use crate::node::Intent;
use crate::options::Common;
use crate::output::Report;

pub(super) fn run(arguments: &EnvArgs, common: &Common) -> Result<Report, Failure> {
    if let Some(job) = &arguments.job {
        let here = Here::new(common, Intent::Read)?;
        let node = here.node(None)?;
        let found = node.environment(job, arguments.step.as_ref())?;
        return Ok(Report::environment(found.set, &found.clear));
    }
    let found = if let Some(path) = &arguments.which.grant {
        // The grant contains everything: no NIC is queried.
        files::grant(path)?.env()
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
