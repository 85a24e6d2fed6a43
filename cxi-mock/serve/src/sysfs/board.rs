//! Attributes of the card, its firmware and its counters in sysfs.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use cxi_ioctl::Errno;

use super::super::tree::Tree;
use super::switch;
use cxi_mock::{Card, Nic};

/// Names of the counters of a Cassini 2.
const TELEMETRY: &str = include_str!("telemetry.txt");
/// Those that a Cassini 1 does not have.
const TELEMETRY_OF_CASSINI_2: &str = include_str!("telemetry_cassini_2.txt");

/// Text that an administrator has to write to reset the microcontroller.
const RESET: &str = "1789";

/// Corrected errors of PCI Express, as the kernel lists them.
const CORRECTABLE: &str = "RxErr BadTLP BadDLLP Rollover Timeout NonFatalErr CorrIntErr HeaderOF";
/// Uncorrected ones, fatal or not.
const UNCORRECTABLE: &str = "Undefined DLP SDES TLP FCP CmpltTO CmpltAbrt UnxCmplt RxOF MalfTLP \
    ECRC UnsupReq ACSViol UncorrIntErr BlockedTLP AtomicOpBlocked TLPBlockedErr PoisonTLPBlocked";

pub(super) fn describe(tree: &mut Tree, nic: &Arc<Nic>, number: u16) {
    let description = nic.config().identity.fru_description.clone();
    tree.value("fru/description", move || description.clone());
    let part_number = nic.config().identity.card().part_number();
    tree.value("fru/part_number", move || part_number);
    tree.value("fru/serial_number", move || format!("MOCK{number:06}"));
    tree.value("fru/asset_tag", || "");
    for name in ["qspi_blob_version", "version"] {
        tree.value(&format!("uc/{name}"), || "mock");
    }
    tree.writable(
        "uc/reset",
        || "",
        |text| {
            if text == RESET { Ok(()) } else { Err(Errno::EINVAL) }
        },
    );
    let filter = Arc::new(AtomicBool::new(false));
    let source = Arc::clone(&filter);
    tree.writable(
        "settings/ac_filter_disabled",
        move || u8::from(source.load(Ordering::Relaxed)),
        move |text| {
            filter.store(switch(text).ok_or(Errno::EINVAL)?, Ordering::Relaxed);
            Ok(())
        },
    );
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

/// The counters that the data path maintains. All others are zero, as of now.
fn telemetry(tree: &mut Tree, nic: &Arc<Nic>) {
    let missing = match nic.config().identity.card() {
        Card::Cassini1 => TELEMETRY_OF_CASSINI_2,
        _ => "",
    };
    let missing: HashSet<&str> = missing.lines().collect();
    for counter in TELEMETRY.lines().filter(|counter| !missing.contains(counter)) {
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

    #[test]
    fn a_cassini_1_has_fewer_counters() {
        let all: HashSet<_> = TELEMETRY.lines().collect();
        assert!(TELEMETRY_OF_CASSINI_2.lines().all(|name| all.contains(name)));
        assert_eq!(all.len() - TELEMETRY_OF_CASSINI_2.lines().count(), 1426);
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
