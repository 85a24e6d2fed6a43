//! Attributes of the card, its port and its counters in sysfs.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use super::super::tree::Tree;
use super::network::up_or_down;
use cxi_mock::Nic;

/// Names of the counters of a Cassini 2.
const TELEMETRY: &str = include_str!("telemetry.txt");

/// Corrected errors of PCI Express, as the kernel lists them.
const CORRECTABLE: &str = "RxErr BadTLP BadDLLP Rollover Timeout NonFatalErr CorrIntErr HeaderOF";
/// Uncorrected ones, fatal or not.
const UNCORRECTABLE: &str = "Undefined DLP SDES TLP FCP CmpltTO CmpltAbrt UnxCmplt RxOF MalfTLP \
    ECRC UnsupReq ACSViol UncorrIntErr BlockedTLP AtomicOpBlocked TLPBlockedErr PoisonTLPBlocked";

pub(super) fn describe(tree: &mut Tree, nic: &Arc<Nic>, number: u16) {
    let description = nic.config().identity.fru_description.clone();
    tree.value("fru/description", move || description.clone());
    tree.value("fru/part_number", || "P68492-001");
    tree.value("fru/serial_number", move || format!("MOCK{number:06}"));
    tree.value("uc/qspi_blob_version", || "mock");
    port(tree, nic);
    for (severity, errors, total) in [
        ("correctable", CORRECTABLE, "TOTAL_ERR_COR"),
        ("fatal", UNCORRECTABLE, "TOTAL_ERR_FATAL"),
        ("nonfatal", UNCORRECTABLE, "TOTAL_ERR_NONFATAL"),
    ] {
        let names = errors.split_whitespace().chain([total]);
        let text = names.fold(String::new(), |text, name| text + name + " 0\n");
        tree.text(&format!("aer_dev_{severity}"), move || text.clone());
    }
    telemetry(tree, nic);
}

/// The port, as drivers for Cassini 1 and for Cassini 2 show it.
fn port(tree: &mut Tree, nic: &Arc<Nic>) {
    for (name, value) in [
        ("media", "electrical"),
        ("0/media/type", "electrical"),
        ("link_layer_retry", "on"),
        ("0/llr/state", "on"),
        ("loopback", "off"),
        ("0/link/config/loopback", "off"),
        ("pause", "pfc"),
        ("0/link/config/pause_map", "pfc"),
    ] {
        tree.value(&format!("port/{name}"), move || value);
    }
    for name in ["speed", "0/link/speed"] {
        let nic = Arc::clone(nic);
        tree.value(&format!("port/{name}"), move || {
            // The names that HPE's `cxi_stat` computes error rates by.
            match nic.device_info().link_speed / 1000 {
                400 => "CK_400G".to_owned(),
                200 => "BS_200G".to_owned(),
                speed => format!("CD_{speed}G"),
            }
        });
    }
    for name in ["link", "0/link/state"] {
        let nic = Arc::clone(nic);
        tree.value(&format!("port/{name}"), move || up_or_down(&nic.device_info()));
    }
}

/// The counters that the data path maintains. All others are zero, as of now.
fn telemetry(tree: &mut Tree, nic: &Arc<Nic>) {
    for counter in TELEMETRY.lines() {
        let nic = Arc::clone(nic);
        tree.value(&format!("telemetry/{counter}"), move || {
            let value = nic.telemetry().counter(counter).unwrap_or(0);
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            format!("{value}@{}.{:09}", now.as_secs(), now.subsec_nanos())
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_counters_count() {
        let telemetry = cxi_mock::Telemetry::default();
        let counts = |name: &&str| telemetry.counter(name).is_some();
        assert_eq!(TELEMETRY.lines().filter(counts).count(), 221);
    }

    /// All types of events have one: no name is spelled differently.
    #[test]
    fn every_type_of_event_has_its_counter() {
        let of_events = |name: &&str| name.starts_with("ee_event_");
        let telemetry = cxi_mock::Telemetry::default();
        for name in TELEMETRY.lines().filter(of_events) {
            assert!(telemetry.counter(name).is_some(), "{name}");
        }
    }
}
