//! The device: what it is and what it has.

use super::memory::Mminfo;
use super::service::RsrcLimits;
use crate::layout::{abi, commands, constants};

/// Platform: the ASIC.
pub const PLATFORM_ASIC: u32 = 0;
/// Platform: the NETSIM simulator.
pub const PLATFORM_NETSIM: u32 = 1;
/// Platform: the Z1 emulator.
pub const PLATFORM_Z1: u32 = 2;

constants! {
    /// Cassini 1, any stepping.
    CASSINI_1: u32 = 0x10, "CASSINI_1";
    /// Cassini 1.0.
    CASSINI_1_0: u32 = 0x11, "CASSINI_1_0";
    /// Cassini 1.1.
    CASSINI_1_1: u32 = 0x12, "CASSINI_1_1";
    /// Cassini 2, any stepping.
    CASSINI_2: u32 = 0x20, "CASSINI_2";
    /// Cassini 2.0.
    CASSINI_2_0: u32 = 0x21, "CASSINI_2_0";
    /// System: Cassini 1 and Cassini 2.
    SYSTEM_MIX: u32 = 0, "CASSINI_MIX";
    /// System: Cassini 1 only.
    SYSTEM_ONLY_CASSINI_1: u32 = 1, "CASSINI_1_ONLY";
    /// System: Cassini 2 only.
    SYSTEM_ONLY_CASSINI_2: u32 = 2, "CASSINI_2_ONLY";
}

