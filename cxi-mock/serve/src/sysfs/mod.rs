//! Directory of a NIC's PCI function.

mod board;
mod bus;
mod module;
mod network;
mod properties;

use std::sync::Arc;

use cxi_ioctl::PciAddress;

pub(crate) use bus::{describe as describe_bus, path as bus_path};
pub(crate) use module::describe as describe_module;
pub(crate) use network::{MTU, mac_address, network_device, network_index};
pub(crate) use properties::switch;

use super::topology::Locality;
use super::tree::{Item, Tree};
use cxi_mock::Nic;

/// Length of the register window: for a physical function, 2 GiB or more.
const REGISTERS: u64 = 2 << 30;
/// A virtual function's register window.
const VIRTUAL_REGISTERS: u64 = 64 << 20;

/// Describes the directory of a function.
pub(crate) fn describe(
    nic: &Arc<Nic>,
    number: u16,
    (virtual_function, address): (Option<u32>, PciAddress),
    locality: &Locality,
) -> Tree {
    let mut tree = Tree::new();
    pci(&mut tree, nic, virtual_function, address);
    let Locality { numa_node, .. } = *locality;
    tree.value("numa_node", move || numa_node);
    let (list, mask) = locality.cpus();
    tree.text("local_cpulist", move || list.clone());
    tree.text("local_cpus", move || mask.clone());
    properties::describe(&mut tree, nic, virtual_function);
    if virtual_function.is_none() {
        board::describe(&mut tree, nic, number);
    }
    classes(&mut tree, number, address);
    network::describe(&mut tree, nic, number, address);
    tree
}

fn pci(tree: &mut Tree, nic: &Arc<Nic>, virtual_function: Option<u32>, address: PciAddress) {
    let identity = &nic.config().identity;
    let (vendor, device) = (identity.vendor_id, identity.device_id);
    tree.value("vendor", move || format!("{vendor:#06x}"));
    tree.value("device", move || format!("{device:#06x}"));
    tree.value("subsystem_vendor", move || format!("{vendor:#06x}"));
    tree.value("subsystem_device", || "0x0000");
    tree.value("class", || "0x020000");
    let revision = identity.device_rev;
    tree.value("revision", move || format!("{revision:#04x}"));
    tree.value("enable", || 1);
    for name in ["current_link_speed", "max_link_speed"] {
        tree.value(name, || "32.0 GT/s PCIe");
    }
    for name in ["current_link_width", "max_link_width"] {
        tree.value(name, || 16);
    }
    tree.text("uevent", move || {
        format!(
            "DRIVER=cxi_ss1\nPCI_CLASS=20000\nPCI_ID={vendor:04X}:{device:04X}\n\
             PCI_SUBSYS_ID={vendor:04X}:0000\nPCI_SLOT_NAME={address}\n"
        )
    });
    tree.link("driver", "../../../bus/pci/drivers/cxi_ss1");
    tree.link("subsystem", "../../../bus/pci");
    let physical = identity.pci_address;
    if virtual_function.is_some() {
        tree.link("physfn", format!("../{physical}"));
        tree.add("resource0", Item::Zeros(VIRTUAL_REGISTERS));
    } else {
        tree.add("resource0", Item::Zeros(REGISTERS));
        let count = nic.config().virtual_functions;
        tree.value("sriov_numvfs", move || count);
        tree.value("sriov_totalvfs", || 64);
        for function in 0..count {
            let address = address_of(nic, Some(function));
            tree.link(&format!("virtfn{function}"), format!("../{address}"));
        }
    }
}

fn classes(tree: &mut Tree, number: u16, address: PciAddress) {
    for class in ["cxi", "cxi_user"] {
        let directory = format!("{class}/cxi{number}");
        tree.link(&format!("{directory}/device"), format!("../../../{address}"));
        tree.link(&format!("{directory}/subsystem"), format!("../../../../../class/{class}"));
    }
    tree.text(&format!("cxi/cxi{number}/uevent"), String::new);
    tree.text(&format!("cxi_user/cxi{number}/uevent"), move || {
        format!("DEVNAME=cxi{number}\nDEVMODE=0666\n")
    });
    tree.add(&format!("cxi_user/cxi{number}/clients"), Item::Clients);
}

/// Virtual functions follow the physical one, eight functions to a device.
pub(crate) fn address_of(nic: &Nic, virtual_function: Option<u32>) -> PciAddress {
    let mut address = nic.config().identity.pci_address;
    let Some(function) = virtual_function else { return address };
    let at = u32::from(address.device) * 8 + u32::from(address.function) + 1 + function;
    address.device = u8::try_from(at / 8 % 32).unwrap_or_default();
    address.function = u8::try_from(at % 8).unwrap_or_default();
    address
}
