//! Attributes of a PCI function, whatever its driver.

use std::ops::Range;
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
/// The first window of a machine, and the distance from one NIC's to the next's.
const WINDOWS: [u64; 2] = [1 << 40, 8 << 30];

/// Virtual functions that a NIC can have.
pub(crate) const VIRTUAL_FUNCTIONS: u16 = 64;
/// A network controller for Ethernet.
pub(super) const CLASS: u32 = 0x02_0000;

/// Addresses of a NIC's register windows: the upper half is that of its virtual functions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Windows {
    start: u64,
}

impl Windows {
    /// The windows of a machine's NIC, counted from 0.
    pub(super) fn of_nic(nic: u16) -> Self {
        let [first, distance] = WINDOWS;
        Self { start: first + u64::from(nic) * distance }
    }

    /// The window of the physical function, or of a virtual one.
    pub(super) fn of(self, virtual_function: Option<u32>) -> Range<u64> {
        let Some(function) = virtual_function else { return self.start..self.start + REGISTERS };
        let start = self.of_virtual_functions().start + u64::from(function) * VIRTUAL_REGISTERS;
        start..start + VIRTUAL_REGISTERS
    }

    /// The windows of all virtual functions that there can be.
    pub(super) fn of_virtual_functions(self) -> Range<u64> {
        let start = self.start + WINDOWS[1] / 2;
        start..start + u64::from(VIRTUAL_FUNCTIONS) * VIRTUAL_REGISTERS
    }
}

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
    windows: Windows,
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
    let window = windows.of(virtual_function);
    tree.add("resource0", Item::Zeros(window.end - window.start));
    tree.text("resource", move || {
        let mut lines = vec![resource(None); 13];
        lines[0] = resource(Some(&window));
        if is_physical {
            lines[VIRTUAL_RESOURCE] = resource(Some(&windows.of_virtual_functions()));
        }
        lines.concat()
    });
    let source = Arc::clone(nic);
    let config = move || {
        let identity = &source.config().identity;
        let functions = is_physical.then(|| source.virtual_functions());
        config_space::of(identity, windows, functions)
    };
    tree.add("config", Item::Bytes(Box::new(config)));
    if !is_physical {
        tree.link("physfn", format!("../{}", identity.pci_address));
    }
}

/// Line of the windows of virtual functions, behind six of the function's own and one of its ROM.
const VIRTUAL_RESOURCE: usize = 7;

/// A line of the file `resource`: the first address of a window, its last one, and its flags.
fn resource(window: Option<&Range<u64>>) -> String {
    let [first, last, flags] =
        window.map_or([0; 3], |window| [window.start, window.end - 1, 0x0014_220c]);
    format!("{first:#018x} {last:#018x} {flags:#018x}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_do_not_overlap() {
        let functions = || (0..VIRTUAL_FUNCTIONS.into()).map(Some);
        let all = (0..3).flat_map(|nic| {
            [None].into_iter().chain(functions()).map(move |it| Windows::of_nic(nic).of(it))
        });
        let all: Vec<_> = all.collect();
        assert!(all.is_sorted_by(|one, next| one.end <= next.start), "{all:x?}");
        let windows = Windows::of_nic(2);
        let (first, last) = (windows.of(Some(0)), windows.of(functions().next_back().flatten()));
        assert_eq!(windows.of_virtual_functions(), first.start..last.end);
    }
}
