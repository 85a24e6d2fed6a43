//! Attributes of a NIC in sysfs: its card, its link, its PCI Express connection, and a few
//! settings.

use std::collections::BTreeMap;

use cxi_ioctl::Errno;

use crate::Device;
use crate::error::{Error, ErrorKind, Result};
use crate::sysfs::{NicDirectory, unreadable};

/// A NIC's card, its link and its PCI Express connection, in the kernel's words. What sysfs does
/// not have is `None`; without sysfs everything is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Hardware {
    /// Part number of the card.
    pub part_number: Option<String>,
    /// Serial number of the card.
    pub serial_number: Option<String>,
    /// Version of the firmware.
    pub firmware: Option<String>,
    /// Name of its network device, such as `hsn0`.
    pub network_device: Option<String>,
    /// MAC address of its network device.
    pub mac_address: Option<String>,
    /// Speed of the PCI Express link, such as `16.0 GT/s PCIe`, or that of an extended speed mode
    /// if it is on.
    pub pcie_speed: Option<String>,
    /// Lanes of the PCI Express link.
    pub pcie_width: Option<u32>,
    /// State of the fabric link, such as `up`.
    pub link_state: Option<String>,
    /// Speed of the fabric link, such as `BS_200G`.
    pub link_speed: Option<String>,
    /// Medium of the link, such as `electrical`.
    pub link_media: Option<String>,
    /// Link layer retry: `on` or `off`.
    pub link_layer_retry: Option<String>,
    /// Loopback mode of the link, such as `off`.
    pub loopback: Option<String>,
    /// Kind of pause frames that the link accepts and sends.
    pub pause: Option<String>,
    /// Corrected PCI Express errors, by name; empty without advanced error reporting.
    pub aer_correctable: BTreeMap<String, u64>,
    /// Fatal PCI Express errors, by name.
    pub aer_fatal: BTreeMap<String, u64>,
    /// PCI Express errors that were neither corrected nor fatal, by name.
    pub aer_nonfatal: BTreeMap<String, u64>,
}

impl Device {
    /// Reads what sysfs has about the card, its link and its PCI Express connection. Sends the
    /// driver nothing, and reads about twenty files.
    #[must_use]
    pub fn hardware(&self) -> Hardware {
        self.directory().map_or_else(Hardware::default, read)
    }

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

    /// Returns whether the driver turns rendezvous gets on when it is loaded (its parameter
    /// `rdzv_get_en_default`); `None` if sysfs does not say.
    #[must_use]
    pub fn rdzv_get_default(&self) -> Option<bool> {
        let value = self.directory()?.parameter("rdzv_get_en_default")?;
        Some(matches!(value.trim(), "1" | "Y"))
    }

    /// The number of RGIDs that no LNI has (`properties/rgids_avail`), from SHS 13.0 on; `None` if
    /// sysfs does not say, as for a virtual function.
    #[must_use]
    pub fn free_rgids(&self) -> Option<u32> {
        let directory = self.directory()?;
        let text = directory.sysfs().attribute(&directory.property("rgids_avail")).ok()?;
        text.trim().parse().ok()
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
        let written = directory.sysfs().write(&path, value);
        written.map_err(|error| unreadable(&path, &error).on(self.id()))
    }

    pub(crate) fn without_sysfs(&self) -> Error {
        Error::new(ErrorKind::NoSysfs, Errno::ENOENT).on(self.id())
    }
}

fn read(nic: &NicDirectory) -> Hardware {
    let text = |name: &str| nic.attribute(name);
    // Drivers for Cassini 2 number the ports; older ones have a single one.
    let port = |numbered: &str, single: &str| {
        text(&format!("port/0/{numbered}")).or_else(|| text(&format!("port/{single}")))
    };
    let network_device = nic.network_device();
    let mac_address = network_device.as_ref().and_then(|name| text(&format!("net/{name}/address")));
    Hardware {
        part_number: text("fru/part_number"),
        serial_number: text("fru/serial_number"),
        firmware: text("uc/qspi_blob_version"),
        network_device,
        mac_address,
        pcie_speed: text("properties/current_esm_link_speed")
            .filter(|speed| speed.starts_with(|first: char| first.is_ascii_digit()))
            .or_else(|| text("current_link_speed")),
        pcie_width: text("current_link_width").and_then(|width| width.parse().ok()),
        link_state: port("link/state", "link"),
        link_speed: port("link/speed", "speed"),
        link_media: port("media/type", "media"),
        link_layer_retry: port("llr/state", "link_layer_retry"),
        loopback: port("link/config/loopback", "loopback"),
        pause: port("link/config/pause_map", "pause"),
        aer_correctable: errors(text("aer_dev_correctable")),
        aer_fatal: errors(text("aer_dev_fatal")),
        aer_nonfatal: errors(text("aer_dev_nonfatal")),
    }
}

/// Lines of a name and a count. The kernel's totals are left out: they are not separate errors.
fn errors(text: Option<String>) -> BTreeMap<String, u64> {
    let text = text.unwrap_or_default();
    let counts = text.lines().filter_map(|line| {
        let (name, count) = line.rsplit_once(' ')?;
        Some((name.to_owned(), count.parse().ok()?))
    });
    counts.filter(|(name, _)| !name.starts_with("TOTAL_")).collect()
}
