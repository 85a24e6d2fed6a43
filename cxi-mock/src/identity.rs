//! Identity of a NIC.

use cxi_ioctl::PciAddress;
use cxi_ioctl::abi::device::{CASSINI_2_0, PLATFORM_NETSIM};

/// Identity of a NIC, as DEV_INFO_GET, GET_DEV_PROPERTIES and sysfs report it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Identity {
    /// NIC address on the fabric.
    pub nid: u32,
    /// `true` if the NIC address has been set.
    pub nid_configured: bool,
    /// The PCI address.
    pub pci_address: PciAddress,
    /// PCI vendor.
    pub vendor_id: u32,
    /// PCI device.
    pub device_id: u32,
    /// ASIC version, see the `CASSINI_*` of [`cxi_ioctl::abi::device`].
    pub cassini_version: u32,
    /// Cassini generations present in the system: 1, 2, or 0 for both.
    pub system_type_identifier: u32,
    /// ASIC revision.
    pub device_rev: u32,
    /// ASIC protocol revision.
    pub device_proto: u32,
    /// Platform: 0 for the ASIC, which programs do not use without a retry handler, 1 for NETSIM,
    /// which is the honest value for a mock.
    pub device_platform: u32,
    /// NIC index on its card.
    pub uc_nic: i32,
    /// MTU in bytes.
    pub link_mtu: u64,
    /// Link speed in Mbit/s.
    pub link_speed: u64,
    /// `true` if the link is up.
    pub link_up: bool,
    /// Part description; DEV_INFO_GET truncates it to 14 bytes.
    pub fru_description: String,
    /// Fetching atomic that is mapped to a PCIe fetch-add, -1 for none.
    pub amo_remap_to_pcie_fadd: i32,
}

impl Default for Identity {
    fn default() -> Self {
        Self {
            nid: 0x100,
            nid_configured: true,
            pci_address: PciAddress { domain: 0, bus: 0x41, device: 0, function: 0 },
            vendor_id: 0x1590,
            device_id: 0x0371,
            cassini_version: CASSINI_2_0,
            system_type_identifier: 2,
            device_rev: 1,
            device_proto: 1,
            device_platform: PLATFORM_NETSIM,
            uc_nic: 0,
            link_mtu: 2112,
            link_speed: 400_000,
            link_up: true,
            fru_description: "Mock Cassini 2".to_owned(),
            amo_remap_to_pcie_fadd: -1,
        }
    }
}