abi! {
    /// Returns what the device is and has.
    ///
    /// Request of DEV_INFO_GET; open to everyone. libcxi: `cxil_open_device`.
    @answered struct DevInfoGetCmd = "cxi_dev_info_get_cmd", 16 {
    }

    /// Response of DEV_INFO_GET.
    struct DevInfoUse = "cxi_dev_info_use", 120 {
        /// NIC address on the fabric.
        nid: u32 = 0,
        /// Width of a PID in bits.
        pid_bits: u32 = 4,
        /// Number of PIDs.
        pid_count: u32 = 8,
        /// PtlTE offsets per PID.
        pid_granule: u32 = 12,
        /// Shift of the minimum free space of a matching list entry.
        min_free_shift: u32 = 16,
        /// PtlTE offset that rendezvous gets go to.
        rdzv_get_idx: u32 = 20,
        /// PCI vendor.
        vendor_id: u32 = 24,
        /// PCI device.
        device_id: u32 = 28,
        /// ASIC revision.
        device_rev: u32 = 32,
        /// ASIC protocol revision.
        device_proto: u32 = 36,
        /// Platform: 0 ASIC, 1 simulator.
        device_platform: u32 = 40,
        /// Event queue of the retry handler, 0 when none runs.
        pct_eq: u32 = 44,
        /// NIC index on its card, from the microcontroller.
        uc_nic: i32 = 48 + 4,
        /// MTU in bytes.
        link_mtu: u64 = 56,
        /// Link speed in Mbit/s.
        link_speed: u64 = 64,
        /// Non-zero: the link is up.
        link_state: u8 = 72 + 1,
        /// PtlTEs in total.
        num_ptes: u16 = 74,
        /// TXQs in total.
        num_txqs: u16 = 76,
        /// TGQs in total.
        num_tgqs: u16 = 78,
        /// EQs in total.
        num_eqs: u16 = 80,
        /// CTs in total.
        num_cts: u16 = 82,
        /// ACs in total.
        num_acs: u16 = 84,
        /// TLEs in total.
        num_tles: u16 = 86,
        /// LEs in total, for each processing element.
        num_les: u16 = 88,
        /// Part description, NUL terminated, cut to 14 characters.
        fru_description: [u8; 16] = 90 + 2,
        /// ASIC version, see `CASSINI_*`.
        cassini_version: u32 = 108,
        /// Cassini generations present in the system.
        system_type_identifier: u32 = 112 + 4,
    }

    /// Returns the properties of the device, in one of two lengths: use
    /// [`dev_properties`](crate::dev_properties).
    ///
    /// Request of GET_DEV_PROPERTIES; open to everyone.
    @answered struct GetDevPropertiesCmd = "cxi_get_dev_properties_cmd", 16 {
    }

    /// Response of GET_DEV_PROPERTIES.
    struct PropertiesInfo = "cxi_properties_info", 84, since Shs13_1 {
        /// NIC address on the fabric.
        nid: u32 = 0,
        /// Non-zero: the NIC address has been set.
        nid_configured: u8 = 4 + 3,
        /// Width of a PID in bits.
        pid_bits: u32 = 8,
        /// Number of PIDs.
        pid_count: u32 = 12,
        /// PtlTE offsets per PID.
        pid_granule: u32 = 16,
        /// Shift of the minimum free space of a matching list entry.
        min_free_shift: u32 = 20,
        /// PtlTE offset that rendezvous gets go to.
        rdzv_get_idx: u32 = 24,
        /// Resources.
        rsrcs: RsrcLimits = 28,
        /// ASIC revision.
        device_rev: u32 = 60,
        /// ASIC protocol revision.
        device_proto: u32 = 64,
        /// Platform: 0 ASIC, 1 simulator.
        device_platform: u32 = 68,
        /// ASIC version, see `CASSINI_*`.
        cassini_version: u32 = 72,
        /// Non-zero: rendezvous gets are enabled.
        rdzv_get_en: u8 = 76 + 3,
        /// Fetching atomic that is mapped to a PCIe fetch-add, -1 for none.
        amo_remap_to_pcie_fadd: i32 = 80,
    }

    /// Response of GET_DEV_PROPERTIES up to SHS 13.0.
    struct PropertiesInfoV1 = "cxi_properties_info", 80, until Shs13_0 {
        /// NIC address on the fabric.
        nid: u32 = 0,
        /// Width of a PID in bits.
        pid_bits: u32 = 4,
        /// Number of PIDs.
        pid_count: u32 = 8,
        /// PtlTE offsets per PID.
        pid_granule: u32 = 12,
        /// Shift of the minimum free space of a matching list entry.
        min_free_shift: u32 = 16,
        /// PtlTE offset that rendezvous gets go to.
        rdzv_get_idx: u32 = 20,
        /// Resources.
        rsrcs: RsrcLimits = 24,
        /// ASIC revision.
        device_rev: u32 = 56,
        /// ASIC protocol revision.
        device_proto: u32 = 60,
        /// Platform: 0 ASIC, 1 simulator.
        device_platform: u32 = 64,
        /// ASIC version, see `CASSINI_*`.
        cassini_version: u32 = 68,
        /// Non-zero: rendezvous gets are enabled.
        rdzv_get_en: u8 = 72 + 3,
        /// Fetching atomic that is mapped to a PCIe fetch-add, -1 for none.
        amo_remap_to_pcie_fadd: i32 = 76,
    }

    /// Returns the window of all registers.
    ///
    /// Request of MAP_CSRS; privilege: CAP_SYS_ADMIN on a physical function. libcxi:
    /// `cxil_map_csr`.
    ///
    /// Errors:
    /// - EALREADY: mapped in this open file
    @answered struct MapCsrsCmd = "cxi_map_csrs_cmd", 16 {
    }

    /// Waits until everything that has arrived is in memory.
    ///
    /// Request of INBOUND_WAIT; open to everyone. libcxi: `cxil_inbound_wait`.
    @command struct InboundWaitCmd = "cxi_inbound_wait_cmd", 4 {
    }
}

commands! {
    DevInfoGetCmd: DEV_INFO_GET -> DevInfoUse, response at 8;
    GetDevPropertiesCmd: GET_DEV_PROPERTIES -> PropertiesInfo, response at 8;
    #[unchecked] MapCsrsCmd: MAP_CSRS -> Mminfo, response at 8;
    InboundWaitCmd: INBOUND_WAIT -> ();
}
