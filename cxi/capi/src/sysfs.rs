//! Files in sysfs. Their numbers are read as scanf(3) reads them: they were written for it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use cxi::{DeviceId, Errno, Error, ErrorKind, kernel_file};

use crate::failure::{Failure, Result};
use crate::scan;

/// The longest that an attribute can be where pages are smallest.
pub(crate) const PAGE: usize = 4096;

/// A file of a NIC in sysfs, by names that live as long as the library.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attribute {
    pub(crate) device: u32,
    /// `cxi_user`, or `cxi` for telemetry.
    pub(crate) class: &'static str,
    /// Below the directory of the NIC.
    pub(crate) directory: &'static str,
    pub(crate) name: &'static str,
    /// What it should be.
    pub(crate) expected: &'static str,
}

impl Attribute {
    /// A number in a directory of the class that shows a NIC to users.
    pub(crate) fn user(device: u32, directory: &'static str, name: &'static str) -> Self {
        Self {
            device,
            class: "cxi_user",
            directory,
            name,
            expected: "a number",
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        let nic = format!("/sys/class/{}/cxi{}", self.class, self.device);
        let parts = [nic.as_str(), self.directory, self.name].into_iter();
        // In one piece: opening a NIC takes several.
        let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
        parts.join("/").into()
    }

    /// A number of that base: the system's error, or EINVAL if there is none.
    pub(crate) fn number(self, base: u32) -> Result<u64> {
        let mut page = [0; PAGE];
        let text = read(&self.path(), &mut page).map_err(|error| self.unread(&error))?;
        let (value, _) = scan::number(text, base).ok_or(self.failed(Errno::EINVAL))?;
        Ok(value)
    }

    /// The last part of the target of a link.
    pub(crate) fn target(self) -> Result<OsString> {
        let path = self.path();
        let target = fs::read_link(&path).or_else(|_| fs::canonicalize(&path));
        let target = target.map_err(|error| self.unread(&error))?;
        let name = target.file_name().ok_or(self.failed(Errno::EINVAL))?;
        Ok(name.to_owned())
    }

    pub(crate) fn unread(self, error: &io::Error) -> Failure {
        self.failed(Errno::from_io(error))
    }

    pub(crate) fn failed(self, errno: Errno) -> Failure {
        Failure::sysfs(self, errno)
    }

    /// What is wrong with it, looked up once more.
    pub(crate) fn explain(&self, errno: Errno) -> Error {
        let path = self.path();
        let reason = match kernel_file::read(&path) {
            Ok(text) if errno == Errno::EINVAL => {
                format!("invalid {:?}: expected {}", text.trim_end(), self.expected)
            }
            _ => io::Error::from(errno).to_string(),
        };
        Error::new(ErrorKind::Sysfs { path, reason }, errno).on(DeviceId::new(self.device))
    }
}

/// Reads a file at once, as sysfs gives it, in three system calls.
pub(crate) fn read<'a>(path: &Path, page: &'a mut [u8; PAGE]) -> io::Result<&'a [u8]> {
    let len = File::open(path)?.read(page)?;
    Ok(page.get(..len).unwrap_or_default())
}
