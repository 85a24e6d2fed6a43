//! The network device of a NIC.

use std::sync::Arc;

use cxi_ioctl::abi::device::DevInfoUse;
use cxi_ioctl::{Errno, PciAddress};

use super::super::tree::Tree;
use cxi_mock::Nic;
use parking_lot::Mutex;

/// Bytes of the largest packet.
pub(crate) const MTU: u32 = 9000;

/// The counters of the kernel. The mock has no Ethernet that could count.
const STATISTICS: &str = "collisions multicast rx_bytes rx_compressed rx_crc_errors rx_dropped \
    rx_errors rx_fifo_errors rx_frame_errors rx_length_errors rx_missed_errors rx_nohandler \
    rx_over_errors rx_packets tx_aborted_errors tx_bytes tx_carrier_errors tx_compressed tx_dropped \
    tx_errors tx_fifo_errors tx_heartbeat_errors tx_packets tx_window_errors";

/// The network device, without which libfabric considers the link to be down.
pub(super) fn describe(tree: &mut Tree, nic: &Arc<Nic>, number: u16, address: PciAddress) {
    let name = network_device(number);
    let directory = format!("net/{name}");
    let path = |file: &str| format!("{directory}/{file}");
    tree.link(&path("device"), format!("../../../{address}"));
    tree.link(&path("subsystem"), "../../../../../class/net");
    let index = network_index(number);
    tree.text(&path("uevent"), move || format!("INTERFACE={name}\nIFINDEX={index}\n"));
    tree.value(&path("ifindex"), move || index);
    tree.value(&path("type"), || 1);
    tree.value(&path("mtu"), || MTU);
    tree.value(&path("duplex"), || "full");
    tree.value(&path("addr_assign_type"), || 3);
    tree.value(&path("addr_len"), || 6);
    let mut add = |file: &str, value: fn(&DevInfoUse) -> String| {
        let nic = Arc::clone(nic);
        tree.value(&path(file), move || value(&nic.device_info()));
    };
    add("address", |info| mac_of(info).map(|byte| format!("{byte:02x}")).join(":"));
    add("operstate", |info| up_or_down(info).to_owned());
    add("carrier", |info| u8::from(info.link_state != 0).to_string());
    add("speed", |info| info.link_speed.to_string());
    add("flags", |info| {
        // IFF_RUNNING, next to IFF_UP, IFF_BROADCAST and IFF_MULTICAST.
        let running = if info.link_state == 0 { 0 } else { 0x40 };
        format!("{:#x}", 0x1003 | running)
    });
    for counter in STATISTICS.split_whitespace() {
        tree.value(&path(&format!("statistics/{counter}")), || 0);
    }
    let mut add = |file: &str, count: fn((u64, u64)) -> u64| {
        let nic = Arc::clone(nic);
        tree.value(&path(file), move || count(nic.hardware().carrier_changes()));
    };
    add("carrier_changes", |(ups, downs)| ups + downs);
    add("carrier_up_count", |(ups, _)| ups);
    add("carrier_down_count", |(_, downs)| downs);
    for (file, value) in [
        ("broadcast", "ff:ff:ff:ff:ff:ff"),
        ("dev_id", "0x0"),
        ("dev_port", "0"),
        ("dormant", "0"),
        ("gro_flush_timeout", "0"),
        ("link_mode", "0"),
        ("name_assign_type", "4"),
        ("netdev_group", "0"),
        ("proto_down", "0"),
        ("testing", "0"),
        ("threaded", "0"),
        ("tx_queue_len", "1000"),
    ] {
        tree.value(&path(file), move || value);
    }
    tree.value(&path("iflink"), move || index);
    for queue in ["rx-0/rps_cpus", "tx-0/xps_cpus"] {
        let mask = Arc::new(Mutex::new("0".to_owned()));
        let source = Arc::clone(&mask);
        tree.writable(
            &path(&format!("queues/{queue}")),
            move || source.lock().clone(),
            move |text| {
                let is_mask = text.bytes().all(|it| it.is_ascii_hexdigit() || it == b',');
                if text.is_empty() || !is_mask {
                    return Err(Errno::EINVAL);
                }
                text.clone_into(&mut mask.lock());
                Ok(())
            },
        );
    }
}

/// The state of the link.
pub(super) fn up_or_down(info: &DevInfoUse) -> &'static str {
    if info.link_state == 0 { "down" } else { "up" }
}

/// The locally administered address that belongs to the NIC's address.
fn mac_of(info: &DevInfoUse) -> [u8; 6] {
    let [_, high, middle, low] = info.nid.to_be_bytes();
    [0x02, 0, 0, high, middle, low]
}

/// The MAC address of a NIC's network device.
pub(crate) fn mac_address(nic: &Arc<Nic>) -> [u8; 6] {
    mac_of(&nic.device_info())
}

/// The network device's index, which is above those that the kernel gives to other devices.
pub(crate) fn network_index(number: u16) -> u32 {
    1000 + u32::from(number)
}

/// The network device's name.
pub(crate) fn network_device(number: u16) -> String {
    format!("hsn{number}")
}
