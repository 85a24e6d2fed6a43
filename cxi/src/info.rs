//! The properties of a NIC.

use std::fmt;

use cxi_ioctl::abi::device as abi;
use cxi_ioctl::abi::device::{DevInfoGetCmd, DevInfoUse};

use crate::error::Result;
use crate::sysfs::NicDirectory;
use crate::{Device, DeviceId, Limit, Limits, PciAddress, ResourceMap};

/// The properties of a NIC, as the driver and sysfs report them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct DeviceInfo {
    /// Number of the NIC.
    pub device: DeviceId,
    /// Its address on the fabric.
    pub nid: u32,
    /// `true` if the address has been set; `None` up to SHS 13.0, which does not report it.
    pub nid_configured: Option<bool>,
    /// Version of the chip.
    pub cassini_version: CassiniVersion,
    /// Cassini generations in the system: 1, 2, or 0 for both.
    pub system_type: u32,
    /// Platform: the chip or a simulator.
    pub platform: Platform,
    /// Revision of the chip.
    pub device_rev: u32,
    /// Protocol revision of the chip.
    pub device_proto: u32,
    /// PCI vendor.
    pub vendor_id: u32,
    /// PCI device.
    pub device_id: u32,
    /// Number of the NIC on its card.
    pub uc_nic: i32,
    /// The name of the part; `None` for a virtual function.
    pub description: Option<String>,
    /// `true` if the link is up.
    pub link_up: bool,
    /// Speed of the link in Mbit/s.
    pub link_speed: u64,
    /// Largest packet in bytes.
    pub link_mtu: u64,
    /// Event queue of the retry handler; 0 when none is running.
    pub retry_handler_eq: u32,
    /// Width of a PID in bits.
    pub pid_bits: u32,
    /// Number of PIDs.
    pub pid_count: u32,
    /// PtlTE offsets per PID.
    pub pid_granule: u32,
    /// PtlTE offset to which rendezvous gets go.
    pub rdzv_get_idx: u32,
    /// `true` if rendezvous gets are enabled.
    pub rdzv_get_enabled: bool,
    /// Shift of the least free space of a list entry.
    pub min_free_shift: u32,
    /// The atomic operation that becomes a PCIe fetching add; `None` for none.
    pub amo_remap_to_pcie_fadd: Option<u32>,
    /// Number of each resource; LEs for each processing element.
    pub totals: ResourceMap<u16>,
    /// Its PCI address, from sysfs.
    pub pci_address: Option<PciAddress>,
    /// Name of the kernel driver, from sysfs.
    pub driver: Option<String>,
    /// `true` if it is a virtual function, on which services cannot be changed; from sysfs.
    pub virtual_function: Option<bool>,
    /// The NUMA node that it is attached to, from sysfs.
    pub numa_node: Option<u32>,
    /// The CPUs that it is close to, as the kernel writes lists; from sysfs.
    pub local_cpus: Option<String>,
}

impl DeviceInfo {
    /// Returns whether a retry handler is running. Without one, lost packets are not sent again.
    #[doc(alias = "cxil_rh_running")]
    #[must_use]
    pub fn is_retry_handler_running(&self) -> bool {
        self.retry_handler_eq != 0
    }
}

/// Version of the chip, as the driver numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct CassiniVersion(pub u32);

impl CassiniVersion {
    /// Generation of the chip, 1 or 2; `None` if unknown.
    #[must_use]
    pub fn generation(self) -> Option<u32> {
        match self.0 & !0xf {
            abi::CASSINI_1 => Some(1),
            abi::CASSINI_2 => Some(2),
            _ => None,
        }
    }
}

impl fmt::Display for CassiniVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            abi::CASSINI_1 => f.pad("Cassini 1"),
            abi::CASSINI_1_0 => f.pad("Cassini 1.0"),
            abi::CASSINI_1_1 => f.pad("Cassini 1.1"),
            abi::CASSINI_2 => f.pad("Cassini 2"),
            abi::CASSINI_2_0 => f.pad("Cassini 2.0"),
            other => f.pad(&format!("Cassini version {other:#x}")),
        }
    }
}

