//! The description of a NIC that `cxil_open_device` returns.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use cxi_ioctl::Errno;
use cxi_ioctl::abi::device::{
    CASSINI_1_0, CASSINI_1_1, CASSINI_2, CASSINI_2_0, DevInfoGetCmd, DevInfoUse,
    SYSTEM_ONLY_CASSINI_1, SYSTEM_ONLY_CASSINI_2,
};
use cxi_ioctl::{CharDev, execute};
use rustix::fs::{Access, access};
use zerocopy::FromZeros;

use crate::failure::{Failure, Result};
use crate::scan;

/// Where the driver shows its NICs.
pub(crate) const CLASS: &str = "/sys/class/cxi_user";

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
    is_vf: u8,
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
        let directory = Path::new(CLASS).join(&name);
        access(&directory, Access::READ_OK).map_err(|_| Errno::ENOENT)?;
        let driver = target(&directory.join("device/driver"))?;
        let pci = target(&directory.join("device"))?;
        let [domain, bus, slot, function] = pci_address(pci.as_bytes())?;
        let registers = fs::metadata(directory.join("device/resource0"))?.len();

        let mut info = Self::new_zeroed();
        info.dev_id = number;
        copy(&mut info.device_name, name.as_bytes());
        copy(&mut info.driver_name, driver.as_bytes());
        // scanf's %hx and %hhx cut.
        info.pci_domain = domain as u16;
        info.pci_bus = bus as u8;
        info.pci_device = slot as u8;
        info.pci_function = function as u8;
        info.is_vf = u8::from(registers < PHYSICAL_FUNCTION);
        match execute(device, &DevInfoGetCmd::new()) {
            Ok(answer) => info.fill(&answer),
            Err(_) => info.fill_from_sysfs(&directory.join("device"))?,
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
    fn fill_from_sysfs(&mut self, device: &Path) -> Result<()> {
        let properties = device.join("properties");
        let read = |name: &str, base| attribute(&properties.join(name), base);
        self.nid = read("nid", 16)? as u32;
        self.pid_bits = read("pid_bits", 10)? as u32;
        self.pid_count = read("pid_count", 10)? as u32;
        self.pid_granule = read("pid_granule", 10)? as u32;
        self.min_free_shift = read("min_free_shift", 10)? as u32;
        self.rdzv_get_idx = read("rdzv_get_idx", 10)? as u32;
        self.vendor_id = attribute(&device.join("vendor"), 16)? as u32;
        self.device_id = attribute(&device.join("device"), 16)? as u32;
        self.cassini_version = cassini_version(&properties.join("cassini_version"))?;
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
        let description = fs::read(device.join("fru/description"));
        let line = description.as_deref().unwrap_or(b"Not Available");
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

/// The last part of the target of a link.
fn target(link: &Path) -> Result<OsString> {
    let target = fs::read_link(link).or_else(|_| fs::canonicalize(link))?;
    let name = target.file_name().ok_or_else(Failure::argument)?;
    Ok(name.to_owned())
}

fn pci_address(name: &[u8]) -> Result<[u64; 4]> {
    let parse = || {
        let (domain, rest) = scan::number(name, 16)?;
        let (bus, rest) = scan::number(scan::after(rest, b':')?, 16)?;
        let (slot, rest) = scan::number(scan::after(rest, b':')?, 16)?;
        let (function, _) = scan::number(scan::after(rest, b'.')?, 16)?;
        Some([domain, bus, slot, function])
    };
    parse().ok_or_else(Failure::argument)
}

/// A number in a file of sysfs: the system's error, or EINVAL if there is none in it.
pub(crate) fn attribute(path: &Path, base: u32) -> Result<u64> {
    let text = fs::read(path)?;
    let (value, _) = scan::number(&text, base).ok_or_else(Failure::argument)?;
    Ok(value)
}

fn cassini_version(path: &Path) -> Result<u32> {
    match scan::word(&fs::read(path)?) {
        Some(b"1.0") => Ok(CASSINI_1_0),
        Some(b"1.1") => Ok(CASSINI_1_1),
        Some(b"2.0") => Ok(CASSINI_2_0),
        _ => Err(Failure::argument()),
    }
}
