//! Attributes of a PCI function, whatever its driver.

use std::sync::Arc;

use cxi_ioctl::PciAddress;
use cxi_ioctl::abi::device::CASSINI_2_0;
use cxi_mock::{Identity, Nic};

use super::super::tree::{Item, Tree};
use super::config_space;

/// Length of the register window: for a physical function, 2 GiB or more.
const REGISTERS: u64 = 2 << 30;
/// A virtual function's register window.
const VIRTUAL_REGISTERS: u64 = 64 << 20;

/// Virtual functions that a NIC can have.
pub(crate) const VIRTUAL_FUNCTIONS: u16 = 64;
/// A network controller for Ethernet.
pub(super) const CLASS: u32 = 0x02_0000;

/// Speeds of PCI Express that a card may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Speed {
    /// The kernel's words.
    pub(super) name: &'static str,
    /// The value of its field in the configuration space.
    pub(super) code: u16,
}

/// The speed of a card: the fourth generation for Cassini 1, the fifth for Cassini 2.
pub(super) fn speed(identity: &Identity) -> Speed {
    if identity.cassini_version == CASSINI_2_0 {
        Speed { name: "32.0 GT/s PCIe", code: 5 }
    } else {
        Speed { name: "16.0 GT/s PCIe", code: 4 }
    }
}

pub(super) fn describe(
    tree: &mut Tree,
    nic: &Arc<Nic>,
    (virtual_function, address): (Option<u32>, PciAddress),
    driver: &str,
) {
    let identity = &nic.config().identity;
    let (vendor, device) = (identity.vendor_id, identity.device_id);
    tree.value("vendor", move || format!("{vendor:#06x}"));
    tree.value("device", move || format!("{device:#06x}"));
    tree.value("subsystem_vendor", move || format!("{vendor:#06x}"));
    tree.value("subsystem_device", || "0x0000");
    tree.value("class", || format!("{CLASS:#08x}"));
    let revision = identity.device_rev;
    tree.value("revision", move || format!("{revision:#04x}"));
    tree.value("modalias", move || {
        format!("pci:v{vendor:08X}d{device:08X}sv{vendor:08X}sd00000000bc02sc00i00")
    });
    let speed = speed(identity).name;
    for name in ["current_link_speed", "max_link_speed"] {
        tree.value(name, move || speed);
    }
    for name in ["current_link_width", "max_link_width"] {
        tree.value(name, || 16);
    }
    for (name, value) in [
        ("enable", "1"),
        ("ari_enabled", "1"),
        ("broken_parity_status", "0"),
        ("consistent_dma_mask_bits", "64"),
        ("dma_mask_bits", "64"),
        ("d3cold_allowed", "1"),
        ("driver_override", "(null)"),
        ("irq", "0"),
        ("msi_bus", "1"),
        ("power_state", "D0"),
        ("reset_method", "flr bus"),
    ] {
        tree.value(name, move || value);
    }
    let name = driver.to_owned();
    tree.text("uevent", move || {
        format!(
            "DRIVER={name}\nPCI_CLASS=20000\nPCI_ID={vendor:04X}:{device:04X}\n\
             PCI_SUBSYS_ID={vendor:04X}:0000\nPCI_SLOT_NAME={address}\n\
             MODALIAS=pci:v{vendor:08X}d{device:08X}sv{vendor:08X}sd00000000bc02sc00i00\n"
        )
    });
    tree.link("driver", format!("../../../bus/pci/drivers/{driver}"));
    tree.link("subsystem", "../../../bus/pci");
    let is_physical = virtual_function.is_none();
    let registers = if is_physical { REGISTERS } else { VIRTUAL_REGISTERS };
    tree.add("resource0", Item::Zeros(registers));
    // The first window, and twelve lines for those that the function does not have.
    tree.text("resource", move || {
        let first = format!(
            "{:#018x} {:#018x} 0x000000000014220c\n",
            1_u64 << 40,
            (1_u64 << 40) + registers - 1
        );
        first + &"0x0000000000000000 0x0000000000000000 0x0000000000000000\n".repeat(12)
    });
    tree.add("config", Item::Bytes(config_space::of(identity, is_physical, registers)));
    if !is_physical {
        tree.link("physfn", format!("../{}", identity.pci_address));
    }
}
