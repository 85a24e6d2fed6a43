//! `cxi job env`.

use std::collections::BTreeMap;

use cxi::{Service, TrafficClasses, Vni};
use cxi_job::SlingshotEnv;
use cxi_job::environment::{CLEAR, EnvironmentError, JobService};
use serde::Serialize;

use super::cli::WhichArgs;
use super::job_node::JobNode;
use super::which::{filter, read_grant, selected};
use crate::exit::{Exit, Failure};
use crate::options::Common;
use crate::output::Report;

#[derive(Serialize)]
struct Environment {
    environment: BTreeMap<&'static str, String>,
    /// Variables that must not be set for the job.
    clear: Vec<&'static str>,
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
                tcs: service.traffic_classes().unwrap_or(TrafficClasses::all()),
            })
            .collect();
        SlingshotEnv::of_services(&services)
    };
    Ok(told(&found.map_err(|error| failure(&error))?))
}

fn vnis(service: &Service) -> Vec<Vni> {
    service.vnis().iter().collect()
}

fn told(environment: &SlingshotEnv) -> Report {
    let vars = environment.vars();
    let clear: Vec<&'static str> = CLEAR
        .into_iter()
        .filter(|name| vars.iter().all(|(set, _)| set != name))
        .collect();
    // The values are numbers, names of NICs and commas: nothing special to a shell.
    let mut text: String = vars
        .iter()
        .map(|(name, value)| format!("export {name}={value}\n"))
        .collect();
    text += &clear
        .iter()
        .map(|name| format!("unset {name}\n"))
        .collect::<String>();
    let json = Environment {
        environment: vars.into_iter().collect(),
        clear,
    };
    Report::new(text, &json)
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
