//! Orders to a node through its socket, and by `cxi-mock ctl`.

use std::convert::Infallible;
use std::str::FromStr;

use clap::{ArgGroup, Subcommand, ValueEnum};
use serde::{Deserialize, Serialize};

/// Order, and the node that it is for.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    /// Name of a node in a cluster; none for all of it, and where there is one node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<String>,
    pub(crate) order: Order,
}

/// Order to a node.
#[derive(Clone, Debug, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Order {
    /// Hand over the namespaces.
    #[command(skip)]
    Namespaces,
    /// Hand over a socket to process 1.
    #[command(skip)]
    Shell,
    /// Announce a job that runs until the connection ends; answers its variables.
    #[command(skip)]
    Job,
    /// Print what exists and is in use, as JSON
    State,
    /// Print operations between processes as they end
    Packets {
        /// End after this many operations
        #[arg(long, value_name = "N")]
        #[serde(skip)]
        count: Option<u64>,
        /// One JSON object per line
        #[arg(long)]
        #[serde(skip)]
        json: bool,
    },
    /// Set what the hardware reports
    Hardware {
        #[command(subcommand)]
        register: Register,
        /// Number of the NIC
        #[arg(long, global = true, default_value_t = 0)]
        nic: u16,
    },
    /// Add a fault, such as SVC_DESTROY:EBUSY:times=3 or cxi0:delay=20ms
    Fault {
        /// Words separated by colons: device, command, errno, short=TXQ:96, delay=20ms, after=N,
        /// times=N, read=FILE, gone, flap,
        /// unplug, plug
        fault: String,
    },
    /// Remove all faults and delays
    ClearFaults,
    /// Clean up freed LNIs now; prints whether there was anything to do
    Tick {
        /// Number of the NIC
        #[arg(default_value_t = 0)]
        nic: u16,
    },
    /// Wake the programs that poll a wait object
    Wake {
        /// Number of the open file, as returned by WAIT_ALLOC
        client: u32,
        /// Number of the wait object
        wait: u32,
        #[arg(long, default_value_t = 0)]
        nic: u16,
    },
    /// Remove a NIC
    Unplug {
        /// Number of the NIC
        nic: u16,
    },
    /// Plug a NIC back in
    Plug {
        /// Number of the NIC
        nic: u16,
    },
    /// Take the link up or down, or restart it
    Link {
        /// The new state of the link
        link: LinkState,
        /// Number of the NIC
        #[arg(default_value_t = 0)]
        nic: u16,
    },
    #[command(flatten)]
    Cluster(ClusterOrder),
}

/// Order to a cluster, or to a whole node of it (--node).
#[derive(Clone, Debug, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ClusterOrder {
    /// Name the nodes that run.
    #[command(skip)]
    Nodes,
    /// Print the nodes, their links, and how much each NIC has sent to which, for Graphviz
    Graph,
    /// Kill a node: its programs are killed, and its NICs disappear
    Kill,
    /// Boot a node, after killing it if it is running: its services are gone, and IDs start over
    Reboot,
    /// Make the switch port of a NIC drop or delay packets
    #[command(group(ArgGroup::new("what").required(true).multiple(true)))]
    Port {
        /// Number of the NIC
        nic: u16,
        /// Share of packets, such as 0.01 or 1%
        #[arg(long, value_name = "SHARE", value_parser = chance, group = "what")]
        loss: Option<u16>,
        /// Delay each packet by this many milliseconds
        #[arg(long, value_name = "MS", group = "what")]
        delay: Option<u16>,
    },
    /// Separate two sets of nodes until `heal`
    Partition {
        /// Nodes on one side
        #[arg(value_name = "NODES")]
        one: Nodes,
        /// Nodes on the other side
        #[arg(value_name = "OTHERS")]
        other: Nodes,
    },
    /// End all partitions
    Heal,
    /// Set what happens to packets between NICs; without options, nothing
    Fabric {
        /// Share that is lost, such as 0.01 or 1%
        #[arg(long, value_name = "SHARE", value_parser = chance, default_value = "0")]
        loss: u16,
        /// Share that is duplicated
        #[arg(long, value_name = "SHARE", value_parser = chance, default_value = "0")]
        duplication: u16,
        /// Share that overtakes the previous packet
        #[arg(long, value_name = "SHARE", value_parser = chance, default_value = "0")]
        reordering: u16,
        /// Delay packets by up to this many milliseconds
        #[arg(long, value_name = "MS", default_value_t = 0)]
        delay: u16,
        /// Seed of the random numbers
        #[arg(long, default_value_t = 0)]
        seed: u64,
    },
}

/// Names of nodes, separated by commas.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Nodes(pub(crate) Vec<String>);

impl FromStr for Nodes {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.split(',').map(str::to_owned).collect()))
    }
}

/// A share of packets as a chance out of 65,536.
pub(crate) fn chance(text: &str) -> Result<u16, String> {
    let (number, whole) = match text.strip_suffix('%') {
        Some(percent) => (percent, 100.0),
        None => (text, 1.0),
    };
    let share: Option<f64> = number.parse().ok().map(|number: f64| number / whole);
    match share.filter(|share| (0.0..=1.0).contains(share)) {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is between 0 and 65,535"
        )]
        Some(share) => Ok((share * f64::from(u16::MAX)).round() as u16),
        None => Err("expected a share such as 0.01 or 1%".to_owned()),
    }
}

/// The state of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub(crate) enum LinkState {
    /// The link is up.
    Up,
    /// The link is down.
    Down,
    /// The link goes down and comes up again.
    Restart,
}

/// A register of the hardware.
#[derive(Clone, Debug, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Register {
    /// Commands in flight in transmit queue INDEX (0 to 1023)
    Txq { index: u32, in_flight: u32 },
    /// Commands in flight in target queue INDEX (1024 to 1535)
    Tgq { index: u32, in_flight: u32 },
    /// TLEs in use in pool POOL (0 to 3)
    Tles { pool: u32, in_use: u16 },
    /// LEs allocated in pool POOL (0 to 15) of processing element ELEMENT (0 to 3)
    Les { element: u32, pool: u32, allocated: u16 },
}
