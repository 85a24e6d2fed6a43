//! Several nodes on one fabric.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::data_path::Wire;
use crate::{Clock, Fabric, LoadError, MockNode, NicConfig, NodeSnapshot, SnapshotError};

/// Nodes whose NICs share a [`Fabric`], for what a scheduler does on several nodes.
///
/// Nodes are numbered from 0. Faults of a node are set here, those of a NIC at the NIC
/// ([`Faults::unplug`](crate::Faults::unplug), [`Hardware::set_link`](crate::Hardware::set_link)),
/// and those of packets at the [`fabric`](Self::fabric).
///
/// ```
/// use cxi_mock::{Credentials, MockCluster, NicConfig};
///
/// let cluster = MockCluster::with_nics(256, 2, &NicConfig::new())?;
/// let before = cluster.node(7).unwrap();
/// let open = before.devices(&Credentials::root())?;
/// cluster.kill(7);
/// // Nothing is open any more, and all that was open gives EIO.
/// assert!(before.nics()[0].clients_of(None).is_empty());
/// cluster.boot(7)?;
/// assert!(cluster.node(7).unwrap().devices(&Credentials::root()).is_ok());
/// # drop(open);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct MockCluster {
    wire: Arc<Wire>,
    nodes: Vec<Member>,
}

/// A node that is up or down.
#[derive(Debug)]
struct Member {
    configs: Vec<NicConfig>,
    node: Mutex<Power>,
}

/// The node as it was last booted, and whether it is up.
#[derive(Debug)]
struct Power {
    node: Arc<MockNode>,
    up: bool,
}

impl Member {
    fn power(&self) -> MutexGuard<'_, Power> {
        self.node.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Power {
    fn die(&mut self) {
        if std::mem::take(&mut self.up) {
            for nic in self.node.nics() {
                nic.power_off();
            }
        }
    }
}

/// Reason for which there is no such cluster.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// Two NICs have the same address.
    #[error(
        "NIC {nic} of node {node} has the fabric address {nid:#x}, which NIC {other_nic} of node \
         {other_node} has: expected a different address for each NIC"
    )]
    AddressTaken {
        /// The address.
        nid: u32,
        /// Number of the node.
        node: usize,
        /// Number of its NIC.
        nic: usize,
        /// Number of the node before it.
        other_node: usize,
        /// Number of that one's NIC.
        other_nic: usize,
    },
    /// There is no address for a NIC.
    #[error(
        "{nodes} nodes with {nics} NICs each from fabric address {first:#x} on do not fit: \
         expected addresses up to 0xfffff"
    )]
    TooManyNics {
        /// Nodes.
        nodes: u16,
        /// NICs of each.
        nics: u8,
        /// Address of the first NIC.
        first: u32,
    },
    /// A driver does not load.
    #[error("cannot load the driver of node {node}: {source}")]
    Load {
        /// Number of the node.
        node: usize,
        /// The cause.
        source: LoadError,
    },
    /// A snapshot is of another version or contradicts itself.
    #[error("cannot restore node {node}: {source}")]
    Restore {
        /// Number of the node.
        node: usize,
        /// The cause.
        source: SnapshotError,
    },
    /// There is no such node.
    #[error("no node {node}: the cluster has {count}, counted from 0")]
    NoSuchNode {
        /// Number that was asked for.
        node: usize,
        /// Nodes that there are.
        count: usize,
    },
}

/// Fabric addresses have 20 bits.
const LAST_NID: u32 = 0xf_ffff;

impl MockCluster {
    /// Nodes with this many NICs each, which differ only in their addresses. On the fabric, the
    /// NICs have consecutive addresses from that of `config` on, node by node. On its node, each
    /// has the PCI address that it has in [`MockNode::with_nics`].
    ///
    /// # Errors
    ///
    /// [`ClusterError`]: the addresses do not suffice, or the driver does not load.
    pub fn with_nics(nodes: u16, nics: u8, config: &NicConfig) -> Result<Self, ClusterError> {
        let first = config.identity.nid;
        let count = u32::from(nodes) * u32::from(nics);
        if u64::from(first) + u64::from(count) > u64::from(LAST_NID) + 1 {
            return Err(ClusterError::TooManyNics { nodes, nics, first });
        }
        Self::new((0..u32::from(nodes)).map(|node| {
            let config = config.clone().identity(|identity| {
                identity.nid += node * u32::from(nics);
            });
            config.alike(nics).collect::<Vec<_>>()
        }))
    }

    /// Nodes with these NICs.
    ///
    /// # Errors
    ///
    /// [`ClusterError`]: an address occurs twice, or a driver does not load.
    pub fn new(nodes: impl IntoIterator<Item = Vec<NicConfig>>) -> Result<Self, ClusterError> {
        Self::assemble(nodes.into_iter().collect(), load)
    }

