//! `cxi service list`, `show` and `usage`.

use cxi::{Device, DeviceId, Member, ResourceMap, ServiceId};
use cxi_job::owners::OwnedService;
use serde::Serialize;

use super::cli::ListArgs;
use super::found::{Found, all, chosen, classes, limits, state, summary, who};
use super::picture;
use super::settings::Queried;
use crate::exit::Failure;
use crate::node::Node;
use crate::output::style::{HEADING, OFF, PLAIN};
use crate::output::{
    BAR_WIDTH, Columns, Palette, Report, fullness, joined, merge, nic_names, or_dash, percent,
};
use crate::{devices, spec_file};

pub(super) fn list(
    node: &Node,
    which: &ListArgs,
    made: Option<&[OwnedService]>,
) -> Result<Report, Failure> {
    let mut found = all(node.devices())?;
    found.retain(|(device, found)| {
        let service = &found.service;
        let has_user = |uid| service.members().is_some_and(|it| it.contains(Member::Uid(uid)));
        which.uid.is_none_or(has_user)
            && which.vni.is_none_or(|vni| service.vnis().contains(vni))
            && made.is_none_or(|made| made.iter().any(|made| made.is(*device, service)))
    });
    Ok(Report::by_device(table(&found).render(0), "services", &found))
}

/// One line for services that are the same on several NICs.
fn table(found: &[(DeviceId, Found)]) -> Columns {
    let headings = ["NICs", "Service", "State", "Who", "VNIs", "Traffic classes", "Limits"];
    let mut table = Columns::new(&headings).right(&[1]);
    for (devices, found) in merge(found.iter().copied()) {
        let service = &found.service;
        let style = if service.is_enabled() { PLAIN } else { OFF };
        let cells = [
            nic_names(&devices),
            service.id().to_string(),
            state(service),
            who(&found),
            service.vnis().to_string(),
            classes(service),
            limits(service),
        ];
        table.row_in(style, cells);
    }
    table
}

/// A service with the settings that must be queried one by one.
#[derive(Clone, PartialEq, Serialize)]
struct Details {
    #[serde(flatten)]
    found: Found,
    #[serde(flatten)]
    settings: Queried,
}

pub(super) fn run(node: &Node, ids: &[ServiceId], verbose: bool) -> Result<Report, Failure> {
    let all = chosen(node.devices(), ids)?;
    let mut services = Vec::new();
    for device in node.devices() {
        for (_, found) in all.iter().filter(|(id, _)| *id == device.id()) {
            services.push((device.id(), details(device, found)));
        }
    }
    let mut text = String::new();
    if verbose {
        text += &devices::resources_of(node.devices())?;
        text.push('\n');
    }
    for (devices, details) in merge(services.iter().cloned()) {
        text += &describe(&nic_names(&devices), &details);
        text.push('\n');
    }
    text += &bars(&measure(node.devices(), ids)?, Palette::of_locale());
    Ok(Report::by_device(text, "services", &services))
}

/// Settings that an older driver does not know are omitted.
fn details(device: &Device, found: &Found) -> Details {
    let services = device.services();
    let id = found.service.id();
    Details { found: *found, settings: Queried::of(&services, id) }
}

fn describe(devices: &str, details: &Details) -> String {
    let found = &details.found;
    let service = &found.service;
    let mut table = Columns::new(&["Service", &service.id().to_string()]);
    table.row(["NICs", devices]);
    table.row(["State".to_owned(), state(service)]);
    table.row(["Who".to_owned(), who(found)]);
    table.row(["VNIs".to_owned(), service.vnis().to_string()]);
    table.row(["Traffic classes".to_owned(), classes(service)]);
    for (title, value) in details.settings.known() {
        table.row([title.to_owned(), value.to_string()]);
    }
    if !service.is_limited() {
        table.row(["Limits", "none: up to all that the NIC has"]);
    }
    table.render(0)
}

