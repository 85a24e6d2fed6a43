//! `cxi devices`.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use clap::{Args, ValueEnum};
use cxi::driver::{Capabilities, Driver};
use cxi::{Availability, Device, DeviceId, DeviceInfo, Hardware, Platform};
use cxi_ioctl::Errno;
use humantime::format_duration;
use serde::Serialize;

use crate::args::{NicChoice, duration};
use crate::exit::Failure;
use crate::node::{Node, reading};
use crate::options::Common;
use crate::output::style::{DOWN, HEADING, PLAIN};
use crate::output::{
    BAR_WIDTH, Columns, Palette, Progress, Report, fullness, merge, nic_names, or_dash, percent,
    wrapped,
};

#[derive(Debug, Args)]
pub(crate) struct DevicesArgs {
    /// One line for each NIC, or also everything that --verbose shows
    #[arg(value_enum, default_value_t, hide_default_value = true)]
    view: View,
    /// NICs, as with --device [default: all]
    #[arg(value_name = "NICS", conflicts_with = "device")]
    nics: Option<NicChoice>,
    /// Also show details of the card, firmware, link, PCI Express connection and driver
    #[arg(short, long)]
    verbose: bool,
    /// Measure how many codewords per second the links receive, for 4s or TIME
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

/// Verb that other commands also have for what they show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum View {
    #[default]
    #[value(alias = "ls")]
    List,
    Show,
}

#[derive(Serialize)]
struct Entry {
    #[serde(flatten)]
    info: DeviceInfo,
    /// Nothing of a virtual function whose driver does not answer for services.
    #[serde(flatten)]
    availability: Option<Availability>,
    release: DriverRelease,
    #[serde(skip_serializing_if = "Option::is_none")]
    hardware: Option<Hardware>,
    #[serde(skip_serializing_if = "Option::is_none")]
    codewords_per_second: Option<Codewords>,
}

/// The release that the driver behaves like, for people and programs.
#[derive(Clone, PartialEq, Eq, Serialize)]
struct DriverRelease {
    /// Such as `shs-14.0.1`, or `shs-13.1 to main-2026-07`, or `unknown`.
    guess: String,
    /// Abilities that it may lack.
    lacks: Vec<&'static str>,
    /// Commands that are not sent to it, because they would do damage or weaken protection.
    hazards: Vec<String>,
}

pub(crate) fn run(arguments: &DevicesArgs, common: &Common) -> Result<Report, Failure> {
    let mut common = common.clone();
    if let Some(nics) = &arguments.nics {
        common.device = Some(nics.clone());
    }
    reading(&common, |node| report(arguments, node))
}

fn report(arguments: &DevicesArgs, node: &Node) -> Result<Report, Failure> {
    let verbose = arguments.verbose || arguments.view == View::Show;
    let ask = |device: &Device| -> cxi::Result<Entry> {
        Ok(Entry {
            info: device.info()?,
            availability: availability(device)?,
            release: DriverRelease::of(device.driver()?),
            hardware: verbose.then(|| device.hardware()),
            codewords_per_second: None,
        })
    };
    let devices = node.functions().into_iter().map(ask);
    let mut devices = devices.collect::<cxi::Result<Vec<_>>>()?;
    if let Some(time) = arguments.rates {
        let rates = codewords(node.devices(), time)?;
        for (device, rates) in node.devices().iter().zip(rates) {
            if let Some(entry) = devices.iter_mut().find(|it| it.info.device == device.id()) {
                entry.codewords_per_second = Some(rates);
            }
        }
    }
    let mut text = nics_table(&devices).render(0);
    for entry in &devices {
        if let Some(hardware) = &entry.hardware {
            text.push('\n');
            text += &describe(&entry.info, hardware);
        }
    }
    if arguments.rates.is_some() {
        text.push('\n');
        text += &codewords_table(&devices);
    }
    text.push('\n');
    text += &all_resources(
        devices.iter().filter_map(|entry| Some((entry.info.device, entry.availability.clone()?))),
    );
    let drivers = devices.iter().map(|entry| (entry.info.device, entry.release.clone()));
    for (ids, release) in merge(drivers) {
        text += &limits_of_driver(&nic_names(&ids), &release, verbose);
    }
    Ok(Report::of(text, "devices", &devices))
}

fn availability(device: &Device) -> cxi::Result<Option<Availability>> {
    match device.availability() {
        Err(error)
            if error.errno() == Errno::EOPNOTSUPP && device.is_virtual_function() == Some(true) =>
        {
            Ok(None)
        }
        availability => availability.map(Some),
    }
}

