//! A NIC in sysfs.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use cxi_ioctl::Errno;

use crate::error::{Error, ErrorKind, Result};
use crate::{DeviceId, PciAddress, kernel_file};

/// A PF's first window is at least this large; a VF's is smaller.
const PF_WINDOW: u64 = 1 << 31;

/// The longest an attribute of sysfs can be where pages are smallest.
const PAGE: usize = 4096;

/// The directory of one NIC in sysfs.
#[derive(Clone, Debug)]
pub(crate) struct NicDirectory {
    user: PathBuf,
    telemetry: PathBuf,
    parameters: PathBuf,
}

impl NicDirectory {
    pub(crate) fn new(sysfs: &Path, id: DeviceId) -> Self {
        let name = id.to_string();
        Self {
            user: class(sysfs).join(&name),
            telemetry: sysfs.join("class/cxi").join(name).join("device/telemetry"),
            parameters: sysfs.join("module/cxi_ss1/parameters"),
        }
    }

    /// The directory of telemetry counters.
    pub(crate) fn telemetry(&self) -> &Path {
        &self.telemetry
    }

    /// A file of `properties`.
    pub(crate) fn property(&self, name: &str) -> PathBuf {
        self.device().join("properties").join(name)
    }

    /// The directory of the driver's module parameters.
    pub(crate) fn parameters(&self) -> &Path {
        &self.parameters
    }

    /// Returns whether the NIC has the property of address translation services; `None` without any
    /// properties.
    pub(crate) fn ats_enabled(&self) -> Option<bool> {
        fs::symlink_metadata(self.property("nid")).ok()?;
        Some(fs::symlink_metadata(self.property("ats_enabled")).is_ok())
    }

    fn device(&self) -> PathBuf {
        self.user.join("device")
    }

    /// The PCI address; `None` if there is no link to a directory with such a name.
    pub(crate) fn pci_address(&self) -> Option<PciAddress> {
        fs::read_link(self.device()).ok()?.file_name()?.to_str()?.parse().ok()
    }

    /// Name of the kernel driver.
    pub(crate) fn driver(&self) -> Option<String> {
        Some(fs::read_link(self.device().join("driver")).ok()?.file_name()?.to_str()?.to_owned())
    }

    /// Returns whether it is a virtual function; `None` if sysfs does not show it.
    pub(crate) fn virtual_function(&self) -> Option<bool> {
        let device = self.device();
        if fs::symlink_metadata(device.join("physfn")).is_ok() {
            return Some(true);
        }
        Some(fs::metadata(device.join("resource0")).ok()?.len() < PF_WINDOW)
    }

    /// A file in the PCI device's directory, trimmed; `None` if it is missing or empty.
    pub(crate) fn attribute(&self, name: &str) -> Option<String> {
        let text = attribute(&self.device().join(name)).ok()?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// The name of its network device, the first if there are several.
    pub(crate) fn network_device(&self) -> Option<String> {
        let entries = fs::read_dir(self.device().join("net")).ok()?;
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).min()
    }

    /// The NUMA node; `None` if the platform has none.
    pub(crate) fn numa_node(&self) -> Option<u32> {
        self.attribute("numa_node")?.parse().ok()
    }

    /// The CPUs close to the NIC, as the kernel writes lists: `0-15,32-47`.
    pub(crate) fn local_cpus(&self) -> Option<String> {
        self.attribute("local_cpulist")
    }
}

/// Reads an attribute. The kernel returns all of it at the first read, so neither its length nor
/// its end needs to be determined.
pub(crate) fn attribute(path: &Path) -> io::Result<String> {
    let mut page = [0; PAGE];
    let mut file = kernel_file::open_attribute(path)?;
    let len = loop {
        match file.read(&mut page) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => break read?,
        }
    };
    match page.get(..len) {
        Some(text) if len < PAGE => {
            let text = str::from_utf8(text)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            Ok(text.to_owned())
        }
        // Pages are larger here, or this is not sysfs.
        _ => kernel_file::read(path),
    }
}

/// The entries of a directory that are named like a NIC; none if it does not exist.
pub(crate) fn names(directory: &Path) -> Result<Vec<DeviceId>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|error| unreadable(directory, &error))?,
    };
    let mut ids = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| unreadable(directory, &error))?;
        // Other names are unrelated: `cxi`, `cxi_loopback`.
        ids.extend(entry.file_name().to_str().and_then(|name| name.parse::<DeviceId>().ok()));
    }
    Ok(ids)
}

pub(crate) fn unreadable(path: &Path, error: &io::Error) -> Error {
    let kind = ErrorKind::Sysfs { path: path.to_owned(), reason: error.to_string() };
    Error::new(kind, Errno::from_io(error))
}

pub(crate) fn malformed(path: &Path, reason: String) -> Error {
    let path = path.to_owned();
    Error::invalid(ErrorKind::Sysfs { path, reason })
}

pub(crate) fn class(sysfs: &Path) -> PathBuf {
    sysfs.join("class/cxi_user")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attribute_is_read_whole_about_a_page() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for len in [PAGE - 1, PAGE, PAGE + 1] {
            fs::write(file.path(), vec![b'7'; len]).unwrap();
            assert_eq!(attribute(file.path()).unwrap().len(), len);
        }
    }
}
