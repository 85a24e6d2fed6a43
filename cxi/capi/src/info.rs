//! The description of a NIC that `cxil_open_device` returns.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use cxi::explain::Attempt;
use cxi_ioctl::abi::device::{
    CASSINI_1_0, CASSINI_1_1, CASSINI_2, CASSINI_2_0, DevInfoGetCmd, DevInfoUse,
    SYSTEM_ONLY_CASSINI_1, SYSTEM_ONLY_CASSINI_2,
};
use cxi_ioctl::{CommandError, Errno, Transport, execute};
use zerocopy::FromZeros;

use crate::failure::{Failure, Result};
use crate::scan;
use crate::sysfs::{self, Attribute, PAGE};

/// Directory in which the driver shows its NICs.
pub(crate) const CLASS: &str = "/sys/class/cxi_user";

/// Directory of a NIC's properties, below its own.
pub(crate) const PROPERTIES: &str = "device/properties";

/// The length of the register window; that of a virtual function is smaller.
const PHYSICAL_FUNCTION: u64 = 1 << 31;

/// The size of a part description, with its NUL.
const FRU: usize = 16;

/// `struct cxil_devinfo`.
#[derive(Clone, Copy, Debug, FromZeros)]
#[repr(C)]
pub(crate) struct DevInfo {
    pub(crate) dev_id: u32,
    pub(crate) nid: u32,
    pid_bits: u32,
    pid_count: u32,
    pid_granule: u32,
    min_free_shift: u32,
    rdzv_get_idx: u32,
    pub(crate) device_name: [u8; 14],
    driver_name: [u8; 9],
    vendor_id: u32,
    device_id: u32,
    device_rev: u32,
    device_proto: u32,
    device_platform: u32,
    num_ptes: u16,
    num_txqs: u16,
    num_tgqs: u16,
    num_eqs: u16,
    num_cts: u16,
    num_acs: u16,
    num_tles: u16,
    num_les: u16,
    pci_domain: u16,
    pci_bus: u8,
    pci_device: u8,
    pci_function: u8,
    link_mtu: u64,
    link_speed: u64,
    link_state: u8,
    uc_nic: i32,
    pct_eq: u32,
    cassini_version: u32,
    fru_description: [u8; FRU],
    pub(crate) is_vf: u8,
    system_type_identifier: u32,
}

const _: () = {
    assert!(size_of::<DevInfo>() == 152);
    assert!(std::mem::offset_of!(DevInfo, fru_description) == 128);
};

impl DevInfo {
    /// The name that is part of paths in sysfs; the caller can change it.
    pub(crate) fn name(&self) -> PathBuf {
        let name = self.device_name.split(|byte| *byte == 0).next();
        PathBuf::from(std::ffi::OsStr::from_bytes(name.unwrap_or_default()))
    }

    /// Queries a NIC, and sysfs.
    pub(crate) fn query(number: u32, device: &dyn Transport) -> Result<Self> {
        let name = format!("cxi{number}");
        let file = |name| Attribute::user(number, "", name);
        let directory = file("");
        if !sysfs::is_readable(&directory.path()) {
            return Err(directory.failed(Errno::ENOENT));
        }
        let driver = file("device/driver").target()?;
        let pci = Attribute { expected: "a link to a PCI device", ..file("device") };
        let address = pci_address(pci.target()?.as_bytes());
        let [domain, bus, slot, function] = address.ok_or(pci.failed(Errno::EINVAL))?;
        let resource0 = file("device/resource0");
        let registers =
            sysfs::length(&resource0.path()).map_err(|error| resource0.unread(&error))?;

        let mut info = Self::new_zeroed();
        info.dev_id = number;
        copy(&mut info.device_name, name.as_bytes());
        copy(&mut info.driver_name, driver.as_bytes());
        // Like scanf's %hx and %hhx, this truncates.
        info.pci_domain = domain as u16;
        info.pci_bus = bus as u8;
        info.pci_device = slot as u8;
        info.pci_function = function as u8;
        info.is_vf = u8::from(registers < PHYSICAL_FUNCTION);
        match execute(device, &DevInfoGetCmd::new()) {
            Ok(answer) => info.fill(&answer),
            Err(CommandError::Refused { .. }) => info.fill_from_sysfs()?,
            // Not a NIC: this file accepts any bytes, and writes no response.
            Err(error) => return Err(Failure::command(number, error, Attempt::Other)),
        }
        Ok(info)
    }

    /// The response to DEV_INFO_GET.
    fn fill(&mut self, answer: &DevInfoUse) {
        self.fill_numbers(answer);
        let fru = answer.fru_description.split(|byte| *byte == 0).next();
        copy(&mut self.fru_description, fru.unwrap_or_default());
    }

