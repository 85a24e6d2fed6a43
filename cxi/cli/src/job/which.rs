//! Selecting the services that a command is about.

use std::path::Path;

use cxi::{Device, DeviceId, Service, Vni};
use cxi_job::{Filter, Grant};
use serde::Deserialize;

use super::cli::{WhichArgs, WhoArgs};
use super::job_node::JobNode;
use super::job_request::members;
use crate::exit::{Failure, of_device};
use crate::input;

/// Far more than a grant for all NICs of a node needs.
const LONGEST_GRANT: u64 = 1 << 24;

/// Selects a job's services by the options on the command line.
pub(super) fn filter(which: &WhichArgs) -> Result<Filter, Failure> {
    match &which.grant {
        Some(path) => Ok(Filter::for_grant(&read_grant(path)?)),
        None => of_who(&which.who),
    }
}

fn of_who(who: &WhoArgs) -> Result<Filter, Failure> {
    let vnis: Vec<Vni> = match who.vni_range {
        Some(range) => range.iter().collect(),
        None => who.vni.clone(),
    };
    Filter::for_job(vnis, members(who)).ok_or_else(|| {
        Failure::bad_input(
            "no job: name its VNIs with --vni, its user with --uid, or both; or its grant with \
             --grant",
        )
    })
}

/// Parses what `cxi --json job prolog` printed.
pub(super) fn read_grant(path: &Path) -> Result<Grant, Failure> {
    let input::Input { name, text } = input::read(path, LONGEST_GRANT)?;
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

/// The services that a filter currently selects.
pub(super) fn selected(
    node: &JobNode,
    filter: &Filter,
) -> Result<Vec<(DeviceId, Service)>, Failure> {
    let nics = node.nics.nics().iter();
    let devices: Vec<Device> = nics
        .filter(|nic| !nic.is_virtual_function())
        .filter_map(|nic| nic.device().cloned())
        .collect();
    let mut found = Vec::new();
    for device in &devices {
        let services = device
            .services()
            .list()
            .map_err(|error| of_device(&error))?;
        let id = device.id();
        let mine = services
            .into_iter()
            .filter(|service| filter.selects(id, service));
        found.extend(mine.map(|service| (id, service)));
    }
    Ok(found)
}
