//! Everything about one NIC.

use std::collections::BTreeMap;

use cxi::{DeviceInfo, Hardware};

use super::or_dash;
use crate::output::table::Columns;

pub(super) fn describe(info: &DeviceInfo, hardware: &Hardware) -> String {
    let Hardware {
        network_device,
        mac_address,
        pcie_speed,
        pcie_width,
        ..
    } = hardware;
    let mut table = Columns::new(&["NIC", &info.device.to_string()]);
    for (name, value) in [
        ("Description", or_dash(info.description.as_ref())),
        ("Part number", or_dash(hardware.part_number.as_ref())),
        ("Serial number", or_dash(hardware.serial_number.as_ref())),
        ("Firmware", or_dash(hardware.firmware.as_ref())),
        ("Network device", or_dash(network_device.as_ref())),
        ("MAC address", or_dash(mac_address.as_ref())),
        ("NID", format!("{0} ({0:#07x})", info.nid)),
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
        (
            "Link layer retry",
            or_dash(hardware.link_layer_retry.as_ref()),
        ),
        ("Loopback", or_dash(hardware.loopback.as_ref())),
        ("Pause", or_dash(hardware.pause.as_ref())),
    ] {
        table.row([name.to_owned(), value]);
    }
    table.render(0)
}

/// Errors of PCI Express, or a dash where they are not counted.
fn errors(counts: &BTreeMap<String, u64>) -> String {
    if counts.is_empty() {
        return "-".to_owned();
    }
    let seen: Vec<_> = counts
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    if seen.is_empty() {
        "none".to_owned()
    } else {
        seen.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_named_and_what_is_not_counted_is_not_none() {
        let counts = |pairs: &[(&str, u64)]| {
            errors(
                &pairs
                    .iter()
                    .map(|(name, count)| ((*name).to_owned(), *count))
                    .collect(),
            )
        };
        assert_eq!(counts(&[]), "-");
        assert_eq!(counts(&[("RxErr", 0), ("BadTLP", 0)]), "none");
        assert_eq!(
            counts(&[("RxErr", 3), ("BadTLP", 0), ("BadDLLP", 1)]),
            "1 BadDLLP, 3 RxErr"
        );
    }
}