/// The resources of NICs, for people.
pub(crate) fn resources_of(devices: &[Device]) -> Result<String, Failure> {
    let levels = devices
        .iter()
        .map(|device| Ok((device.id(), device.availability()?)))
        .collect::<cxi::Result<Vec<_>>>()?;
    Ok(all_resources(levels))
}

fn all_resources(levels: impl IntoIterator<Item = (DeviceId, Availability)>) -> String {
    let palette = Palette::of_locale();
    let mut text = String::new();
    for (ids, availability) in merge(levels) {
        text += &format!("{HEADING}Resources of {}{HEADING:#}\n", nic_names(&ids));
        text += &resources(&availability, palette);
        text.push('\n');
    }
    text += &format!("{}\n", palette.legend());
    text
}

/// Capabilities whose absence users of services notice.
const NOTICED: [(Capabilities, &str); 7] = [
    (Capabilities::VNI_RANGES, "VNI ranges"),
    (Capabilities::NETNS, "network namespaces as members"),
    (Capabilities::SERVICE_ENABLE, "enabling without an update"),
    (Capabilities::EXCLUSIVE_CPS, "exclusive communication profiles"),
    (Capabilities::EXCLUSIVE_VNIS, "reserving a single VNI for one service"),
    (Capabilities::POOL_FLAGS, "naming the pool that ran out"),
    (Capabilities::USAGE_NOT_APPLICABLE, "telling unknown usage from none"),
];

impl DriverRelease {
    fn of(driver: &Driver) -> Self {
        Self {
            guess: driver.to_string(),
            lacks: NOTICED
                .into_iter()
                .filter(|(capability, _)| !driver.can(*capability))
                .map(|(_, words)| words)
                .collect(),
            hazards: driver.quirks().iter().map(|it| it.to_string()).collect(),
        }
    }
}

fn limits_of_driver(nics: &str, release: &DriverRelease, verbose: bool) -> String {
    let mut text =
        format!("\n{HEADING}Driver of {nics}{HEADING:#}: behaves like {}\n", release.guess);
    if verbose {
        for lack in &release.lacks {
            text += &wrapped(&format!("  lacks: {lack}\n"));
        }
        for hazard in &release.hazards {
            text += &wrapped(&format!("  known driver bug, which cxi avoids: {hazard}\n"));
        }
    }
    text
}

