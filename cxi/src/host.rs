//! The NICs of a node.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cxi_ioctl::{CharDev, Errno};

use crate::error::{Error, ErrorKind, Result};
use crate::sysfs::{self, NicDirectory};
use crate::{Device, DeviceId, DeviceInfo};

/// Vendor and device of the physical functions of Cassini 1 and 2 on the PCI bus.
const CASSINI: [(&str, &str); 2] = [("0x17db", "0x0501"), ("0x1590", "0x0371")];

/// Directories of a node's device nodes and sysfs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    dev: PathBuf,
    sysfs: PathBuf,
}

impl Host {
    /// This node: `/dev` and `/sys`.
    #[must_use]
    pub fn system() -> Self {
        Self::with_roots("/dev", "/sys")
    }

    /// Uses another `/dev` and another `/sys`, such as those of a container or a test.
    #[must_use]
    pub fn with_roots(dev: impl Into<PathBuf>, sysfs: impl Into<PathBuf>) -> Self {
        Self { dev: dev.into(), sysfs: sysfs.into() }
    }

    /// The directory of device nodes.
    #[must_use]
    pub fn dev(&self) -> &Path {
        &self.dev
    }

    /// The root of sysfs.
    #[must_use]
    pub fn sysfs(&self) -> &Path {
        &self.sysfs
    }

    /// Opens a NIC of the node.
    ///
    /// # Errors
    ///
    /// As [`Device::open`].
    pub fn open(&self, id: DeviceId) -> Result<Device> {
        let path = self.dev.join(id.to_string());
        let file = CharDev::open(&path).map_err(|error| {
            let errno = Errno::from_io(&error);
            Error::new(ErrorKind::Open { path, error }, errno).on(id)
        })?;
        let directory = NicDirectory::new(&self.sysfs, id);
        Ok(Device::new(id, Arc::new(file), Some(directory)))
    }

    /// Lists the NICs of the node by number (`cxi2` before `cxi10`), without opening them.
    ///
    /// NICs are the entries of sysfs (`class/cxi_user`) named `cxi` and a number. Where sysfs has
    /// none, as in some containers, they are such entries in the directory of device nodes.
    ///
    /// # Errors
    ///
    /// A directory exists but cannot be read.
    pub fn device_ids(&self) -> Result<Vec<DeviceId>> {
        let mut ids = sysfs::names(&sysfs::class(&self.sysfs))?;
        if ids.is_empty() {
            ids = sysfs::names(&self.dev)?;
        }
        ids.sort_unstable();
        Ok(ids)
    }

    /// Opens and queries every NIC of the node, as found by [`device_ids`](Self::device_ids). One
    /// that cannot be opened or queried is listed with the reason. On a node without NICs the list
    /// is empty.
    ///
    /// # Errors
    ///
    /// As [`device_ids`](Self::device_ids).
    pub fn devices(&self) -> Result<Vec<FoundDevice>> {
        Ok(self.device_ids()?.into_iter().map(|id| self.find(id)).collect())
    }

    /// The PCI addresses of NICs that the bus has and no driver does, such as one whose initialization
    /// failed: it has no device, and [`device_ids`](Self::device_ids) does not list it. `None` where
    /// sysfs does not show the bus, as in some containers.
    #[must_use]
    pub fn without_driver(&self) -> Option<Vec<String>> {
        let bus = fs::read_dir(self.sysfs.join("bus/pci/devices")).ok()?;
        let entries = bus.flatten().map(|entry| entry.path());
        let mut found: Vec<String> = entries
            .filter(|directory| {
                let id = |name| sysfs::attribute(&directory.join(name)).unwrap_or_default();
                let id = (id("vendor"), id("device"));
                CASSINI.contains(&(id.0.trim(), id.1.trim())) && !directory.join("driver").exists()
            })
            .filter_map(|directory| Some(directory.file_name()?.to_str()?.to_owned()))
            .collect();
        found.sort();
        Some(found)
    }

    fn find(&self, id: DeviceId) -> FoundDevice {
        let found = self.open(id).and_then(|device| {
            let info = device.info()?;
            Ok((device, info))
        });
        FoundDevice { id, found }
    }
}

impl Default for Host {
    fn default() -> Self {
        Self::system()
    }
}

/// Finds every NIC of this node; see [`Host::devices`].
///
/// # Errors
///
/// A directory exists but cannot be read.
#[doc(alias = "cxil_get_device_list")]
pub fn devices() -> Result<Vec<FoundDevice>> {
    Host::system().devices()
}

/// A NIC of the node, open if it is usable.
#[derive(Debug)]
pub struct FoundDevice {
    id: DeviceId,
    found: Result<(Device, DeviceInfo)>,
}

impl FoundDevice {
    /// Returns the number of this NIC.
    #[must_use]
    pub fn id(&self) -> DeviceId {
        self.id
    }

    /// The open NIC.
    ///
    /// # Errors
    ///
    /// Returns the device, or the reason for which it is not usable.
    pub fn device(&self) -> Result<&Device> {
        Ok(&self.parts()?.0)
    }

    /// The NIC's properties.
    ///
    /// # Errors
    ///
    /// Returns the properties, or the reason for which it is not usable.
    pub fn info(&self) -> Result<&DeviceInfo> {
        Ok(&self.parts()?.1)
    }

    fn parts(&self) -> Result<&(Device, DeviceInfo)> {
        self.found.as_ref().map_err(Error::clone)
    }

    /// The open NIC and its properties.
    ///
    /// # Errors
    ///
    /// Returns device and properties, or the reason for which it is not usable.
    pub fn into_parts(self) -> Result<(Device, DeviceInfo)> {
        self.found
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_nic_without_a_driver_is_found_on_the_bus() {
        let root = tempfile::tempdir().unwrap();
        let host = Host::with_roots("/nonexistent", root.path());
        assert_eq!(host.without_driver(), None);
        let bus = root.path().join("bus/pci/devices");
        let device = |address: &str, vendor: &str, device: &str, driver: bool| {
            let directory = bus.join(address);
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join("vendor"), format!("{vendor}\n")).unwrap();
            fs::write(directory.join("device"), format!("{device}\n")).unwrap();
            if driver {
                symlink("/", directory.join("driver")).unwrap();
            }
        };
        device("0000:21:00.0", "0x17db", "0x0501", true);
        device("0000:22:00.0", "0x8086", "0x1521", false);
        // A virtual function may be a guest's.
        device("0000:41:00.1", "0x17db", "0x0502", false);
        assert_eq!(host.without_driver(), Some(vec![]));
        device("0000:e1:00.0", "0x1590", "0x0371", false);
        device("0000:a1:00.0", "0x17db", "0x0501", false);
        let both = ["0000:a1:00.0", "0000:e1:00.0"].map(str::to_owned).to_vec();
        assert_eq!(host.without_driver(), Some(both));
    }
}
