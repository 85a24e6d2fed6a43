//! `cxi devices`.

use cxi::{Availability, Device, DeviceInfo, Platform};
use serde::Serialize;

use crate::exit::{Failure, of_device};
use crate::node::Node;
use crate::output::bar::Palette;
use crate::output::table::Columns;
use crate::output::{HEADING, Report, nics};

const BAR_WIDTH: usize = 32;

#[derive(Serialize)]
struct List {
    devices: Vec<Entry>,
}

#[derive(Serialize)]
struct Entry {
    #[serde(flatten)]
    info: DeviceInfo,
    #[serde(flatten)]
    availability: Availability,
}

pub(crate) fn run(node: &Node) -> Result<Report, Failure> {
    let mut devices = Vec::new();
    for device in node.devices() {
        devices.push(ask(device).map_err(|error| of_device(&error))?);
    }
    let mut text = nics_table(&devices).render(0);
    let levels = devices
        .iter()
        .map(|entry| (entry.info.device, entry.availability.clone()));
    let palette = Palette::of_locale();
    for (ids, availability) in nics::merge(levels) {
        text += &format!("\n{HEADING}Resources of {}{HEADING:#}\n", nics::name(&ids));
        text += &resources(&availability, palette);
    }
    text += &format!("\n{}\n", palette.legend());
    Ok(Report::new(text, &List { devices }))
}

fn ask(device: &Device) -> cxi::Result<Entry> {
    Ok(Entry {
        info: device.info()?,
        availability: device.availability()?,
    })
}

fn nics_table(devices: &[Entry]) -> Columns {
    let mut table = Columns::new(&["NIC", "Chip", "Address", "Link", "PCI", "NUMA", "Driver"]);
    for Entry { info, .. } in devices {
        table.row([
            info.device.to_string(),
            chip(info),
            address(info),
            link(info),
            or_dash(info.pci_address.as_ref()),
            or_dash(info.numa_node.as_ref()),
            or_dash(info.driver.as_ref()),
        ]);
    }
    table
}

fn chip(info: &DeviceInfo) -> String {
    let mut text = info.cassini_version.to_string();
    if info.platform != Platform::Asic {
        text += &format!(" ({})", info.platform);
    }
    if info.virtual_function == Some(true) {
        text += ", virtual function";
    }
    text
}

fn address(info: &DeviceInfo) -> String {
    if info.nid_configured == Some(false) {
        "not set".to_owned()
    } else {
        format!("{:#x}", info.nid)
    }
}

fn link(info: &DeviceInfo) -> String {
    if info.link_up {
        format!("up, {} Gbit/s", info.link_speed / 1000)
    } else {
        "down".to_owned()
    }
}

fn or_dash<T: ToString>(value: Option<&T>) -> String {
    value.map_or_else(|| "-".to_owned(), T::to_string)
}

fn resources(availability: &Availability, palette: Palette) -> String {
    let mut table = Columns::new(&["Resource", "In use", "Reserved", "Reservable", "Total", ""])
        .right(&[1, 2, 3, 4]);
    for (resource, level) in availability.resources.iter() {
        table.row([
            resource.to_string(),
            level.in_use.to_string(),
            level.reserved.to_string(),
            level.reservable.to_string(),
            level.total.to_string(),
            palette.bar(
                BAR_WIDTH,
                level.in_use.into(),
                level.reserved.into(),
                level.total.into(),
            ),
        ]);
    }
    let mut text = table.render(2);
    text += &format!(
        "  Pools left for further services: {} for LEs, {} for TLEs\n",
        availability.le_pools, availability.tle_pools
    );
    text
}
