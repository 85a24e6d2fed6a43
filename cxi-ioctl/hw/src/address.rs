//! Addresses on the fabric, and who sends.

use crate::value::newtypes;
use crate::{PtlteState, StateReason};

/// Bits of a NIC address.
pub const NID_BITS: u32 = 20;
/// Bits of an address below the NIC's.
pub const ENDPOINT_DEFINED_BITS: u32 = 12;
/// Bits of a portal index that travel separately from the address.
const INDEX_EXT_BITS: u32 = 5;
/// Bits of the number of a multicast tree.
pub const MULTICAST_ID_BITS: u32 = 13;

/// A destination: NIC address, PID and the upper bits of the portal index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FabricAddress(pub u32);

impl FabricAddress {
    /// The address and the index extension of a portal index of a PID.
    #[must_use]
    pub const fn unicast(nid: u32, pid: u32, index: u32, pid_bits: u32) -> (Self, u8) {
        let endpoint = (index >> INDEX_EXT_BITS << pid_bits) | pid;
        let ext = index & ((1 << INDEX_EXT_BITS) - 1);
        // Five bits.
        #[allow(clippy::cast_possible_truncation)]
        let ext = ext as u8;
        let endpoint = endpoint & ((1 << ENDPOINT_DEFINED_BITS) - 1);
        (Self(nid << ENDPOINT_DEFINED_BITS | endpoint), ext)
    }

    /// The NIC address.
    #[must_use]
    pub const fn nid(self) -> u32 {
        self.0 >> ENDPOINT_DEFINED_BITS
    }

    /// The PID.
    #[must_use]
    pub const fn pid(self, pid_bits: u32) -> u32 {
        self.0 & ((1 << pid_bits) - 1)
    }

    /// The portal index, with the extension that the command has.
    #[must_use]
    pub const fn index(self, index_ext: u8, pid_bits: u32) -> u32 {
        let defined = self.0 & ((1 << ENDPOINT_DEFINED_BITS) - 1);
        (defined >> pid_bits << INDEX_EXT_BITS) | index_ext as u32
    }

    /// The address of a multicast tree (13 bits), for one of its reductions (3 bits).
    #[must_use]
    pub const fn multicast(id: u16, reduction: u8) -> Self {
        let id = (id as u32 & ((1 << MULTICAST_ID_BITS) - 1)) << 3;
        Self(0x1ff << 23 | (reduction as u32 & 7) << 18 | id | 7)
    }

    /// The multicast tree.
    #[must_use]
    pub const fn multicast_id(self) -> u32 {
        self.0 >> 3 & ((1 << MULTICAST_ID_BITS) - 1)
    }

    /// Number of the reduction within the multicast tree.
    #[must_use]
    pub const fn reduction(self) -> u8 {
        self.0.to_le_bytes()[2] >> 2 & 7
    }

    /// Returns whether this is a multicast tree and not a NIC.
    #[must_use]
    pub const fn is_multicast(self) -> bool {
        self.0 >> 23 == 0x1ff && self.0 & 7 == 7
    }
}

/// Identity of a sender: a PID above a NIC address or rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MatchId(pub u32);

impl MatchId {
    /// Any initiator.
    pub const ANY: Self = Self(u32::MAX);

    /// A PID of a NIC or rank.
    #[must_use]
    pub const fn new(pid: u32, id: u32, pid_bits: u32) -> Self {
        Self(pid << (32 - pid_bits) | (id & (u32::MAX >> pid_bits)))
    }

    /// The PID.
    #[must_use]
    pub const fn pid(self, pid_bits: u32) -> u32 {
        self.0 >> (32 - pid_bits)
    }

    /// The NIC address or rank.
    #[must_use]
    pub const fn id(self, pid_bits: u32) -> u32 {
        self.0 & (u32::MAX >> pid_bits)
    }
}

/// Cause of a state change, in the place of the initiator in a STATE_CHANGE event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StateChange {
    /// The state reached.
    pub state: PtlteState,
    /// Reason, if the NIC changed the state.
    pub reason: StateReason,
    /// The NIC did it.
    pub by_nic: bool,
}

impl StateChange {
    /// The fields in that word.
    #[must_use]
    pub const fn decode(word: u32) -> Self {
        let [state, reason, auto, _] = word.to_le_bytes();
        Self {
            state: PtlteState(state & 7),
            reason: StateReason(reason & 15),
            by_nic: auto & 1 != 0,
        }
    }

    /// The word of the fields.
    #[must_use]
    pub const fn encode(self) -> u32 {
        u32::from_le_bytes([self.state.0 & 7, self.reason.0 & 15, self.by_nic as u8, 0])
    }
}

newtypes!(FabricAddress MatchId);
