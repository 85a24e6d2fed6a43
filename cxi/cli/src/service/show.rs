//! `cxi service show`.

use cxi::{Device, LnisPerRgid, ServiceId};
use serde::Serialize;

use super::list::{self, OnDevice};
use super::{Listed, usage};
use crate::devices;
use crate::exit::{Failure, of_device};
use crate::node::Node;
use crate::output::bar::Palette;
use crate::output::table::Columns;
use crate::output::{Report, nics};
use crate::spec_file;

/// A service with the settings that have to be queried one by one.
#[derive(Clone, PartialEq, Serialize)]
struct Details {
    #[serde(flatten)]
    listed: Listed,
    lnis_per_rgid: Option<LnisPerRgid>,
    exclusive_cp: Option<bool>,
}

#[derive(Serialize)]
struct List {
    services: Vec<OnDevice<Details>>,
}

pub(super) fn run(node: &Node, ids: &[ServiceId], verbose: bool) -> Result<Report, Failure> {
    let found = super::chosen(node.devices(), ids)?;
    let mut services = Vec::new();
    for device in node.devices() {
        for (_, listed) in found.iter().filter(|(id, _)| *id == device.id()) {
            services.push((device.id(), details(device, listed)));
        }
    }
    let mut text = String::new();
    if verbose {
        text += &devices::resources_of(node.devices())?;
        text.push('\n');
    }
    for (devices, details) in nics::merge(services.iter().cloned()) {
        text += &describe(&nics::name(&devices), &details);
        text.push('\n');
    }
    text += &usage::bars(&usage::measure(node.devices(), ids)?, Palette::of_locale());
    let services = services
        .into_iter()
        .map(|(device, value)| OnDevice { device, value })
        .collect();
    Ok(Report::new(text, &List { services }))
}

/// What an older driver does not know is left out.
fn details(device: &Device, listed: &Listed) -> Details {
    let services = device.services();
    let id = listed.service.id();
    Details {
        listed: *listed,
        lnis_per_rgid: services.lnis_per_rgid(id).ok(),
        exclusive_cp: services.exclusive_cp(id).ok(),
    }
}

fn describe(devices: &str, details: &Details) -> String {
    let listed = &details.listed;
    let service = &listed.service;
    let mut table = Columns::new(&["Service", &service.id().to_string()]);
    table.row(["NICs", devices]);
    table.row(["State".to_owned(), list::state(service)]);
    table.row(["Who".to_owned(), list::who(listed)]);
    table.row([
        "VNIs".to_owned(),
        service.vnis().to_string().replace(',', ", "),
    ]);
    table.row(["Traffic classes".to_owned(), list::classes(service)]);
    if let Some(count) = details.lnis_per_rgid {
        table.row(["LNIs per RGID".to_owned(), count.to_string()]);
    }
    if let Some(exclusive) = details.exclusive_cp {
        table.row(["Exclusive CPs", if exclusive { "yes" } else { "no" }]);
    }
    if !service.is_limited() {
        table.row(["Limits", "none: up to all that the NIC has"]);
    }
    table.render(0)
}

pub(super) fn yaml(node: &Node, ids: &[ServiceId]) -> Result<Report, Failure> {
    let found = super::chosen(node.devices(), ids)?;
    let mut specs = Vec::new();
    for device in node.devices() {
        for (_, listed) in found.iter().filter(|(id, _)| *id == device.id()) {
            let id = listed.service.id();
            let spec = device.services().spec(id);
            specs.push((device.id(), (id, spec.map_err(|error| of_device(&error))?)));
        }
    }
    match nics::merge(specs).as_slice() {
        [(devices, (id, spec))] => Ok(Report::verbatim(format!(
            "# Service {id} of {}\n{}",
            nics::name(devices),
            spec_file::write(spec)?
        ))),
        several => {
            let names: Vec<_> = several
                .iter()
                .map(|(devices, _)| nics::name(devices))
                .collect();
            Err(Failure::bad_input(format!(
                "--yaml prints one specification, and {} were found: on {}",
                several.len(),
                names.join(" and on ")
            ))
            .hint("Name one service, and one NIC with --device."))
        }
    }
}
