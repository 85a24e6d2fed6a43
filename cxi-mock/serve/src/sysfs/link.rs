//! The link of a NIC: its port, and when it restarted.

use std::sync::Arc;
use std::time::Duration;

use cxi_mock::Nic;

use super::super::tree::Tree;
use super::network::up_or_down;

pub(super) fn describe(tree: &mut Tree, nic: &Arc<Nic>) {
    port(tree, nic);
    for place in 0..nic.hardware().link_restarts().len() {
        let nic = Arc::clone(nic);
        tree.value(&format!("link_restarts/time_{place}"), move || {
            nic.hardware().link_restarts().get(place).map_or(0, Duration::as_secs)
        });
    }
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
