//! What a node can be asked through its socket.

use serde::{Deserialize, Serialize};

/// What is asked, and of whom.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Request {
    /// Name of a node in a cluster; none for all of it, and where there is one node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<String>,
    pub(crate) order: Order,
}

/// Something that a node is asked to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Order {
    /// Hand over the namespaces.
    Namespaces,
    /// Announce a job that runs until the connection ends; answers its variables.
    Job,
    /// Show what is there and in use.
    State,
    /// Report operations that have ended, from the first such order of a connection on.
    Packets,
    /// The hardware has commands in flight in a transmit queue.
    Txq {
        nic: u16,
        index: u32,
        in_flight: u32,
    },
    /// The hardware has commands in flight in a target queue.
    Tgq {
        nic: u16,
        index: u32,
        in_flight: u32,
    },
    /// The hardware has TLEs of a pool in use.
    Tles { nic: u16, pool: u32, in_use: u16 },
    /// The hardware has LEs of a pool allocated.
    Les {
        nic: u16,
        element: u32,
        pool: u32,
        allocated: u16,
    },
    /// Add a fault.
    Fault { fault: String },
    /// Remove all faults.
    ClearFaults,
    /// The driver's periodic cleanup runs now.
    Tick { nic: u16 },
    /// A wait object's interrupt comes.
    Wake { nic: u16, client: u32, wait: u32 },
    /// Take a NIC out.
    Unplug { nic: u16 },
    /// Put it back in.
    Plug { nic: u16 },
    /// Take the link up or down.
    Link { nic: u16, up: bool },
    /// Something that a cluster is asked to do.
    Cluster(ClusterOrder),
}

/// Something that a cluster is asked to do, or one of its nodes as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ClusterOrder {
    /// Name the nodes that run.
    Nodes,
    /// The node dies.
    Kill,
    /// The node boots, after it has died if it runs.
    Reboot,
    /// The switch port of a NIC drops packets with that chance out of 65,536.
    Port { nic: u16, loss: u16 },
    /// Two sets of nodes can no longer reach each other.
    Partition {
        one: Vec<String>,
        other: Vec<String>,
    },
    /// All nodes can reach each other again.
    Heal,
    /// What happens to packets from now on; chances are out of 65,536.
    Fabric {
        loss: u16,
        duplication: u16,
        reordering: u16,
        delay: u16,
        seed: u64,
    },
}
