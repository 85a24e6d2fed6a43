//! A NIC in sysfs.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};

use cxi_ioctl::Errno;
use cxi_ioctl::socket::NodeSocket;

use crate::error::{Error, ErrorKind, Result};
use crate::{DeviceId, PciAddress, kernel_file};

/// A PF's first window is at least this large; a VF's is smaller.
const PF_WINDOW: u64 = 1 << 31;

/// The longest an attribute of sysfs can be where pages are smallest.
const PAGE: usize = 4096;

/// Sysfs in a directory, or on a node behind a socket, whose paths start with `/sys`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sysfs {
    root: PathBuf,
    node: Option<NodeSocket>,
}

impl Sysfs {
    /// Sysfs in a directory.
    pub(crate) fn in_directory(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), node: None }
    }

    /// Sysfs of a node behind a socket.
    pub(crate) fn of_node(node: NodeSocket) -> Self {
        Self { root: "/sys".into(), node: Some(node) }
    }

    /// The directory.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The node behind a socket.
    pub(crate) fn node(&self) -> Option<&NodeSocket> {
        self.node.as_ref()
    }

    /// Reads an attribute.
    pub(crate) fn attribute(&self, path: &Path) -> io::Result<String> {
        let Some(node) = &self.node else { return attribute(path) };
        String::from_utf8(node.read(path)?)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    /// Writes an attribute. The file is never created: a new file of that name would only look like a
    /// setting.
    pub(crate) fn write(&self, path: &Path, value: &str) -> io::Result<()> {
        if let Some(node) = &self.node {
            return node.write(path, value.as_bytes());
        }
        let mut file = fs::OpenOptions::new().write(true).truncate(true).open(path)?;
        file.write_all(value.as_bytes())
    }

    /// The names in a directory.
    pub(crate) fn names(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        match &self.node {
            Some(node) => node.names(directory),
            None => fs::read_dir(directory)?.map(|entry| Ok(entry?.file_name())).collect(),
        }
    }

    /// The entries of a directory that are named like a NIC; none if it does not exist.
    pub(crate) fn nics(&self, directory: &Path) -> Result<Vec<DeviceId>> {
        let names = match self.names(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.has_node() => {
                return Ok(Vec::new());
            }
            names => names.map_err(|error| unreadable(directory, &error))?,
        };
        // Other names are unrelated: `cxi`, `cxi_loopback`.
        Ok(names.iter().filter_map(|name| name.to_str()?.parse().ok()).collect())
    }

    /// Returns whether there is a node to ask: a socket that nobody serves is no directory without NICs.
    fn has_node(&self) -> bool {
        self.node.as_ref().is_none_or(|node| node.length(&self.root).is_ok())
    }

    fn link(&self, path: &Path) -> Option<PathBuf> {
        match &self.node {
            Some(node) => node.read_link(path).ok(),
            None => fs::read_link(path).ok(),
        }
    }

    fn length(&self, path: &Path) -> Option<u64> {
        match &self.node {
            Some(node) => node.length(path).ok(),
            None => Some(fs::metadata(path).ok()?.len()),
        }
    }

    /// Returns whether there is a file or link.
    pub(crate) fn has(&self, path: &Path) -> bool {
        match &self.node {
            Some(node) => node.length(path).is_ok(),
            None => fs::symlink_metadata(path).is_ok(),
        }
    }
}

/// The directory of one NIC in sysfs.
#[derive(Clone, Debug)]
pub(crate) struct NicDirectory {
    sysfs: Sysfs,
    user: PathBuf,
    telemetry: PathBuf,
    parameters: PathBuf,
}

impl NicDirectory {
    pub(crate) fn new(sysfs: &Sysfs, id: DeviceId) -> Self {
        let name = id.to_string();
        Self {
            user: class(sysfs.root()).join(&name),
            telemetry: sysfs.root().join("class/cxi").join(name).join("device/telemetry"),
            parameters: sysfs.root().join("module/cxi_ss1/parameters"),
            sysfs: sysfs.clone(),
        }
    }

    /// Sysfs that its files are in.
    pub(crate) fn sysfs(&self) -> &Sysfs {
        &self.sysfs
    }

    /// The directory of telemetry counters.
    pub(crate) fn telemetry(&self) -> &Path {
        &self.telemetry
    }

    /// A file of `properties`.
    pub(crate) fn property(&self, name: &str) -> PathBuf {
        self.device().join("properties").join(name)
    }

    /// The value of a parameter of the driver's module.
    pub(crate) fn parameter(&self, name: &str) -> Option<String> {
        self.sysfs.attribute(&self.parameters.join(name)).ok()
    }

    /// Returns whether the driver's module has a parameter.
    pub(crate) fn has_parameter(&self, name: &str) -> bool {
        self.sysfs.has(&self.parameters.join(name))
    }

    /// Returns whether the NIC has the property of address translation services; `None` without any
    /// properties.
    pub(crate) fn ats_enabled(&self) -> Option<bool> {
        let has = |name| self.sysfs.has(&self.property(name));
        has("nid").then(|| has("ats_enabled"))
    }

    fn device(&self) -> PathBuf {
        self.user.join("device")
    }

    /// The PCI address; `None` if there is no link to a directory with such a name.
    pub(crate) fn pci_address(&self) -> Option<PciAddress> {
        self.sysfs.link(&self.device())?.file_name()?.to_str()?.parse().ok()
    }

    /// Name of the kernel driver.
    pub(crate) fn driver(&self) -> Option<String> {
        Some(self.sysfs.link(&self.device().join("driver"))?.file_name()?.to_str()?.to_owned())
    }

    /// Returns whether it is a virtual function; `None` if sysfs does not show it.
    pub(crate) fn virtual_function(&self) -> Option<bool> {
        let device = self.device();
        if self.sysfs.has(&device.join("physfn")) {
            return Some(true);
        }
        Some(self.sysfs.length(&device.join("resource0"))? < PF_WINDOW)
    }

    /// A file in the PCI device's directory, trimmed; `None` if it is missing or empty.
    pub(crate) fn attribute(&self, name: &str) -> Option<String> {
        let text = self.sysfs.attribute(&self.device().join(name)).ok()?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// The name of its network device, the first if there are several.
    pub(crate) fn network_device(&self) -> Option<String> {
        let names = self.sysfs.names(&self.device().join("net")).ok()?;
        names.into_iter().filter_map(|name| name.into_string().ok()).min()
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
