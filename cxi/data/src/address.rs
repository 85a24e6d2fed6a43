//! Addresses of processes on the fabric.

use cxi::DeviceInfo;
use cxi::lni::Domain;
use cxi_hw::{FabricAddress, MatchId};

/// A process on the fabric: the address of its NIC, and its PID there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// Address of the NIC, 20 bits.
    pub nid: u32,
    /// The PID.
    pub pid: u16,
}

impl Address {
    /// The address of a domain of a device.
    #[must_use]
    pub fn new(info: &DeviceInfo, domain: &Domain) -> Self {
        Self { nid: info.nid, pid: domain.pid().get() }
    }

    /// A portal of the process: the offset at which it has mapped a PtlTE.
    #[must_use]
    pub const fn portal(self, index: u16) -> Target {
        Target { address: self, index }
    }

    pub(crate) fn match_id(self, pid_bits: u32) -> MatchId {
        MatchId::new(self.pid.into(), self.nid, pid_bits)
    }

    pub(crate) fn of_initiator(id: MatchId, pid_bits: u32) -> Self {
        Self { nid: id.id(pid_bits), pid: pid(id.pid(pid_bits)) }
    }

    /// The address in a RENDEZVOUS event, which has a fabric address there.
    pub(crate) fn of_source(word: u32, pid_bits: u32) -> Self {
        let source = FabricAddress(word);
        Self { nid: source.nid(), pid: pid(source.pid(pid_bits)) }
    }
}

/// A PID, which has nine bits at most.
fn pid(number: u32) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}

/// Destination of an operation: a portal of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target {
    /// The process.
    pub address: Address,
    /// The portal index.
    pub index: u16,
}

impl Target {
    pub(crate) const fn encode(self, pid_bits: u32) -> (FabricAddress, u8) {
        let Address { nid, pid } = self.address;
        FabricAddress::unicast(nid, pid as u32, self.index as u32, pid_bits)
    }
}
