//! Directory of a NIC's PCI function.

mod board;
mod bus;
mod config_space;
mod error_flags;
mod link;
mod module;
mod network;
mod pci;
mod properties;
mod retry_handler;
#[cfg(test)]
mod table;
mod traffic_classes;
mod values;
mod virtual_functions;

use std::sync::Arc;

use cxi_ioctl::PciAddress;

pub(crate) use bus::{describe as describe_bus, path as bus_path};
pub(crate) use module::describe as describe_module;
pub(crate) use network::{MTU, mac_address, network_device, network_index};
pub(crate) use pci::VIRTUAL_FUNCTIONS;
pub(crate) use retry_handler::DIRECTORY as RETRY_HANDLER;
pub(crate) use values::{number, switch};

use super::server::{DRIVER, Virtualization};
use super::topology::Locality;
use super::tree::{Item, Tree};
use cxi_mock::Nic;

/// Describes the directory of a function: the number of its physical function, and its own.
pub(crate) fn describe(
    nic: &Arc<Nic>,
    (physical, number): (u16, u16),
    (virtual_function, address): (Option<u32>, PciAddress),
    locality: &Locality,
    virtualization: &Arc<Virtualization>,
) -> Tree {
    let mut tree = Tree::new();
    let windows = pci::Windows::of_nic(physical);
    pci::describe(&mut tree, nic, (virtual_function, address), windows, DRIVER);
    if virtual_function.is_none() {
        virtual_functions::describe(&mut tree, nic, number, virtualization);
    }
    let Locality { numa_node, .. } = *locality;
    tree.value("numa_node", move || numa_node);
    let (list, mask) = locality.cpus();
    tree.text("local_cpulist", move || list.clone());
    tree.text("local_cpus", move || mask.clone());
    properties::describe(&mut tree, nic, virtual_function);
    if virtual_function.is_none() {
        board::describe(&mut tree, nic, number);
        link::describe(&mut tree, nic);
        traffic_classes::describe(&mut tree, nic);
        error_flags::describe(&mut tree);
        retry_handler::describe(&mut tree, nic);
    }
    classes(&mut tree, number, address);
    network::describe(&mut tree, nic, number, address);
    tree
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