/// The kind of platform that the NIC is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "lowercase")
)]
#[non_exhaustive]
pub enum Platform {
    /// The chip.
    Asic,
    /// A simulator, such as a mock.
    Netsim,
    /// Something else, by number.
    Other(u32),
}

impl Platform {
    fn from_kernel(number: u32) -> Self {
        match number {
            abi::PLATFORM_ASIC => Self::Asic,
            abi::PLATFORM_NETSIM => Self::Netsim,
            other => Self::Other(other),
        }
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asic => f.pad("ASIC"),
            Self::Netsim => f.pad("NETSIM"),
            Self::Other(number) => f.pad(&format!("platform {number}")),
        }
    }
}

impl Limits {
    /// All that a NIC has, with nothing reserved except TLEs, which come in pools.
    ///
    /// A service with these limits takes one of the three TLE pools for services, as does one
    /// without limits.
    #[must_use]
    pub fn all_of(info: &DeviceInfo) -> Self {
        info.totals.map(|_, total| Limit::at_most(total))
    }
}

impl Device {
    /// Returns the NIC's properties (DEV_INFO_GET, GET_DEV_PROPERTIES), with those that sysfs adds
    /// where there is one.
    ///
    /// ```
    /// # use cxi::Device;
    /// # use cxi_mock::{Credentials, Nic, NicConfig};
    /// # let nic = Nic::new(NicConfig::new())?;
    /// # let file = nic.open()?.transport(Credentials::user(1000, 1000));
    /// # let device = Device::cxi0(file);
    /// let info = device.info()?;
    /// assert_eq!(info.cassini_version.to_string(), "Cassini 2.0");
    /// assert!(info.link_up);
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// EIO if the device has been removed.
    #[doc(alias = "cxil_devinfo")]
    pub fn info(&self) -> Result<DeviceInfo> {
        let info = self.call(&DevInfoGetCmd::new(), |_| None)?;
        let properties = self.fresh_properties()?;
        let directory = self.directory();
        Ok(DeviceInfo {
            device: self.id(),
            nid: info.nid,
            nid_configured: properties.nid_configured,
            cassini_version: CassiniVersion(info.cassini_version),
            system_type: info.system_type_identifier,
            platform: Platform::from_kernel(info.device_platform),
            device_rev: info.device_rev,
            device_proto: info.device_proto,
            vendor_id: info.vendor_id,
            device_id: info.device_id,
            uc_nic: info.uc_nic,
            description: description(&info),
            link_up: info.link_state != 0,
            link_speed: info.link_speed,
            link_mtu: info.link_mtu,
            retry_handler_eq: info.pct_eq,
            pid_bits: info.pid_bits,
            pid_count: info.pid_count,
            pid_granule: info.pid_granule,
            rdzv_get_idx: info.rdzv_get_idx,
            rdzv_get_enabled: properties.info.rdzv_get_en != 0,
            min_free_shift: info.min_free_shift,
            amo_remap_to_pcie_fadd: properties.info.amo_remap_to_pcie_fadd.try_into().ok(),
            totals: ResourceMap::from([
                info.num_ptes,
                info.num_txqs,
                info.num_tgqs,
                info.num_eqs,
                info.num_cts,
                info.num_les,
                info.num_tles,
                info.num_acs,
            ]),
            pci_address: directory.and_then(NicDirectory::pci_address),
            driver: directory.and_then(NicDirectory::driver),
            virtual_function: directory.and_then(NicDirectory::virtual_function),
            numa_node: directory.and_then(NicDirectory::numa_node),
            local_cpus: directory.and_then(NicDirectory::local_cpus),
        })
    }
}

fn description(info: &DevInfoUse) -> Option<String> {
    let bytes = info.fru_description.split(|byte| *byte == 0).next()?;
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim();
    (!text.is_empty() && text != "Not Available").then(|| text.to_owned())
}
