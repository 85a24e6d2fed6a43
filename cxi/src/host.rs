//! The NICs of a node.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cxi_ioctl::socket::NodeSocket;
use cxi_ioctl::{CharDev, Errno, Transport};

use crate::environment::{NODE_VARIABLE, WINDOWS_VARIABLE, var_os};
use crate::error::{Error, ErrorKind, Result};
use crate::sysfs::{self, NicDirectory, Sysfs};
use crate::{Device, DeviceId, DeviceInfo};

/// Vendor and device of the physical functions of Cassini 1 and 2 on the PCI bus.
const CASSINI: [(&str, &str); 2] = [("0x17db", "0x0501"), ("0x1590", "0x0371")];

/// Directories of a node's device nodes and sysfs, or the socket behind which it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    dev: PathBuf,
    sysfs: Sysfs,
}

impl Host {
    /// This node: `/dev` and `/sys`, or the node behind the socket that the variable `CXI_NODE` names
    /// ([`NODE_VARIABLE`]). The variable counts for nothing in a program with rights that its caller
    /// lacks.
    #[must_use]
    pub fn system() -> Self {
        match var_os(NODE_VARIABLE).filter(|path| !path.is_empty()) {
            Some(path) => Self::behind(path),
            None => Self::with_roots("/dev", "/sys"),
        }
    }

    /// Uses another `/dev` and another `/sys`, such as those of a container or a test.
    #[must_use]
    pub fn with_roots(dev: impl Into<PathBuf>, sysfs: impl Into<PathBuf>) -> Self {
        Self { dev: dev.into(), sysfs: Sysfs::in_directory(sysfs) }
    }

    /// The node behind a socket, which this user or root serves. `cxi-mock` serves such nodes.
    #[must_use]
    pub fn behind(socket: impl Into<PathBuf>) -> Self {
        Self { dev: "/dev".into(), sysfs: Sysfs::of_node(NodeSocket::at(socket)) }
    }

    /// The socket behind which the node is; `None` for a node with device nodes.
    #[must_use]
    pub fn socket(&self) -> Option<&Path> {
        self.sysfs.node().map(NodeSocket::path)
    }

    /// The directory of device nodes.
    #[must_use]
    pub fn dev(&self) -> &Path {
        &self.dev
    }

    /// The root of sysfs.
    #[must_use]
    pub fn sysfs(&self) -> &Path {
        self.sysfs.root()
    }

    /// Opens a NIC of the node.
    ///
    /// # Errors
    ///
    /// As [`Device::open`].
    pub fn open(&self, id: DeviceId) -> Result<Device> {
        let path = self.dev.join(id.to_string());
        let opened: io::Result<Arc<dyn Transport>> = match self.sysfs.node() {
            Some(node) => node.open(id.number()).map(|file| Arc::new(file) as _),
            None => CharDev::open(&path).map(|file| Arc::new(beside(file)) as _),
        };
        let file = opened.map_err(|error| {
            let errno = match error.kind() {
                // Also where the kernel did not say so.
                io::ErrorKind::PermissionDenied => Errno::EACCES,
                _ => Errno::from_io(&error),
            };
            let path = self.socket().map_or(path, Path::to_owned);
            Error::new(ErrorKind::Open { path, error }, errno).on(id)
        })?;
        Ok(Device::new(id, file, Some(NicDirectory::new(&self.sysfs, id))))
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
        let mut ids = self.sysfs.nics(&sysfs::class(self.sysfs.root()))?;
        if ids.is_empty() && self.sysfs.node().is_none() {
            ids = Sysfs::in_directory(&*self.dev).nics(&self.dev)?;
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
        let bus = self.sysfs.root().join("bus/pci/devices");
        let names = self.sysfs.names(&bus).ok()?;
        let mut found: Vec<String> = names
            .into_iter()
            .filter(|name| {
                let directory = bus.join(name);
                let id = |name| self.sysfs.attribute(&directory.join(name)).unwrap_or_default();
                let id = (id("vendor"), id("device"));
                CASSINI.contains(&(id.0.trim(), id.1.trim()))
                    && !self.sysfs.has(&directory.join("driver"))
            })
            .filter_map(|name| name.into_string().ok())
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

/// A device file, with the socket that maps its windows if there is one.
fn beside(file: CharDev) -> CharDev {
    match var_os(WINDOWS_VARIABLE) {
        Some(socket) => file.beside(socket),
        None => file,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
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
