//! Files of HPE's retry handler about a NIC, in `/run/cxi/cxiN`.

use std::sync::Arc;

use cxi_mock::Nic;

use super::super::tree::Tree;
use super::number;

/// The directory of the files. The kernel's directory of the function does not list it: `/run/cxi`
/// leads there.
pub(crate) const DIRECTORY: &str = "retry_handler";

/// The counters, by HPE's list.
const COUNTERS: [&str; 27] = [
    "accel_close_complete",
    "cancel_no_matching_conn",
    "cancel_tct_closed",
    "connections_cancelled",
    "ignored_sct_timeouts",
    "mst_in_use",
    "nack_no_matching_conn",
    "nack_no_target_conn",
    "nack_no_target_mst",
    "nack_no_target_trs",
    "nack_resource_busy",
    "nack_sequence_error",
    "nacks",
    "pkts_cancelled_o",
    "pkts_cancelled_u",
    "rh_sct_status_change",
    "sct_in_use",
    "sct_timeouts",
    "smt_in_use",
    "spt_in_use",
    "spt_timeouts",
    "spt_timeouts_o",
    "spt_timeouts_u",
    "srb_in_use",
    "tct_in_use",
    "tct_timeouts",
    "trs_in_use",
];

pub(super) fn describe(tree: &mut Tree, nic: &Arc<Nic>) {
    for name in COUNTERS {
        let nic = Arc::clone(nic);
        tree.value(&format!("{DIRECTORY}/{name}"), move || {
            // The engine repeats packets itself, and keeps no connections that could fail.
            let of_timeouts = matches!(name, "spt_timeouts" | "spt_timeouts_u");
            let counted = of_timeouts.then(|| nic.telemetry().counter("pct_spt_timeouts"));
            counted.flatten().unwrap_or(0)
        });
    }
    tree.value(&format!("{DIRECTORY}/config/config_file_path"), || "/etc/cxi_rh.conf");
    tree.writable(
        &format!("{DIRECTORY}/config/log_increment"),
        || 0,
        |text| number::<i32>(text).map(drop),
    );
}
