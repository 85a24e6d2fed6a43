//! What outlives open files: services, profiles, pools, identifiers.

use std::sync::Arc;

use cxi_ioctl::Errno;

use crate::data_path::Wire;
use crate::{Access, Held, LoadError, MockNode, Nic, NicConfig};

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
    /// Format.
    pub version: u32,
    /// The NICs in order.
    pub nics: Vec<NicSnapshot>,
}

/// The start of any snapshot, whatever its version: read it first, to tell another version from a
/// damaged file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct SnapshotHeader {
    /// Format.
    pub version: u32,
}

impl SnapshotHeader {
    /// Checks whether the rest can be read.
    ///
    /// # Errors
    ///
    /// [`SnapshotError::Version`].
    pub fn check(self) -> Result<(), SnapshotError> {
        if self.version == SNAPSHOT_VERSION {
            Ok(())
        } else {
            Err(SnapshotError::Version {
                found: self.version,
            })
        }
    }
}

/// The persistent state of a NIC.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct NicSnapshot {
    /// The NIC's configuration.
    pub config: NicConfig,
    /// Services, oldest first.
    pub services: Vec<ServiceSnapshot>,
    /// Transmit profiles by id.
    pub tx_profiles: Vec<TxProfileSnapshot>,
    /// Receive profiles by id.
    pub rx_profiles: Vec<RxProfileSnapshot>,
    /// LE pools taken on each processing element, a bit each, leaked ones included.
    pub le_pools: [u32; 4],
    /// TLE pools taken, a bit each.
    pub tle_pools: u32,
}

/// A service and its resource group.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ServiceSnapshot {
    /// Id.
    pub id: u32,
    /// Flags and counter pool, as in the kernel's descriptor.
    pub flags: u8,
    /// Recorded number of VNIs.
    pub num_vld_vnis: u8,
    /// Recorded VNIs.
    pub vnis: [u16; 4],
    /// Recorded traffic classes.
    pub tcs: [u8; 5],
    /// Recorded members: type and id.
    pub members: [(u32, u32); 2],
    /// Limits: maximum and reservation by resource, in the kernel's order.
    pub limits: [(u16, u16); 8],
    /// Whether it is enabled.
    pub enabled: bool,
    /// Who may use it.
    pub access: Vec<Access>,
    /// How many LNIs may share an RGID.
    pub lnis_per_rgid: u32,
    /// Whether it is a system service.
    pub system: bool,
    /// Counter pool when it was made.
    pub cntr_pool_id: u32,
    /// LE pool on each processing element.
    pub le_pools: Option<[u8; 4]>,
    /// TLE pool.
    pub tle_pool: Option<u8>,
    /// Transmit and receive profile for each VNI, or for the range.
    pub profiles: [(Held, Held); 4],
}

/// A transmit profile.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct TxProfileSnapshot {
    /// Id.
    pub id: u32,
    /// VNI, or first of the range.
    pub vni: u16,
    /// Bits of the VNI that are ignored.
    pub ignore: u16,
    /// Who may use it.
    pub access: Vec<Access>,
    /// Whether it is enabled.
    pub enabled: bool,
    /// Traffic classes.
    pub tcs: [bool; 5],
    /// Whether every LNI gets a communication profile of its own.
    pub exclusive_cp: bool,
}

/// A receive profile.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct RxProfileSnapshot {
    /// Id.
    pub id: u32,
    /// VNI, or first of the range.
    pub vni: u16,
    /// Bits of the VNI that are ignored.
    pub ignore: u16,
    /// Who may use it.
    pub access: Vec<Access>,
    /// Whether it is enabled.
    pub enabled: bool,
    /// Slot of the VNI table.
    pub vni_slot: Option<u32>,
}

/// Why a snapshot cannot be restored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// It was written by another version.
    #[error("the snapshot has format {found}: this version reads format {SNAPSHOT_VERSION}")]
    Version {
        /// Its format.
        found: u32,
    },
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
    #[error("there is no service 1, the default one")]
    NoDefaultService,
    /// A number that is out of range, or occurs twice.
    #[error("{what} {id} is out of range or there twice")]
    Number {
        /// What it is the number of.
        what: &'static str,
        /// The number.
        id: u32,
    },
    /// A service keeps a profile that does not exist.
    #[error("service {service} keeps profile {profile}, which is not there")]
    NoProfile {
        /// The service.
        service: u32,
        /// The profile.
        profile: u32,
    },
    /// Reservations exceed what there is.
    #[error("service {service} reserves more than there is, or has limits that cannot be")]
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
    #[error("profile {id} has VNI {vni}, which conflicts with another one's or is not a block")]
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
    /// The snapshot is of another version or contradicts itself.
    pub fn restore(snapshot: &NodeSnapshot) -> Result<Self, SnapshotError> {
        Self::restore_on(snapshot, &Arc::default())
    }

    /// Restores a node that shares a wire with others.
    pub(crate) fn restore_on(
        snapshot: &NodeSnapshot,
        wire: &Arc<Wire>,
    ) -> Result<Self, SnapshotError> {
        SnapshotHeader {
            version: snapshot.version,
        }
        .check()?;
        let nics = snapshot.nics.iter().map(Nic::restore);
        Ok(Self::connected(nics.collect::<Result<_, _>>()?, wire))
    }
}
