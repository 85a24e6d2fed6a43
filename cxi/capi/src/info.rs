//! The description of a NIC that `cxil_open_device` returns.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use cxi_ioctl::Errno;
use cxi_ioctl::abi::device::{
    CASSINI_1_0, CASSINI_1_1, CASSINI_2, CASSINI_2_0, DevInfoGetCmd, DevInfoUse,
    SYSTEM_ONLY_CASSINI_1, SYSTEM_ONLY_CASSINI_2,
};
use cxi_ioctl::{CharDev, CommandError, execute};
use rustix::fs::{Access, access};
use zerocopy::FromZeros;

use crate::failure::{Failure, Result};
use crate::scan;
use crate::sysfs::{self, Attribute, PAGE};

/// Where the driver shows its NICs.
pub(crate) const CLASS: &str = "/sys/class/cxi_user";

/// Where a NIC's properties are, below its directory.
pub(crate) const PROPERTIES: &str = "device/properties";

/// Of the register window: a virtual function's is smaller.
const PHYSICAL_FUNCTION: u64 = 1 << 31;

/// Room for a part description, with its NUL.
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
    /// The name that is part of paths; the caller can change it.
    pub(crate) fn name(&self) -> PathBuf {
        let name = self.device_name.split(|byte| *byte == 0).next();
        PathBuf::from(std::ffi::OsStr::from_bytes(name.unwrap_or_default()))
    }

    /// Queries a NIC, and sysfs.
    pub(crate) fn query(number: u32, device: &CharDev) -> Result<Self> {
        let name = format!("cxi{number}");
        let file = |name| Attribute::user(number, "", name);
        let directory = file("");
        access(directory.path(), Access::READ_OK).map_err(|_| directory.failed(Errno::ENOENT))?;
        let driver = file("device/driver").target()?;
        let pci = Attribute {
            expected: "a link to a PCI device",
            ..file("device")
        };
        let address = pci_address(pci.target()?.as_bytes());
        let [domain, bus, slot, function] = address.ok_or(pci.failed(Errno::EINVAL))?;
        let resource0 = file("device/resource0");
        let registers = fs::metadata(resource0.path()).map_err(|error| resource0.unread(&error))?;

        let mut info = Self::new_zeroed();
        info.dev_id = number;
        copy(&mut info.device_name, name.as_bytes());
        copy(&mut info.driver_name, driver.as_bytes());
        // scanf's %hx and %hhx cut.
        info.pci_domain = domain as u16;
        info.pci_bus = bus as u8;
        info.pci_device = slot as u8;
        info.pci_function = function as u8;
        info.is_vf = u8::from(registers.len() < PHYSICAL_FUNCTION);
        match execute(device, &DevInfoGetCmd::new()) {
            Ok(answer) => info.fill(&answer),
            Err(CommandError::Refused { .. }) => info.fill_from_sysfs()?,
            // Not a NIC: it takes any bytes, and answers nothing.
            Err(error) => return Err(Failure::command(number, error)),
        }
        Ok(info)
    }

    fn fill(&mut self, answer: &DevInfoUse) {
        self.nid = answer.nid;
        self.pid_bits = answer.pid_bits;
        self.pid_count = answer.pid_count;
        self.pid_granule = answer.pid_granule;
        self.min_free_shift = answer.min_free_shift;
        self.rdzv_get_idx = answer.rdzv_get_idx;
        self.vendor_id = answer.vendor_id;
        self.device_id = answer.device_id;
        self.device_rev = answer.device_rev;
        self.device_proto = answer.device_proto;
        self.device_platform = answer.device_platform;
        self.pct_eq = answer.pct_eq;
        self.uc_nic = answer.uc_nic;
        self.link_mtu = answer.link_mtu;
        self.link_speed = answer.link_speed;
        self.link_state = answer.link_state;
        self.num_ptes = answer.num_ptes;
        self.num_txqs = answer.num_txqs;
        self.num_tgqs = answer.num_tgqs;
        self.num_eqs = answer.num_eqs;
        self.num_cts = answer.num_cts;
        self.num_acs = answer.num_acs;
        self.num_tles = answer.num_tles;
        self.num_les = answer.num_les;
        self.cassini_version = answer.cassini_version;
        self.system_type_identifier = answer.system_type_identifier;
        let fru = answer.fru_description.split(|byte| *byte == 0).next();
        copy(&mut self.fru_description, fru.unwrap_or_default());
    }

    /// The answer of DEV_INFO_GET, for a driver that does not know that command.
    #[allow(clippy::cast_possible_truncation, reason = "scanf's conversions cut")]
    fn fill_from_sysfs(&mut self) -> Result<()> {
        let number = self.dev_id;
        let read = |name, base| Attribute::user(number, PROPERTIES, name).number(base);
        let of_pci = |name| Attribute::user(number, "device", name).number(16);
        self.nid = read("nid", 16)? as u32;
        self.pid_bits = read("pid_bits", 10)? as u32;
        self.pid_count = read("pid_count", 10)? as u32;
        self.pid_granule = read("pid_granule", 10)? as u32;
        self.min_free_shift = read("min_free_shift", 10)? as u32;
        self.rdzv_get_idx = read("rdzv_get_idx", 10)? as u32;
        self.vendor_id = of_pci("vendor")? as u32;
        self.device_id = of_pci("device")? as u32;
        self.cassini_version = cassini_version(number)?;
        self.system_type_identifier = match read("system_type_identifier", 10) {
            Ok(system) => system as u32,
            Err(_) if self.cassini_version & CASSINI_2 != 0 => SYSTEM_ONLY_CASSINI_2,
            Err(_) => SYSTEM_ONLY_CASSINI_1,
        };
        self.device_rev = read("rev", 10)? as u32;
        self.device_proto = read("proto", 10)? as u32;
        self.device_platform = read("platform", 10)? as u32;
        self.uc_nic = read("uc_nic", 0)? as i32;
        self.pct_eq = read("pct_eq", 0)? as u32;
        self.link_mtu = u64::from(read("hpc_mtu", 10)? as u32);
        self.link_speed = read("speed", 10)?;
        self.link_state = read("link", 10)? as u8;
        self.num_ptes = read("num_ptes", 10)? as u16;
        self.num_txqs = read("num_txqs", 10)? as u16;
        self.num_tgqs = read("num_tgqs", 10)? as u16;
        self.num_eqs = read("num_eqs", 10)? as u16;
        self.num_cts = read("num_cts", 10)? as u16;
        self.num_acs = read("num_acs", 10)? as u16;
        self.num_tles = read("num_tles", 10)? as u16;
        self.num_les = read("num_les", 10)? as u16;
        let description = Attribute::user(number, "device/fru", "description");
        let mut page = [0; PAGE];
        let line = sysfs::read(&description.path(), &mut page).unwrap_or(b"Not Available");
        let line = line.split(|byte| *byte == b'\n').next();
        copy(&mut self.fru_description, line.unwrap_or_default());
        Ok(())
    }
}

/// Copies a text, cut so that a NUL follows it.
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

fn cassini_version(number: u32) -> Result<u32> {
    let file = Attribute {
        expected: "1.0, 1.1 or 2.0",
        ..Attribute::user(number, PROPERTIES, "cassini_version")
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
