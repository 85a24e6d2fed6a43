//! State that outlives the open files of a NIC: services, profiles, pools, identifiers.
//!
//! A snapshot consists of the driver's own types, as they are when no file is open. It may come
//! from outside: each number, limit and reference is checked before anything is made of it, so that
//! a restored NIC is one that a driver could have.

use std::collections::BTreeMap;

use super::inconsistency::Inconsistency;
use super::parts::group::Group;
use super::parts::pools::Pools;
use super::parts::profile::{Profile, Rx, Tx};
use crate::{LoadError, NicConfig};

/// The persistent state of a NIC.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct NicSnapshot {
    /// The NIC's configuration.
    pub config: NicConfig,
    /// By id.
    pub(crate) services: BTreeMap<u32, Group>,
    /// By id.
    pub(crate) tx_profiles: BTreeMap<u32, Profile<Tx>>,
    /// By id.
    pub(crate) rx_profiles: BTreeMap<u32, Profile<Rx>>,
    /// Pools that are taken, including leaked ones.
    pub(crate) pools: Pools,
}

/// Reason for which a snapshot cannot be restored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The driver does not load with its configuration.
    #[error("invalid configuration in the snapshot: {0}")]
    Config(#[from] LoadError),
    /// It contradicts itself.
    #[error("the snapshot contradicts itself: {0}")]
    Inconsistent(#[from] Inconsistency),
}