fn nics_table(devices: &[Entry]) -> Columns {
    let mut table = Columns::new(&["NIC", "Chip", "Address", "Link", "PCI", "NUMA", "Driver"]);
    for Entry { info, .. } in devices {
        let style = if info.link_up { PLAIN } else { DOWN };
        let cells = [
            info.device.to_string(),
            chip(info),
            address(info),
            link(info),
            or_dash(info.pci_address.as_ref()),
            or_dash(info.numa_node.as_ref()),
            or_dash(info.driver.as_ref()),
        ];
        table.row_in(style, cells);
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

pub(crate) fn link(info: &DeviceInfo) -> String {
    if info.link_up { format!("up, {} Gbit/s", info.link_speed / 1000) } else { "down".to_owned() }
}

fn resources(availability: &Availability, palette: Palette) -> String {
    let mut table = Columns::new(&["Resource", "In use", "Reserved", "Reservable", "Total", ""])
        .right(&[1, 2, 3, 4]);
    for (resource, level) in availability.resources.iter() {
        let taken = level.total.saturating_sub(level.reservable);
        let cells = [
            resource.to_string(),
            level.in_use.to_string(),
            level.reserved.to_string(),
            level.reservable.to_string(),
            level.total.to_string(),
            palette.bar(BAR_WIDTH, level.in_use.into(), level.reserved.into(), level.total.into()),
        ];
        table.row_in(fullness(percent(taken, level.total)), cells);
    }
    let mut text = table.render(2);
    text += &format!(
        "  Pools left for further services: {} for LEs, {} for TLEs\n",
        availability.le_pools, availability.tle_pools
    );
    text
}

fn describe(info: &DeviceInfo, hardware: &Hardware) -> String {
    let Hardware { network_device, mac_address, pcie_speed, pcie_width, .. } = hardware;
    let mut table = Columns::new(&["NIC", &info.device.to_string()]);
    for (name, value) in [
        ("Description", or_dash(info.description.as_ref())),
        ("Part number", or_dash(hardware.part_number.as_ref())),
        ("Serial number", or_dash(hardware.serial_number.as_ref())),
        ("Firmware", or_dash(hardware.firmware.as_ref())),
        ("Network device", or_dash(network_device.as_ref())),
        ("MAC address", or_dash(mac_address.as_ref())),
        ("Address (NID)", address(info)),
        ("PID granule", info.pid_granule.to_string()),
        ("PCI address", or_dash(info.pci_address.as_ref())),
        (
            "PCI Express",
            match pcie_width {
                Some(width) => format!("{} x{width}", or_dash(pcie_speed.as_ref())),
                None => or_dash(pcie_speed.as_ref()),
            },
        ),
        ("Correctable errors", errors(&hardware.aer_correctable)),
        ("Nonfatal errors", errors(&hardware.aer_nonfatal)),
        ("Fatal errors", errors(&hardware.aer_fatal)),
        ("Link state", or_dash(hardware.link_state.as_ref())),
        ("Link speed", or_dash(hardware.link_speed.as_ref())),
        ("Link media", or_dash(hardware.link_media.as_ref())),
        ("Link MTU", info.link_mtu.to_string()),
        ("Link layer retry", or_dash(hardware.link_layer_retry.as_ref())),
        ("Loopback", or_dash(hardware.loopback.as_ref())),
        ("Pause", or_dash(hardware.pause.as_ref())),
    ] {
        table.row([name.to_owned(), value]);
    }
    table.render(0)
}

/// Errors of PCI Express, or a dash if they are not counted.
fn errors(counts: &BTreeMap<String, u64>) -> String {
    if counts.is_empty() {
        return "-".to_owned();
    }
    let seen: Vec<_> = counts
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    if seen.is_empty() { "none".to_owned() } else { seen.join(", ") }
}

/// Number of codewords of each kind.
#[derive(Serialize)]
struct Codewords {
    good: f64,
    corrected: f64,
    uncorrected: f64,
}

/// Codewords per second for each NIC, from two readings that are `time` apart.
fn codewords(devices: &[Device], time: Duration) -> Result<Vec<Codewords>, Failure> {
    let all = || devices.iter().map(read).collect::<cxi::Result<Vec<_>>>();
    let before = all()?;
    let progress = Progress::new();
    progress.tell(format_args!("Measuring for {}", format_duration(time)));
    thread::sleep(time);
    drop(progress);
    let after = all()?;
    let rates = before.iter().zip(&after).map(|(before, after)| {
        let [good, corrected, uncorrected] = [0, 1, 2].map(|kind| rate(before[kind], after[kind]));
        Codewords { good, corrected, uncorrected }
    });
    Ok(rates.collect())
}

fn read(device: &Device) -> cxi::Result<[Counted; 3]> {
    Ok([
        counted(device, "hni_pcs_good_cw")?,
        counted(device, "hni_pcs_corrected_cw")?,
        counted(device, "hni_pcs_uncorrected_cw")?,
    ])
}

/// Value of a counter, and the time at which it was read.
pub(crate) type Counted = (u64, Duration);

pub(crate) fn counted(device: &Device, counter: &str) -> cxi::Result<Counted> {
    let reading = device.telemetry(counter)?;
    Ok((reading.value, reading.time))
}

/// The counters wrap around, and the hardware reports when each was read. The rate is 0 if both
/// readings were taken at the same time.
#[allow(clippy::cast_precision_loss, reason = "a rate need not be exact")]
pub(crate) fn rate((before, start): Counted, (after, end): Counted) -> f64 {
    let time = end.saturating_sub(start).as_secs_f64();
    let count = after.wrapping_sub(before) as f64;
    if time > 0.0 { count / time } else { 0.0 }
}

fn codewords_table(devices: &[Entry]) -> String {
    let headings = ["NIC", "Good codewords/s", "Corrected", "Uncorrected"];
    let mut table = Columns::new(&headings).right(&[1, 2, 3]);
    for entry in devices {
        if let Some(rates) = &entry.codewords_per_second {
            table.row([
                entry.info.device.to_string(),
                format!("{:.2}", rates.good),
                format!("{:.2}", rates.corrected),
                format!("{:.2}", rates.uncorrected),
            ]);
        }
    }
    table.render(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_named_and_what_is_not_counted_is_not_none() {
        let counts = |pairs: &[(&str, u64)]| {
            errors(&pairs.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect())
        };
        assert_eq!(counts(&[]), "-");
        assert_eq!(counts(&[("RxErr", 0), ("BadTLP", 0)]), "none");
        assert_eq!(counts(&[("RxErr", 3), ("BadTLP", 0), ("BadDLLP", 1)]), "1 BadDLLP, 3 RxErr");
    }
}
