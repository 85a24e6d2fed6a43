//! The network device of a NIC.

use std::sync::Arc;

use cxi_ioctl::PciAddress;
use cxi_ioctl::abi::device::DevInfoUse;

use super::super::tree::Tree;
use cxi_mock::Nic;

/// Bytes of the largest packet.
pub(crate) const MTU: u32 = 9000;

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
    for direction in ["rx", "tx"] {
        for counter in ["bytes", "packets", "errors", "dropped"] {
            tree.value(&path(&format!("statistics/{direction}_{counter}")), || 0);
        }
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
