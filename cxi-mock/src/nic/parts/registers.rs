//! The few registers of the hardware that the driver reads.

use std::collections::BTreeMap;

use super::link::Link;
use crate::NicConfig;

/// Reports of the hardware. Initially, this is what the configuration says.
#[derive(Debug)]
pub(crate) struct Registers {
    /// Commands in flight by command queue number; absent for a quiet queue.
    pub(crate) in_flight: BTreeMap<u32, u32>,
    /// TLEs in use by pool.
    pub(crate) tles_in_use: [u16; 4],
    /// LEs allocated by processing element and pool.
    pub(crate) les_allocated: [[u16; 16]; 4],
    pub(crate) link: Link,
    /// The NIC address.
    pub(crate) nid: u32,
    /// `true` if rendezvous gets are on.
    pub(crate) rdzv_get_en: bool,
    /// The fetching atomic that is mapped to a PCIe fetch-add.
    pub(crate) amo_remap_to_pcie_fadd: i32,
}

impl Registers {
    pub(crate) fn new(config: &NicConfig) -> Self {
        Self {
            in_flight: BTreeMap::new(),
            tles_in_use: [0; 4],
            les_allocated: [[0; 16]; 4],
            link: Link::new(config.identity.link_up),
            nid: config.identity.nid,
            rdzv_get_en: config.params.rdzv_get_en_default,
            amo_remap_to_pcie_fadd: config.identity.amo_remap_to_pcie_fadd,
        }
    }
}
