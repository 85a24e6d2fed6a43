//! Files in sysfs, with numbers parsed as C libcxi parses them, by the rules of scanf(3).

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use cxi::environment::{NODE_VARIABLE, var_os};
use cxi::{DeviceId, Errno, Error, ErrorKind, kernel_file};
use cxi_ioctl::socket::NodeSocket;
use rustix::fs::{Access, access};

use crate::failure::{Failure, Result};
use crate::scan;

/// The maximum length of an attribute: the smallest page size.
pub(crate) const PAGE: usize = 4096;

/// A file of a NIC in sysfs. The names are static, so that a failure can keep them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attribute {
    pub(crate) device: u32,
    /// `cxi_user`, or `cxi` for telemetry.
    pub(crate) class: &'static str,
    /// The path below the directory of the NIC.
    pub(crate) directory: &'static str,
    pub(crate) name: &'static str,
    /// The expected content.
    pub(crate) expected: &'static str,
}

impl Attribute {
    /// A numeric attribute in a directory of the NIC, in the class for users.
    pub(crate) fn user(device: u32, directory: &'static str, name: &'static str) -> Self {
        Self { device, class: "cxi_user", directory, name, expected: "a number" }
    }

    pub(crate) fn path(&self) -> PathBuf {
        let nic = format!("/sys/class/{}/cxi{}", self.class, self.device);
        let parts = [nic.as_str(), self.directory, self.name].into_iter();
        // Join all parts with one allocation, because opening a NIC reads several attributes.
        let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
        parts.join("/").into()
    }

    /// The number, in this base. Fails with the system's error, or with EINVAL if there is no number.
    pub(crate) fn number(self, base: u32) -> Result<u64> {
        let mut page = [0; PAGE];
        let text = read(&self.path(), &mut page).map_err(|error| self.unread(&error))?;
        let (value, _) = scan::number(text, base).ok_or(self.failed(Errno::EINVAL))?;
        Ok(value)
    }

    /// The last part of the target of a link.
    pub(crate) fn target(self) -> Result<OsString> {
        let path = self.path();
        let target = match node() {
            None => fs::read_link(&path).or_else(|_| fs::canonicalize(&path)),
            Some(node) => node.read_link(&path),
        };
        let target = target.map_err(|error| self.unread(&error))?;
        Ok(target.file_name().ok_or(self.failed(Errno::EINVAL))?.to_owned())
    }

    pub(crate) fn unread(self, error: &io::Error) -> Failure {
        self.failed(Errno::from_io(error))
    }

    pub(crate) fn failed(self, errno: Errno) -> Failure {
        Failure::sysfs(self, errno)
    }

    /// Says what is wrong with the file, which is read again to find out.
    pub(crate) fn explain(&self, errno: Errno) -> Error {
        let path = self.path();
        let text = match node() {
            None => kernel_file::read(&path),
            Some(node) => node.read(&path).map(|bytes| String::from_utf8_lossy(&bytes).into()),
        };
        let reason = match text {
            Ok(text) if errno == Errno::EINVAL => {
                format!("invalid {:?}: expected {}", text.trim_end(), self.expected)
            }
            _ => io::Error::from(errno).to_string(),
        };
        Error::new(ErrorKind::Sysfs { path, reason }, errno).on(DeviceId::new(self.device))
    }
}

/// The node behind a socket, if there is one. A program has the same node as long as it runs.
pub(crate) fn node() -> Option<&'static NodeSocket> {
    static NODE: OnceLock<Option<NodeSocket>> = OnceLock::new();
    let named = || var_os(NODE_VARIABLE).filter(|path| !path.is_empty()).map(NodeSocket::at);
    NODE.get_or_init(named).as_ref()
}

/// Reads a file with three system calls: sysfs returns an attribute with a single read.
pub(crate) fn read<'a>(path: &Path, page: &'a mut [u8; PAGE]) -> io::Result<&'a [u8]> {
    let len = match node() {
        None => File::open(path)?.read(page)?,
        Some(node) => node.read(path)?.as_slice().read(page)?,
    };
    Ok(page.get(..len).unwrap_or_default())
}

/// The names in a directory.
pub(crate) fn names(directory: &str) -> io::Result<Vec<OsString>> {
    match node() {
        None => fs::read_dir(directory)?.map(|entry| Ok(entry?.file_name())).collect(),
        Some(node) => node.names(directory.as_ref()),
    }
}

/// The length of a file.
pub(crate) fn length(path: &Path) -> io::Result<u64> {
    match node() {
        None => Ok(fs::metadata(path)?.len()),
        Some(node) => node.length(path),
    }
}

/// Returns whether a directory is there for this process.
pub(crate) fn is_readable(directory: &Path) -> bool {
    match node() {
        None => access(directory, Access::READ_OK).is_ok(),
        Some(node) => node.length(directory).is_ok(),
    }
}
