//! The configuration space of a function, as `lspci` decodes it.

use cxi_mock::Identity;

use super::pci::{CLASS, VIRTUAL_FUNCTIONS, Windows, speed};

/// Bytes of the configuration space of a PCI Express function.
const BYTES: usize = 4096;

/// Places of the capabilities. That of MSI-X is where a real NIC has it.
const EXPRESS: u8 = 0x70;
const MSI_X: u8 = 0xb0;
/// The extended capabilities.
const ERRORS: usize = 0x100;
const ROUTING_IDS: usize = 0x148;
const TRANSLATION: usize = 0x160;
const VIRTUALIZATION: usize = 0x180;

/// Interrupts of a physical function, and of a virtual one.
const INTERRUPTS: [u16; 2] = [512, 63];

/// Makes the configuration space of a physical function with so many virtual ones, or of a virtual one.
pub(super) fn of(identity: &Identity, windows: Windows, virtual_functions: Option<u32>) -> Vec<u8> {
    let is_physical = virtual_functions.is_some();
    let mut space = Space(vec![0; BYTES]);
    // The IDs of a virtual function are all ones here: they are those of the physical one.
    let ids = [identity.vendor_id, identity.device_id];
    let ids = ids.map(|id| u16::try_from(id).unwrap_or(u16::MAX));
    let [vendor, device] = if is_physical { ids } else { [0xffff; 2] };
    space.put16(0x00, vendor);
    space.put16(0x02, device);
    // Memory, which the physical function decides for a virtual one; bus master; a list of capabilities.
    space.put16(0x04, if is_physical { 0x0006 } else { 0x0004 });
    space.put16(0x06, 0x0010);
    space.put32(0x08, CLASS << 8 | identity.device_rev & 0xff);
    if is_physical {
        space.window(0x10, windows.of(None).start);
    }
    space.put16(0x2c, ids[0]);
    space.put8(0x34, EXPRESS);
    express(&mut space, speed(identity).code);
    msi_x(&mut space, INTERRUPTS[usize::from(!is_physical)]);
    space.extended(ERRORS, 0x0001, 2, ROUTING_IDS);
    let after = if is_physical { TRANSLATION } else { 0 };
    space.extended(ROUTING_IDS, 0x000e, 1, after);
    if let Some(count) = virtual_functions {
        space.extended(TRANSLATION, 0x000f, 1, VIRTUALIZATION);
        virtualization(&mut space, ids[1], windows, count);
    }
    space.0
}

/// PCI Express: an endpoint with 16 lanes.
fn express(space: &mut Space, speed: u16) {
    let at = usize::from(EXPRESS);
    space.put8(at, 0x10);
    space.put8(at + 1, MSI_X);
    // Version 2, endpoint.
    space.put16(at + 2, 0x0002);
    // Function-level reset, payloads of 512 bytes.
    space.put32(at + 4, 1 << 28 | 1 << 15 | 2);
    space.put16(at + 8, 2 << 5 | 2 << 12);
    space.put32(at + 12, 16 << 4 | u32::from(speed));
    space.put16(at + 18, 16 << 4 | speed);
    // The supported speeds are a bit each.
    space.put32(at + 44, ((1 << speed) - 1) << 1);
    space.put16(at + 48, speed);
}

fn msi_x(space: &mut Space, interrupts: u16) {
    let at = usize::from(MSI_X);
    space.put8(at, 0x11);
    space.put16(at + 2, 0x8000 | (interrupts - 1));
}

/// Single root I/O virtualization.
fn virtualization(space: &mut Space, device: u16, windows: Windows, count: u32) {
    space.extended(VIRTUALIZATION, 0x0010, 1, 0);
    // More than eight functions to a device; and, while there are some, these and their memory.
    space.put16(VIRTUALIZATION + 0x08, if count == 0 { 0x10 } else { 0x19 });
    space.put16(VIRTUALIZATION + 0x0c, VIRTUAL_FUNCTIONS);
    space.put16(VIRTUALIZATION + 0x0e, VIRTUAL_FUNCTIONS);
    space.put16(VIRTUALIZATION + 0x10, u16::try_from(count).unwrap_or(u16::MAX));
    space.put16(VIRTUALIZATION + 0x14, 1);
    space.put16(VIRTUALIZATION + 0x16, 1);
    space.put16(VIRTUALIZATION + 0x1a, device);
    space.put32(VIRTUALIZATION + 0x1c, 0x0000_0553);
    space.put32(VIRTUALIZATION + 0x20, 1);
    space.window(VIRTUALIZATION + 0x24, windows.of_virtual_functions().start);
}

/// Words in little-endian order.
struct Space(Vec<u8>);

impl Space {
    fn put(&mut self, at: usize, bytes: &[u8]) {
        if let Some(place) = self.0.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }

    fn put8(&mut self, at: usize, value: u8) {
        self.put(at, &[value]);
    }

    fn put16(&mut self, at: usize, value: u16) {
        self.put(at, &value.to_le_bytes());
    }

    fn put32(&mut self, at: usize, value: u32) {
        self.put(at, &value.to_le_bytes());
    }

    /// The place of a prefetchable window with 64-bit addresses.
    fn window(&mut self, at: usize, start: u64) {
        self.put(at, &(start | 0xc).to_le_bytes());
    }

    /// The header of an extended capability, and where the next one is.
    fn extended(&mut self, at: usize, id: u16, version: u32, next: usize) {
        let next = u32::try_from(next).unwrap_or_default();
        self.put32(at, u32::from(id) | version << 16 | next << 20);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(space: &[u8], at: usize) -> u16 {
        u16::from_le_bytes([space[at], space[at + 1]])
    }

    #[test]
    fn capabilities_are_a_list_that_ends() {
        for virtual_functions in [Some(0), Some(2), None] {
            let space = of(&Identity::default(), Windows::of_nic(0), virtual_functions);
            let (mut at, mut ids) = (usize::from(space[0x34]), Vec::new());
            while at != 0 {
                ids.push(u16::from(space[at]));
                at = space[at + 1].into();
            }
            let mut at = 0x100;
            while at != 0 {
                ids.push(word(&space, at));
                at = usize::from(word(&space, at + 2) >> 4);
            }
            let expected: &[u16] = if virtual_functions.is_some() {
                &[0x10, 0x11, 0x01, 0x0e, 0x0f, 0x10]
            } else {
                &[0x10, 0x11, 0x01, 0x0e]
            };
            assert_eq!(ids, expected);
            let vendor = if virtual_functions.is_some() { 0x1590 } else { 0xffff };
            assert_eq!((word(&space, 0), space.len()), (vendor, BYTES));
        }
    }
}
