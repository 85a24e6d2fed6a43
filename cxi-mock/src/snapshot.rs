//! What outlives open files: services, profiles, pools, identifiers.
//!
//! A snapshot consists of the driver's own types, as they are when no file is open. It may come
//! from outside: each number, limit and reference is checked before anything is made of it, so that
//! a restored NIC is one that a driver could have.

use std::collections::BTreeMap;
use std::sync::Arc;

use cxi_ioctl::Errno;

use crate::data_path::Wire;
use crate::nic::{Group, Pools, Profile, Rx, Tx};
use crate::{LoadError, MockNode, Nic, NicConfig};

/// Format of the snapshots that this version writes and reads.
const SNAPSHOT_VERSION: u32 = 1;

/// The persistent state of a node.
///
/// Open files are not included: a restored node is as it would be after the last file was closed
/// and all cleanup was done.
///
/// ```
/// use cxi_mock::{MockNode, NicConfig};
///
/// let node = MockNode::with_nics(2, &NicConfig::new())?;
/// let again = MockNode::restore(&node.snapshot()).unwrap();
/// assert_eq!(again.nics()[1].state(), node.nics()[1].state());
/// # Ok::<_, cxi_mock::LoadError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct NodeSnapshot {
    /// Checked first, to tell another version from a damaged file.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "supported"))]
    version: u32,
    /// The NICs in order.
    pub nics: Vec<NicSnapshot>,
}

#[cfg(feature = "serde")]
fn supported<'de, D: serde::Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    match serde::Deserialize::deserialize(from)? {
        SNAPSHOT_VERSION => Ok(SNAPSHOT_VERSION),
        found => Err(serde::de::Error::custom(format!(
            "the snapshot has format {found}: this version reads format {SNAPSHOT_VERSION}"
        ))),
    }
}

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
    /// Pools that are taken, leaked ones included.
    pub(crate) pools: Pools,
}

/// Why a snapshot cannot be restored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The driver does not load with its configuration.
    #[error("the snapshot's configuration is bad: {0}")]
    Config(#[from] LoadError),
    /// It contradicts itself.
    #[error("the snapshot contradicts itself: {0}")]
    Inconsistent(#[from] Inconsistency),
}

/// What is inconsistent in a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Inconsistency {
    /// The default service is missing.
    #[error("service 1, the default service, is missing")]
    NoDefaultService,
    /// A number that is out of range, or occurs twice.
    #[error("{what} {id} is out of range or in use twice")]
    Number {
        /// What it is the number of.
        what: &'static str,
        /// The number.
        id: u32,
    },
    /// A service keeps a profile that does not exist.
    #[error("service {service} keeps profile {profile}, which does not exist")]
    NoProfile {
        /// The service.
        service: u32,
        /// The profile.
        profile: u32,
    },
    /// Reservations exceed what there is.
    #[error("service {service} reserves more than the NIC has left, or its limits are invalid")]
    Limits {
        /// The service.
        service: u32,
    },
    /// An access entry that the driver would refuse.
    #[error("access entries of {what} {id}: {errno}")]
    Access {
        /// What the entries belong to.
        what: &'static str,
        /// Which one.
        id: u32,
        /// The driver's error.
        errno: Errno,
    },
    /// VNIs of a profile are already taken.
    #[error(
        "profile {id} has VNI {vni}, which conflicts with another profile or does not start a block"
    )]
    Vni {
        /// The profile.
        id: u32,
        /// Its VNI.
        vni: u16,
    },
}

impl MockNode {
    /// Returns what outlives open files.
    #[must_use]
    pub fn snapshot(&self) -> NodeSnapshot {
        NodeSnapshot {
            version: SNAPSHOT_VERSION,
            nics: self.nics().iter().map(|nic| nic.snapshot()).collect(),
        }
    }

    /// Restores a node, without open files.
    ///
    /// # Errors
    ///
    /// The snapshot contradicts itself, or a configuration is bad.
    pub fn restore(snapshot: &NodeSnapshot) -> Result<Self, SnapshotError> {
        Self::restore_on(snapshot, &Arc::default())
    }

    /// Restores a node that shares a wire with others.
    pub(crate) fn restore_on(
        snapshot: &NodeSnapshot,
        wire: &Arc<Wire>,
    ) -> Result<Self, SnapshotError> {
        let nics = snapshot.nics.iter().map(Nic::restore);
        Ok(Self::connected(nics.collect::<Result<_, _>>()?, wire))
    }
}
