//! What the card, its port and its counters say.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use super::super::tree::Tree;
use super::{info, up_or_down};
use cxi_hw::{DmaOp, EventType};
use cxi_mock::{Nic, Telemetry};

/// Names of the counters of a Cassini 2.
const TELEMETRY: &str = include_str!("telemetry.txt");

/// Corrected errors of PCI Express, as the kernel lists them.
const CORRECTABLE: [&str; 8] = [
    "RxErr",
    "BadTLP",
    "BadDLLP",
    "Rollover",
    "Timeout",
    "NonFatalErr",
    "CorrIntErr",
    "HeaderOF",
];
/// Uncorrected ones, fatal or not.
const UNCORRECTABLE: [&str; 18] = [
    "Undefined",
    "DLP",
    "SDES",
    "TLP",
    "FCP",
    "CmpltTO",
    "CmpltAbrt",
    "UnxCmplt",
    "RxOF",
    "MalfTLP",
    "ECRC",
    "UnsupReq",
    "ACSViol",
    "UncorrIntErr",
    "BlockedTLP",
    "AtomicOpBlocked",
    "TLPBlockedErr",
    "PoisonTLPBlocked",
];

pub(super) fn describe(tree: &mut Tree, nic: &Arc<Nic>, number: u16) {
    let description = nic.config().identity.fru_description.clone();
    tree.value("fru/description", move || description.clone());
    tree.value("fru/part_number", || "P68492-001");
    tree.value("fru/serial_number", move || format!("MOCK{number:06}"));
    tree.value("uc/qspi_blob_version", || "mock");
    port(tree, nic);
    for (severity, errors) in [
        ("correctable", &CORRECTABLE[..]),
        ("fatal", &UNCORRECTABLE),
        ("nonfatal", &UNCORRECTABLE),
    ] {
        let total = match severity {
            "correctable" => "TOTAL_ERR_COR",
            "fatal" => "TOTAL_ERR_FATAL",
            _ => "TOTAL_ERR_NONFATAL",
        };
        let names = errors.iter().chain([&total]);
        let text = names.fold(String::new(), |text, name| text + name + " 0\n");
        tree.text(&format!("aer_dev_{severity}"), move || text.clone());
    }
    telemetry(tree, nic);
}

/// The port, as drivers for Cassini 1 and for Cassini 2 show it.
fn port(tree: &mut Tree, nic: &Arc<Nic>) {
    for name in ["media", "0/media/type"] {
        tree.value(&format!("port/{name}"), || "electrical");
    }
    for name in ["link_layer_retry", "0/llr/state"] {
        tree.value(&format!("port/{name}"), || "on");
    }
    for name in ["loopback", "0/link/config/loopback"] {
        tree.value(&format!("port/{name}"), || "off");
    }
    for name in ["pause", "0/link/config/pause_map"] {
        tree.value(&format!("port/{name}"), || "pfc");
    }
    for name in ["speed", "0/link/speed"] {
        let nic = Arc::clone(nic);
        tree.value(&format!("port/{name}"), move || {
            format!("BS_{}G", info(&nic).link_speed / 1000)
        });
    }
    for name in ["link", "0/link/state"] {
        let nic = Arc::clone(nic);
        tree.value(&format!("port/{name}"), move || up_or_down(&info(&nic)));
    }
}

/// What the data path counts; all other counters stand at zero, now.
fn telemetry(tree: &mut Tree, nic: &Arc<Nic>) {
    for counter in TELEMETRY.lines() {
        let nic = Arc::clone(nic);
        tree.value(&format!("telemetry/{counter}"), move || {
            let value = counted(counter, &nic.telemetry());
            let now = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default();
            format!("{value}@{}.{:09}", now.as_secs(), now.subsec_nanos())
        });
    }
}

/// What a counter counts.
fn counted(counter: &str, of: &Telemetry) -> u64 {
    let commands = |op: DmaOp| of.commands[usize::from(op.0)];
    match counter {
        "hni_hrp_ack" => of.high_rate_acks,
        "ixe_dmawr_flush_reqs" => of.flush_requests,
        "ixe_rx_ptl_restricted_pkt" => of.restricted_packets,
        "lpe_plec_hits" => of.fast_path_hits,
        "lpe_put_cmds" => commands(DmaOp::PUT),
        "lpe_get_cmds" => commands(DmaOp::GET),
        "lpe_rendezvous_put_cmds" => commands(DmaOp::RENDEZVOUS_PUT),
        "lpe_amo_cmds" => commands(DmaOp::ATOMIC),
        "lpe_famo_cmds" => commands(DmaOp::FETCHING_ATOMIC),
        "rmu_ptl_success_cntr" => of.commands.iter().sum(),
        "rmu_ptl_invld_vni_cntr" => of.unknown_vnis,
        "rmu_ptl_no_ptlte_cntr" => of.unknown_portals,
        _ => event_of(counter).map_or(0, |kind| of.events[usize::from(kind.0)]),
    }
}

/// The type of the events that a counter counts, which has their name.
fn event_of(counter: &str) -> Option<EventType> {
    let name = counter.strip_prefix("ee_event_")?.strip_suffix("_cntr")?;
    let named = |kind: &EventType| {
        kind.name()
            .is_some_and(|known| known.eq_ignore_ascii_case(name))
    };
    (0..32).map(EventType).find(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_of_event_has_its_counter() {
        let mut found: Vec<EventType> = TELEMETRY.lines().filter_map(event_of).collect();
        found.sort_unstable();
        let mut known: Vec<_> = EventType::NAMES.iter().map(|it| EventType(it.1)).collect();
        known.sort_unstable();
        assert_eq!(found, known);
    }

    #[test]
    fn counters_show_what_was_counted() {
        let mut telemetry = Telemetry::default();
        telemetry.events[usize::from(EventType::PUT_OVERFLOW.0)] = 3;
        telemetry.commands[usize::from(DmaOp::GET.0)] = 5;
        telemetry.commands[usize::from(DmaOp::PUT.0)] = 7;
        telemetry.unknown_portals = 2;
        let shown = |counter| {
            assert!(TELEMETRY.lines().any(|line| line == counter), "{counter}");
            counted(counter, &telemetry)
        };
        assert_eq!(shown("ee_event_put_overflow_cntr"), 3);
        assert_eq!(shown("ee_event_put_cntr"), 0);
        assert_eq!((shown("lpe_get_cmds"), shown("lpe_put_cmds")), (5, 7));
        assert_eq!(shown("rmu_ptl_success_cntr"), 12);
        assert_eq!(shown("rmu_ptl_no_ptlte_cntr"), 2);
        assert_eq!(shown("cq_cycles_blocked_0"), 0);
    }
}