    /// The same, from sysfs, for a driver without that command.
    fn fill_from_sysfs(&mut self) -> Result<()> {
        self.read_numbers()?;
        let description = Attribute::user(self.dev_id, "device/fru", "description");
        let mut page = [0; PAGE];
        let line = sysfs::read(&description.path(), &mut page).unwrap_or(b"Not Available");
        let line = line.split(|byte| *byte == b'\n').next();
        copy(&mut self.fru_description, line.unwrap_or_default());
        Ok(())
    }
}

/// The numbers of the response, and how each of them is read from sysfs, in libcxi's order.
macro_rules! numbers {
    ($($field:ident: $read:expr,)*) => {
        impl DevInfo {
            fn fill_numbers(&mut self, answer: &DevInfoUse) {
                $(self.$field = answer.$field;)*
            }

            fn read_numbers(&mut self) -> Result<()> {
                // Like scanf's conversions, this truncates.
                $(self.$field = u64::from($read(self)?) as _;)*
                Ok(())
            }
        }
    };
}

numbers! {
    nid: property("nid", 16),
    pid_bits: property("pid_bits", 10),
    pid_count: property("pid_count", 10),
    pid_granule: property("pid_granule", 10),
    min_free_shift: property("min_free_shift", 10),
    rdzv_get_idx: property("rdzv_get_idx", 10),
    vendor_id: number_in("device", "vendor", 16),
    device_id: number_in("device", "device", 16),
    cassini_version: cassini_version,
    system_type_identifier: system_type,
    device_rev: property("rev", 10),
    device_proto: property("proto", 10),
    device_platform: property("platform", 10),
    uc_nic: property("uc_nic", 0),
    pct_eq: property("pct_eq", 0),
    link_mtu: |nic: &DevInfo| property("hpc_mtu", 10)(nic).map(|mtu| mtu as u32),
    link_speed: property("speed", 10),
    link_state: property("link", 10),
    num_ptes: property("num_ptes", 10),
    num_txqs: property("num_txqs", 10),
    num_tgqs: property("num_tgqs", 10),
    num_eqs: property("num_eqs", 10),
    num_cts: property("num_cts", 10),
    num_acs: property("num_acs", 10),
    num_tles: property("num_tles", 10),
    num_les: property("num_les", 10),
}

fn property(name: &'static str, base: u32) -> impl Fn(&DevInfo) -> Result<u64> {
    number_in(PROPERTIES, name, base)
}

fn number_in(
    directory: &'static str,
    name: &'static str,
    base: u32,
) -> impl Fn(&DevInfo) -> Result<u64> {
    move |nic| Attribute::user(nic.dev_id, directory, name).number(base)
}

/// Older drivers do not show it; then it follows from the NIC's own generation.
#[allow(clippy::unnecessary_wraps, reason = "has the type of the others, which may fail")]
fn system_type(nic: &DevInfo) -> Result<u64> {
    let of_nic = if nic.cassini_version & CASSINI_2 != 0 {
        SYSTEM_ONLY_CASSINI_2
    } else {
        SYSTEM_ONLY_CASSINI_1
    };
    Ok(property("system_type_identifier", 10)(nic).unwrap_or(of_nic.into()))
}

/// Copies a text, truncated so that a NUL follows it.
fn copy(to: &mut [u8], text: &[u8]) {
    let room = to.len() - 1;
    for (byte, from) in to.iter_mut().zip(text.iter().take(room)) {
        *byte = *from;
    }
}

fn pci_address(name: &[u8]) -> Option<[u64; 4]> {
    let (domain, rest) = scan::number(name, 16)?;
    let (bus, rest) = scan::number(scan::after(rest, b':')?, 16)?;
    let (slot, rest) = scan::number(scan::after(rest, b':')?, 16)?;
    let (function, _) = scan::number(scan::after(rest, b'.')?, 16)?;
    Some([domain, bus, slot, function])
}

fn cassini_version(nic: &DevInfo) -> Result<u32> {
    let file = Attribute {
        expected: "1.0, 1.1 or 2.0",
        ..Attribute::user(nic.dev_id, PROPERTIES, "cassini_version")
    };
    let mut page = [0; PAGE];
    let text = sysfs::read(&file.path(), &mut page).map_err(|error| file.unread(&error))?;
    match scan::word(text) {
        Some(b"1.0") => Ok(CASSINI_1_0),
        Some(b"1.1") => Ok(CASSINI_1_1),
        Some(b"2.0") => Ok(CASSINI_2_0),
        _ => Err(file.failed(Errno::EINVAL)),
    }
}
