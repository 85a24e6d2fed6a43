//! Nodes of systems that people have.

use clap::ValueEnum;
use cxi_ioctl::PciAddress;
use cxi_ioctl::abi::device::PLATFORM_ASIC;
use cxi_mock::{Card, NicConfig};

use super::topology::{NICS, Topology};

/// A system, whose nodes all have four NICs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum System {
    /// Frontier and LUMI: HPE Cray EX235a, four Cassini 1, each at an accelerator
    #[value(alias = "lumi")]
    Frontier,
    /// Alps: HPE Cray EX254n, four superchips of an Arm processor and an accelerator, four Cassini 1
    Alps,
    /// El Capitan: HPE Cray EX255a, four accelerated processors, four Cassini 2
    ElCapitan,
}

impl System {
    /// Returns the places of a node's NICs.
    pub(crate) const fn topology(self) -> Topology {
        match self {
            Self::Frontier => Topology::Ex235a,
            Self::Alps => Topology::Ex254n,
            Self::ElCapitan => Topology::Ex255a,
        }
    }

    const fn card(self) -> Card {
        match self {
            Self::Frontier | Self::Alps => Card::Cassini1,
            Self::ElCapitan => Card::Cassini2,
        }
    }

    /// The PCI domain and bus of each NIC.
    const fn addresses(self) -> [(u32, u8); NICS as usize] {
        match self {
            Self::Frontier => [(0, 0xc5), (0, 0xcd), (0, 0xd5), (0, 0xdd)],
            // Each superchip has its own domains.
            Self::Alps => [(0x00, 1), (0x10, 1), (0x20, 1), (0x30, 1)],
            Self::ElCapitan => [(0, 0x01), (1, 0x01), (2, 0x01), (3, 0x01)],
        }
    }

    /// The NICs of a node.
    pub(crate) fn nics(self, base: &NicConfig) -> Vec<NicConfig> {
        let nid = base.identity.nid;
        let nics = (0_u8..).zip(self.addresses()).map(|(index, (domain, bus))| {
            base.clone().card(self.card()).retry_handler().identity(|identity| {
                identity.device_platform = PLATFORM_ASIC;
                identity.nid = nid.wrapping_add(index.into());
                identity.uc_nic = index.into();
                identity.pci_address = PciAddress { domain, bus, device: 0, function: 0 };
            })
        });
        nics.collect()
    }
}
