//! `cxi service`.

pub(crate) mod change;
pub(crate) mod cli;
pub(crate) mod create;
pub(crate) mod list;
mod show;
pub(crate) mod usage;

use cxi::{Device, DeviceId, Service, ServiceId};
use serde::Serialize;

use crate::exit::{Exit, Failure, of_device};
use crate::node::{changing, reading};
use crate::options::Common;
use crate::output::Report;
use crate::output::nics;
use cli::ServiceCommand;

pub(crate) fn run(command: &ServiceCommand, common: &Common) -> Result<Report, Failure> {
    match command {
        ServiceCommand::List => reading(common, list::run),
        // The parser does not see the conflict when --json stands before the subcommand.
        ServiceCommand::Show { yaml: true, .. } if common.json => Err(Failure::bad_input(
            "--yaml and --json cannot be given together",
        )),
        ServiceCommand::Show {
            ids, yaml: true, ..
        } => reading(common, |node| show::yaml(node, ids)),
        ServiceCommand::Show { ids, verbose, .. } => {
            reading(common, |node| show::run(node, ids, *verbose))
        }
        ServiceCommand::Usage { ids } => reading(common, |node| usage::run(node, ids)),
        ServiceCommand::Create(arguments) => {
            // Errors in the specification are reported before NICs are looked for.
            let spec = create::specification(arguments)?;
            changing(common, |node| create::run(node, &spec))
        }
        ServiceCommand::Update { ids, changes } => {
            changing(common, |node| Ok(change::update(node, ids, changes)))
        }
        ServiceCommand::Destroy { ids, wait } => {
            changing(common, |node| Ok(change::destroy(node, ids, *wait)))
        }
        ServiceCommand::Enable { ids } => {
            changing(common, |node| Ok(change::set_enabled(node, ids, true)))
        }
        ServiceCommand::Disable { ids } => {
            changing(common, |node| Ok(change::set_enabled(node, ids, false)))
        }
    }
}

/// A service, and the namespace whose processes may use it even if a list does not show that.
#[derive(Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Listed {
    #[serde(flatten)]
    pub(crate) service: Service,
    /// The network namespace that is its member, by inode number.
    netns: Option<u32>,
}

impl Listed {
    /// Asks for the network namespace of a service that seems to have no members.
    pub(crate) fn new(device: &Device, service: Service) -> Self {
        let netns = match service.members() {
            Some(members) if members.is_empty() => {
                device.services().netns(service.id()).ok().flatten()
            }
            members => members.and_then(|members| members.netns()),
        };
        Self { service, netns }
    }
}

/// A service with the NIC it is on.
pub(crate) type Found = (DeviceId, Listed);

/// All services of the NICs.
pub(crate) fn all(devices: &[Device]) -> Result<Vec<Found>, Failure> {
    let mut found = Vec::new();
    for device in devices {
        let services = device
            .services()
            .list()
            .map_err(|error| of_device(&error))?;
        found.extend(
            services
                .into_iter()
                .map(|service| (device.id(), Listed::new(device, service))),
        );
    }
    Ok(found)
}

/// The services of these ids, or all of them; an id must exist on one NIC at least.
fn chosen(devices: &[Device], ids: &[ServiceId]) -> Result<Vec<Found>, Failure> {
    let mut found = all(devices)?;
    if ids.is_empty() {
        return Ok(found);
    }
    let missing = |id: &&ServiceId| !found.iter().any(|(_, listed)| listed.service.id() == **id);
    if let Some(id) = ids.iter().find(missing) {
        let names: Vec<_> = devices.iter().map(Device::id).collect();
        return Err(Failure::new(
            Exit::NotFound,
            format!("no service {id} on {}", nics::name(&names)),
        )
        .hint("cxi service list shows the services."));
    }
    found.retain(|(_, listed)| ids.contains(&listed.service.id()));
    Ok(found)
}
