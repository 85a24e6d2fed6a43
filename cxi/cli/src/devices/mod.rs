//! `cxi devices`.

mod codewords;
mod details;

use std::time::Duration;

use clap::Args;
use cxi::driver::{Capabilities, DetectedRelease, Driver};
use cxi::{Availability, Device, DeviceId, DeviceInfo, Hardware, Platform};
use serde::Serialize;

use self::codewords::Codewords;
use crate::args::duration;
use crate::exit::{Failure, of_device};
use crate::node::Node;
use crate::output::bar::Palette;
use crate::output::table::Columns;
use crate::output::{HEADING, Report, nics};

const BAR_WIDTH: usize = 32;

#[derive(Debug, Args)]
pub(crate) struct DevicesArgs {
    /// Also show details of card, firmware, link and PCI Express
    #[arg(short, long)]
    verbose: bool,
    /// Measure how many codewords the links receive, for 4s or the time given
    #[arg(
        long,
        value_name = "TIME",
        value_parser = duration,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "4s"
    )]
    rates: Option<Duration>,
}

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
    release: DriverRelease,
    #[serde(skip_serializing_if = "Option::is_none")]
    hardware: Option<Hardware>,
    #[serde(skip_serializing_if = "Option::is_none")]
    codewords_per_second: Option<Codewords<f64>>,
}

/// The release whose behaviour the driver shows, for people and programs.
#[derive(Clone, PartialEq, Eq, Serialize)]
struct DriverRelease {
    /// Such as `shs-14.0.1`, or `shs-13.1 to shs-14.0.0`, or `unknown`.
    guess: String,
    /// What it may not support.
    lacks: Vec<&'static str>,
    /// Commands that are not sent to it, because they would do damage or weaken protection.
    hazards: Vec<String>,
}

pub(crate) fn run(arguments: &DevicesArgs, node: &Node) -> Result<Report, Failure> {
    let mut devices = Vec::new();
    for device in node.devices() {
        let mut entry = ask(device).map_err(|error| of_device(&error))?;
        entry.hardware = arguments.verbose.then(|| device.hardware());
        devices.push(entry);
    }
    if let Some(time) = arguments.rates {
        let rates = codewords::measure(node.devices(), time)?;
        for (entry, rates) in devices.iter_mut().zip(rates) {
            entry.codewords_per_second = Some(rates);
        }
    }
    let mut text = nics_table(&devices).render(0);
    for entry in &devices {
        if let Some(hardware) = &entry.hardware {
            text.push('\n');
            text += &details::describe(&entry.info, hardware);
        }
    }
    if arguments.rates.is_some() {
        text.push('\n');
        text += &codewords::table(&devices);
    }
    text.push('\n');
    text += &all_resources(
        devices
            .iter()
            .map(|entry| (entry.info.device, entry.availability.clone())),
    );
    let drivers = devices
        .iter()
        .map(|entry| (entry.info.device, entry.release.clone()));
    for (ids, release) in nics::merge(drivers) {
        text += &limits_of_driver(&nics::name(&ids), &release);
    }
    Ok(Report::new(text, &List { devices }))
}

/// The resources of NICs, for people.
pub(crate) fn resources_of(devices: &[Device]) -> Result<String, Failure> {
    let levels = devices
        .iter()
        .map(|device| Ok((device.id(), device.availability()?)))
        .collect::<cxi::Result<Vec<_>>>()
        .map_err(|error| of_device(&error))?;
    Ok(all_resources(levels))
}

fn all_resources(levels: impl IntoIterator<Item = (DeviceId, Availability)>) -> String {
    let palette = Palette::of_locale();
    let mut text = String::new();
    for (ids, availability) in nics::merge(levels) {
        text += &format!("{HEADING}Resources of {}{HEADING:#}\n", nics::name(&ids));
        text += &resources(&availability, palette);
        text.push('\n');
    }
    text += &format!("{}\n", palette.legend());
    text
}

fn ask(device: &Device) -> cxi::Result<Entry> {
    Ok(Entry {
        info: device.info()?,
        availability: device.availability()?,
        release: DriverRelease::of(device.driver()?),
        hardware: None,
        codewords_per_second: None,
    })
}

/// Capabilities whose absence users of services notice.
const NOTICED: [(Capabilities, &str); 7] = [
    (Capabilities::VNI_RANGES, "VNI ranges"),
    (Capabilities::NETNS, "network namespaces as members"),
    (Capabilities::SERVICE_ENABLE, "enabling without an update"),
    (
        Capabilities::EXCLUSIVE_CPS,
        "exclusive communication profiles",
    ),
    (
        Capabilities::EXCLUSIVE_VNIS,
        "VNIs that no other service can list",
    ),
    (Capabilities::POOL_FLAGS, "naming the pool that ran out"),
    (Capabilities::USAGE_NOT_APPLICABLE, "marking unknown usage"),
];

impl DriverRelease {
    fn of(driver: &Driver) -> Self {
        Self {
            guess: match driver.detected_release() {
                DetectedRelease::Release(release) => release.to_string(),
                DetectedRelease::Between { oldest, newest } => format!("{oldest} to {newest}"),
                _ => "unknown".to_owned(),
            },
            lacks: NOTICED
                .into_iter()
                .filter(|(capability, _)| !driver.can(*capability))
                .map(|(_, words)| words)
                .collect(),
            hazards: driver
                .quirks()
                .iter()
                .map(|hazard| hazard.to_string())
                .collect(),
        }
    }
}

fn limits_of_driver(nics: &str, release: &DriverRelease) -> String {
    let mut text = format!(
        "\n{HEADING}Driver of {nics}{HEADING:#}: behaves like {}\n",
        release.guess
    );
    for lack in &release.lacks {
        text += &format!("  lacks: {lack}\n");
    }
    for hazard in &release.hazards {
        text += &format!("  avoided: {hazard}\n");
    }
    text
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
