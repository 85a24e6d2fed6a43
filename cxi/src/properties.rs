//! Settings of a NIC that are files in sysfs.

use std::fs;

use cxi_ioctl::Errno;

use crate::Device;
use crate::error::{Error, ErrorKind, Result};
use crate::sysfs::{attribute, unreadable};

impl Device {
    /// Turns rendezvous gets on or off (`properties/rdzv_get_en`). The current state is in
    /// [`DeviceInfo::rdzv_get_enabled`](crate::DeviceInfo::rdzv_get_enabled).
    ///
    /// Needs write access to the file, which root has.
    ///
    /// # Errors
    ///
    /// The error of writing the file; ENOENT if the device has no sysfs.
    pub fn set_rdzv_get_enabled(&self, enabled: bool) -> Result<()> {
        self.write_property("rdzv_get_en", if enabled { "1" } else { "0" })
    }

    /// Whether the driver turns rendezvous gets on when it is loaded (its parameter
    /// `rdzv_get_en_default`); `None` if sysfs does not say.
    #[must_use]
    pub fn rdzv_get_default(&self) -> Option<bool> {
        let path = self.directory()?.parameters().join("rdzv_get_en_default");
        Some(matches!(attribute(&path).ok()?.trim(), "1" | "Y"))
    }

    /// The number of RGIDs that no LNI has (`properties/rgids_avail`), from SHS 13.0 on; `None` if
    /// sysfs does not say, as for a virtual function.
    #[must_use]
    pub fn free_rgids(&self) -> Option<u32> {
        let path = self.directory()?.property("rgids_avail");
        attribute(&path).ok()?.trim().parse().ok()
    }

    /// Chooses the fetching atomic that becomes a PCIe fetching add, or none
    /// (`properties/amo_remap_to_pcie_fadd`).
    ///
    /// Needs write access to the file, which root has.
    ///
    /// # Errors
    ///
    /// The error of writing the file; ENOENT if the device has no sysfs.
    #[doc(alias = "cxil_set_amo_remap_to_pcie_fadd")]
    pub fn set_amo_remap_to_pcie_fadd(&self, atomic: Option<u32>) -> Result<()> {
        let value = atomic.map_or(-1, i64::from).to_string();
        self.write_property("amo_remap_to_pcie_fadd", &value)
    }

    fn write_property(&self, name: &str, value: &str) -> Result<()> {
        let directory = self.directory().ok_or_else(|| self.without_sysfs())?;
        let path = directory.property(name);
        // Opened, never created: a new file of that name would only look like a setting.
        fs::OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(&path)
            .and_then(|mut file| std::io::Write::write_all(&mut file, value.as_bytes()))
            .map_err(|error| unreadable(&path, &error).on(self.id()))
    }

    pub(crate) fn without_sysfs(&self) -> Error {
        let kind = ErrorKind::Refused("there is no sysfs behind this device".into());
        Error::new(kind, Errno::ENOENT).on(self.id())
    }
}