pub(super) fn yaml(node: &Node, ids: &[ServiceId]) -> Result<Report, Failure> {
    let all = chosen(node.devices(), ids)?;
    let mut specs = Vec::new();
    for device in node.devices() {
        for (_, found) in all.iter().filter(|(id, _)| *id == device.id()) {
            let id = found.service.id();
            specs.push((device.id(), (id, device.services().spec(id)?)));
        }
    }
    match merge(specs).as_slice() {
        [(devices, (id, spec))] => Ok(Report::verbatim(format!(
            "# Service {id} of {}\n{}",
            nic_names(devices),
            spec_file::write(spec)?
        ))),
        several => {
            let names = several.iter().map(|(devices, _)| nic_names(devices));
            Err(Failure::bad_input(format!(
                "--yaml prints one specification, and {} were found: on {}",
                several.len(),
                joined(names, " and on ")
            ))
            .hint("Name one service, and one NIC with --device."))
        }
    }
}

/// Amounts of one resource that a service has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Amounts {
    /// `None` where the driver does not report it.
    pub(crate) in_use: Option<u16>,
    pub(crate) reserved: u16,
    pub(crate) max: u16,
}

/// A service with its usage.
#[derive(Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Measured {
    #[serde(skip)]
    pub(crate) found: Found,
    pub(super) service: ServiceId,
    tle_pool: u32,
    pub(crate) resources: ResourceMap<Amounts>,
}

pub(super) fn usage(node: &Node, ids: &[ServiceId], svg: bool) -> Result<Report, Failure> {
    let measured = measure(node.devices(), ids)?;
    if svg {
        return Ok(Report::verbatim(picture::svg(node.devices(), &measured)?));
    }
    let text = bars(&measured, Palette::of_locale());
    Ok(Report::by_device(text, "usage", &measured))
}

/// Reads the usage of the services of these ids, or of all.
pub(crate) fn measure(
    devices: &[Device],
    ids: &[ServiceId],
) -> Result<Vec<(DeviceId, Measured)>, Failure> {
    let all = chosen(devices, ids)?;
    let mut measured = Vec::new();
    for device in devices {
        let usage = device.services().usage_all()?;
        for (_, found) in all.iter().filter(|(id, _)| *id == device.id()) {
            let service = found.service.id();
            // A service that was destroyed after it was listed has nothing in use.
            let Some(usage) = usage.iter().find(|usage| usage.service == service) else { continue };
            let resources = found.service.limits().map(|resource, limit| Amounts {
                in_use: usage.reported[resource],
                reserved: limit.reserved(),
                max: limit.max(),
            });
            let measure = Measured { found: *found, service, tle_pool: usage.tle_pool, resources };
            measured.push((device.id(), measure));
        }
    }
    Ok(measured)
}

/// A block for each service; services that are the same on several NICs share one.
fn bars(measured: &[(DeviceId, Measured)], palette: Palette) -> String {
    let mut text = String::new();
    for (devices, measured) in merge(measured.iter().copied()) {
        let title = format!("Service {} on {}", measured.service, nic_names(&devices));
        let summary = summary(&measured.found);
        text += &format!("{HEADING}{title}{HEADING:#}: {summary}\n");
        text += &block(&measured.resources, palette);
        text.push('\n');
    }
    if !text.is_empty() {
        text += &palette.legend();
        text.push('\n');
    }
    text
}

fn block(resources: &ResourceMap<Amounts>, palette: Palette) -> String {
    let mut table = Columns::new(&["Resource", "In use", "Reserved", "Max", ""]).right(&[1, 2, 3]);
    let mut none = Vec::new();
    for (resource, amounts) in resources.iter() {
        if amounts.max == 0 && amounts.in_use.unwrap_or_default() == 0 {
            none.push(resource.to_string());
            continue;
        }
        let in_use = amounts.in_use.unwrap_or_default();
        let cells = [
            resource.to_string(),
            or_dash(amounts.in_use),
            amounts.reserved.to_string(),
            amounts.max.to_string(),
            palette.bar(BAR_WIDTH, in_use.into(), amounts.reserved.into(), amounts.max.into()),
        ];
        table.row_in(fullness(percent(in_use, amounts.max)), cells);
    }
    let mut text = table.render(2);
    if !none.is_empty() {
        text += &format!("  Not available: {}\n", none.join(", "));
    }
    text
}
