//! `cxi job env`.

use std::collections::BTreeSet;

use cxi::{Resource, Service, TrafficClasses, Vni};
use cxi_job::environment::{CLEAR, EnvironmentError, JobService};
use cxi_job::{JobId, SlingshotEnv, StepId};

use super::cli::WhichArgs;
use super::collectives;
use super::job_node::JobNode;
use super::recorded::records;
use super::which::{filter, read_grant, selected};
use crate::exit::{Exit, Failure};
use crate::options::Common;
use crate::output::Report;
use crate::output::environment;

/// Where the job has less than its size asks for.
const SCALED_BACK: &str = "SLINGSHOT_CXI_SCALED_BACK";

/// The environment of a job with a record.
pub(super) fn of_record(
    job: &JobId,
    step: Option<&StepId>,
    common: &Common,
) -> Result<Report, Failure> {
    let records = records(&common.settings)?;
    let path = records.path(job)?;
    let record = records.read(job)?.ok_or_else(|| {
        let message = format!(
            "job {job} has no record on this node: there is no {}",
            path.display()
        );
        Failure::new(Exit::NotFound, message)
            .hint("Its prolog did not run here, or has failed; or its epilog has finished.")
    })?;
    let reservation = records.reservation(job)?;
    match (&record.vnis, &record.grant) {
        (None, _) => Ok(env_report(Vec::new())),
        (Some(_), Some(grant)) => {
            let environment = grant.env().map_err(|error| failure(&error))?;
            let cut: BTreeSet<Resource> = grant.cuts().map(|cut| cut.resource).collect();
            let cut: Vec<String> = cut.iter().map(Resource::to_string).collect();
            let mut vars = environment.vars();
            vars.extend((!cut.is_empty()).then(|| (SCALED_BACK, cut.join(","))));
            let Some(reservation) = reservation else {
                return Ok(env_report(vars));
            };
            vars.extend(collectives::of_step(&reservation, step)?);
            let all = [&CLEAR[..], &cxi_job::collectives::CLEAR].concat();
            Ok(environment::report(vars, &all))
        }
        (Some(_), None) => {
            let message =
                format!("job {job} has no services on this node: its prolog has not ended");
            Err(Failure::new(Exit::NotFound, message))
        }
    }
}

pub(super) fn run(which: &WhichArgs, common: &Common) -> Result<Report, Failure> {
    let found = if let Some(path) = &which.grant {
        // The grant contains everything: no NIC is queried.
        read_grant(path)?.env()
    } else {
        let filter = filter(which)?;
        let node = JobNode::open(common, false)?;
        let selected = selected(&node, &filter)?.into_iter();
        let services: Vec<JobService> = selected
            .filter(|(_, service)| service.is_enabled())
            .map(|(device, service)| JobService {
                device,
                service: service.id(),
                vnis: vnis(&service),
                traffic_classes: service.traffic_classes().unwrap_or(TrafficClasses::all()),
            })
            .collect();
        SlingshotEnv::from_services(&services)
    };
    Ok(env_report(found.map_err(|error| failure(&error))?.vars()))
}

fn vnis(service: &Service) -> Vec<Vni> {
    service.vnis().iter().collect()
}

fn env_report(vars: Vec<(&'static str, String)>) -> Report {
    environment::report(vars, &CLEAR)
}

fn failure(error: &EnvironmentError) -> Failure {
    match error {
        EnvironmentError::NoService => Failure::new(
            Exit::NotFound,
            "the job has no enabled service on this node",
        )
        .hint("cxi service list shows the services of this node."),
        EnvironmentError::RepeatedDevice { .. } => {
            Failure::bad_input(error.to_string()).hint("Also name the job's VNIs, with --vni.")
        }
        _ => Failure::new(Exit::Failed, error.to_string()),
    }
}
