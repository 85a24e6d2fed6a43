//! `cxi service show`.

use cxi::{Device, LnisPerRgid, Service, ServiceId, ServiceSpec};
use serde::Serialize;

use super::list::{self, OnDevice};
use super::usage;
use crate::exit::{Exit, Failure};
use crate::node::Node;
use crate::output::bar::Palette;
use crate::output::table::Columns;
use crate::output::{Report, nics};
use crate::spec_file;

/// A service with what has to be asked for one by one.
#[derive(Clone, PartialEq, Serialize)]
struct Details {
    #[serde(flatten)]
    service: Service,
    lnis_per_rgid: Option<LnisPerRgid>,
    exclusive_cp: Option<bool>,
    netns: Option<u32>,
}

#[derive(Serialize)]
struct List {
    services: Vec<OnDevice<Details>>,
}

pub(super) fn run(node: &Node, ids: &[ServiceId], yaml: bool) -> Result<Report, Failure> {
    let found = super::chosen(node.devices(), ids)?;
    if yaml {
        return as_yaml(&nics::merge(found));
    }
    let mut services = Vec::new();
    for device in node.devices() {
        for (id, service) in &found {
            if *id == device.id() {
                services.push((device.id(), details(device, service)));
            }
        }
    }
    let mut text = String::new();
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
fn details(device: &Device, service: &Service) -> Details {
    let services = device.services();
    let id = service.id();
    Details {
        service: *service,
        lnis_per_rgid: services.lnis_per_rgid(id).ok(),
        exclusive_cp: services.exclusive_cp(id).ok(),
        netns: services.netns(id).ok().flatten(),
    }
}

fn describe(devices: &str, details: &Details) -> String {
    let service = &details.service;
    let mut table = Columns::new(&["Service", &service.id().to_string()]);
    table.row(["NICs", devices]);
    table.row(["State".to_owned(), list::state(service)]);
    table.row(["Who".to_owned(), list::who(service)]);
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
    if let Some(inode) = details.netns {
        table.row(["Network namespace".to_owned(), inode.to_string()]);
    }
    if !service.is_limited() {
        table.row(["Limits", "none: up to all that the NIC has"]);
    }
    table.render(0)
}

fn as_yaml(found: &[(Vec<cxi::DeviceId>, Service)]) -> Result<Report, Failure> {
    let [(devices, service)] = found else {
        let names: Vec<_> = found
            .iter()
            .map(|(devices, _)| nics::name(devices))
            .collect();
        return Err(Failure::bad_input(format!(
            "--yaml prints one specification, and here are {}: on {}",
            found.len(),
            names.join(" and on ")
        ))
        .hint("Name one service, and one NIC with --device."));
    };
    let spec = ServiceSpec::try_from(service).map_err(|error| {
        Failure::new(Exit::Failed, format!("service {}: {error}", service.id()))
    })?;
    let text = spec_file::write(&spec)?;
    Ok(Report::verbatim(format!(
        "# Service {} of {}\n{text}",
        service.id(),
        nics::name(devices)
    )))
}
