//! `/sys/class/pci_bus`: the bus of a NIC.

use cxi_ioctl::PciAddress;

use super::super::topology::Locality;
use super::super::tree::Tree;

/// Describes the bus of a function.
pub(crate) fn describe(tree: &mut Tree, address: PciAddress, locality: &Locality) {
    let directory = path(address);
    let path = |file: &str| format!("{directory}/{file}");
    tree.link(&path("device"), "../../../pci-cxi-mock");
    tree.link(&path("subsystem"), "../../../../class/pci_bus");
    let (list, mask) = locality.cpus();
    tree.text(&path("cpulistaffinity"), move || list.clone());
    tree.text(&path("cpuaffinity"), move || mask.clone());
    tree.text(&path("uevent"), String::new);
}

/// The directory of a function's bus, next to that of the function.
pub(crate) fn path(address: PciAddress) -> String {
    format!("pci_bus/{:04x}:{:02x}", address.domain, address.bus)
}