    /// Restores nodes, all of them up and without open files.
    ///
    /// ```
    /// use cxi_mock::{MockCluster, NicConfig};
    ///
    /// let cluster = MockCluster::with_nics(4, 2, &NicConfig::new())?;
    /// let again = MockCluster::restore(&cluster.snapshot())?;
    /// assert_eq!(again.snapshot(), cluster.snapshot());
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ClusterError`]: as [`new`](Self::new), or a snapshot is wrong.
    pub fn restore(nodes: &[NodeSnapshot]) -> Result<Self, ClusterError> {
        let configs =
            |node: &NodeSnapshot| node.nics.iter().map(|nic| nic.config.clone()).collect();
        Self::assemble(nodes.iter().map(configs).collect(), |node, _, wire| {
            let restored = MockNode::restore_on(&nodes[node], wire);
            let restored = restored.map_err(|source| ClusterError::Restore { node, source })?;
            Ok(Arc::new(restored))
        })
    }

    /// Nodes with NICs of these configurations, as `make` makes them by number.
    fn assemble(
        nodes: Vec<Vec<NicConfig>>,
        make: impl Fn(usize, &[NicConfig], &Arc<Wire>) -> Result<Arc<MockNode>, ClusterError>,
    ) -> Result<Self, ClusterError> {
        let wire = Arc::new(Wire::new(Fabric::unreliable()));
        let mut taken = BTreeMap::new();
        for (node, configs) in nodes.iter().enumerate() {
            for (nic, config) in configs.iter().enumerate() {
                let nid = config.identity.nid;
                if let Some((other_node, other_nic)) = taken.insert(nid, (node, nic)) {
                    return Err(ClusterError::AddressTaken {
                        nid,
                        node,
                        nic,
                        other_node,
                        other_nic,
                    });
                }
            }
        }
        let member = |(node, configs): (usize, Vec<NicConfig>)| {
            let power = Power { node: make(node, &configs, &wire)?, up: true };
            let node = Mutex::new(power);
            Ok(Member { configs, node })
        };
        let nodes = nodes.into_iter().enumerate().map(member);
        Ok(Self { nodes: nodes.collect::<Result<_, _>>()?, wire })
    }

    /// Returns the number of nodes, up or not.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns whether there are no nodes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// A node as it was booted last. If it is down, its NICs answer EIO.
    #[must_use]
    pub fn node(&self, node: usize) -> Option<Arc<MockNode>> {
        let member = self.nodes.get(node)?;
        Some(Arc::clone(&member.power().node))
    }

    /// Returns whether there is such a node and it runs.
    #[must_use]
    pub fn is_up(&self, node: usize) -> bool {
        let member = self.nodes.get(node);
        member.is_some_and(|member| member.power().up)
    }

    /// Kills a node: all files that are open on its NICs are closed, commands fail with EIO from
    /// now on, and it disappears from the fabric. Nothing happens if it is down.
    pub fn kill(&self, node: usize) {
        if let Some(member) = self.nodes.get(node) {
            member.power().die();
        }
    }

    /// Boots a node, after killing it if it is running. Its NICs have the same addresses and a
    /// newly loaded driver, no service but the default one, and service ids from the start. What
    /// was opened before stays dead.
    ///
    /// # Errors
    ///
    /// [`ClusterError::NoSuchNode`].
    pub fn boot(&self, node: usize) -> Result<Arc<MockNode>, ClusterError> {
        let count = self.nodes.len();
        let no_such_node = ClusterError::NoSuchNode { node, count };
        let member = self.nodes.get(node).ok_or(no_such_node)?;
        let mut power = member.power();
        power.die();
        power.node = load(node, &member.configs, &self.wire)?;
        power.up = true;
        Ok(Arc::clone(&power.node))
    }

    /// Everything of each node that outlives open files. A node that is down comes back as it
    /// boots.
    #[must_use]
    pub fn snapshot(&self) -> Vec<NodeSnapshot> {
        let snapshot = |(number, member): (usize, &Member)| {
            let power = member.power();
            if power.up {
                return power.node.snapshot();
            }
            let booted = load(number, &member.configs, &Arc::default());
            booted.map_or_else(|_| power.node.snapshot(), |node| node.snapshot())
        };
        self.nodes.iter().enumerate().map(snapshot).collect()
    }

    /// Returns the network of the packets, which can lose and delay them.
    #[must_use]
    pub fn fabric(&self) -> &Fabric {
        self.wire.fabric()
    }

    /// Partitions two sets of nodes until the fabric is healed ([`Fabric::heal`]). Numbers without
    /// a node have no effect.
    pub fn partition(&self, one: &[usize], other: &[usize]) {
        let addresses = |nodes: &[usize]| -> Vec<u32> {
            let nodes = nodes.iter().filter_map(|node| self.node(*node));
            nodes.flat_map(|node| node.addresses()).collect()
        };
        self.fabric().partition(addresses(one), addresses(other));
    }

    /// The time of the fabric.
    #[must_use]
    pub fn clock(&self) -> Clock {
        Clock::new(&self.wire)
    }

    /// Executes all commands that were rung on any NIC and what follows from them, with time
    /// passing until nothing waits for an answer.
    pub fn run_until_idle(&self) {
        loop {
            let nodes = (0..self.len()).filter_map(|node| self.node(node));
            let worked = nodes.fold(false, |any, node| {
                node.nics().iter().fold(any, |any, nic| nic.run_until_idle() | any)
            });
            if worked {
                continue;
            }
            if !self.wire.is_busy() {
                return;
            }
            self.wire.tick();
        }
    }
}

fn load(
    node: usize,
    configs: &[NicConfig],
    wire: &Arc<Wire>,
) -> Result<Arc<MockNode>, ClusterError> {
    MockNode::on_wire(configs.iter().cloned(), wire)
        .map(Arc::new)
        .map_err(|source| ClusterError::Load { node, source })
}
