//! State that outlives the open files of a node's NICs.

use std::sync::Arc;

use crate::data_path::Wire;
use crate::{MockNode, Nic, NicSnapshot, SnapshotError};

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
/// # Ok::<_, Box<dyn std::error::Error>>(())
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
