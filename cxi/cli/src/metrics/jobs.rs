//! What the records say: jobs of this node, and jobs of the controller.

use cxi::Device;
use cxi_job::NodeName;

use super::count;
use super::family::Family;
use crate::exit::Failure;
use crate::job::{Job, left_over, of_controller, of_node};
use crate::options::Common;

/// A record is of a job that is running or has ended; a job without one is clean.
const STATES: [&str; 2] = ["running", "ended"];

fn by_state(name: &'static str, help: &'static str, jobs: &[Job]) -> Family {
    let mut family = Family::new(name, help);
    for state in STATES {
        let jobs = jobs.iter().filter(|job| job.state == state);
        family.add([("state", state.to_owned())], count(jobs.count()));
    }
    family
}

/// The jobs of this node.
pub(super) fn recorded(common: &Common) -> Result<Vec<Family>, Failure> {
    let jobs = of_node(common)?;
    let help = "Jobs with a record on this node. What has ended still has services.";
    let by_state = by_state("cxi_jobs", help, &jobs);
    let mut info = Family::new("cxi_job_info", "The VNIs of a job: always 1.");
    let mut cut = Family::new("cxi_job_scaled_back", "Resources of which a job has less.");
    for job in jobs {
        let id = job.id.to_string();
        cut.add([("job", id.clone())], count(job.scaled_back.len()));
        let labels = [
            ("job", id),
            ("state", job.state.to_owned()),
            ("vnis", job.vnis),
        ];
        info.add(labels, true);
    }
    Ok(vec![by_state, info, cut])
}

/// What a clean-up would destroy.
pub(super) fn left(
    devices: &[Device],
    name: Option<&NodeName>,
    common: &Common,
) -> Result<Family, Failure> {
    let help = "Services that cxi job clean would destroy.";
    let mut family = Family::new("cxi_services_left", help);
    let left = left_over(name, common)?;
    for device in devices {
        let here = left.iter().filter(|verdict| verdict.device == device.id());
        let labels = [("device", device.id().to_string())];
        family.add(labels, count(here.count()));
    }
    Ok(family)
}

/// The jobs of the controller. Nodes could report them as well, but each would read all of them.
pub(super) fn decided(common: &Common) -> Result<Vec<Family>, Failure> {
    let jobs = of_controller(common)?;
    let help = "Jobs that the controller has given VNIs. What has ended waits for nodes.";
    let by_state = by_state("cxi_controller_jobs", help, &jobs);
    let mut missing = Family::new(
        "cxi_controller_confirmations_missing",
        "Nodes that have not confirmed the end of a job, over all jobs.",
    );
    let nodes = jobs.iter().map(|job| job.waits_for.len());
    missing.add([], count(nodes.sum()));
    Ok(vec![by_state, missing])
}
