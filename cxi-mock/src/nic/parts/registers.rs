//! The few registers of the hardware that the driver reads.

use std::collections::BTreeMap;

/// What the hardware reports.
#[derive(Debug, Default)]
pub(crate) struct Registers {
    /// Commands in flight by command queue number; absent for a quiet queue.
    pub(crate) in_flight: BTreeMap<u32, u32>,
    /// TLEs in use by pool.
    pub(crate) tles_in_use: [u16; 4],
    /// LEs allocated by processing element and pool.
    pub(crate) les_allocated: [[u16; 16]; 4],
    /// The link, if it changed since the driver was loaded.
    pub(crate) link_up: Option<bool>,
    /// The NIC address, if it changed since the driver was loaded.
    pub(crate) nid: Option<u32>,
    /// Whether rendezvous gets are on, if that was changed.
    pub(crate) rdzv_get_en: Option<bool>,
    /// The fetching atomic that is mapped to a PCIe fetch-add, if that was changed.
    pub(crate) amo_remap_to_pcie_fadd: Option<i32>,
}
