//! The directory `traffic_classes`: the QoS profile that the driver was loaded with.

use std::sync::Arc;

use cxi_mock::Nic;

use super::super::tree::{Item, Tree};

/// The names of profiles by the value of `active_qos_profile`.
const PROFILES: [&str; 3] = ["HPC", "LL_BE_BD_ET", "LL_BE_BD_ET1_ET2"];

/// The priority of Ethernet frames without a VLAN tag, unless a parameter of the module changes it.
const UNTAGGED_PRIORITY: u32 = 6;

pub(super) fn describe(tree: &mut Tree, nic: &Arc<Nic>) {
    let profile = nic.config().params.active_qos_profile;
    let name =
        usize::try_from(profile).ok().and_then(|number| PROFILES.get(number.wrapping_sub(1)));
    let name = name.copied().unwrap_or("LL_BE_BD_ET");
    tree.value("traffic_classes/active_qos_profile", move || name);
    tree.value("traffic_classes/untagged_eth_pcp", || UNTAGGED_PRIORITY);
    let mut classes = vec!["best_effort", "bulk_data", "low_latency"];
    classes.extend(["ethernet/ethernet_shared", "ethernet/ethernet1"]);
    match name {
        "HPC" => classes.push("dedicated_access"),
        "LL_BE_BD_ET1_ET2" => classes.push("ethernet/ethernet2"),
        _ => {}
    }
    for class in classes {
        tree.add(&format!("traffic_classes/{class}"), Item::Directory);
    }
}
