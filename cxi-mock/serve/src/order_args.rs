//! The orders of `cxi-mock ctl`.

use std::convert::Infallible;
use std::str::FromStr;

use clap::{Subcommand, ValueEnum};

use super::order::{ClusterOrder, Order};

/// What to do with a node.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum OrderArguments {
    /// Print what exists and is in use, as JSON
    State,
    /// Print operations between processes as they end
    Packets {
        /// End after so many
        #[arg(long, value_name = "N")]
        count: Option<u64>,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Set what the hardware reports
    #[command(subcommand)]
    Hardware(HardwareArguments),
    /// Add a fault, such as SVC_DESTROY:EBUSY:times=3 or cxi0:delay=20ms
    Fault {
        /// Words separated by colons: device, command, errno, after=N, times=N, delay=20ms
        fault: String,
    },
    /// Remove all faults and delays
    ClearFaults,
    /// Run the cleanup of freed LNIs now; prints whether there was anything to do
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
    /// Take the link up or down
    Link {
        /// The new state of the link
        link: LinkState,
        /// Number of the NIC
        #[arg(default_value_t = 0)]
        nic: u16,
    },
    #[command(flatten)]
    Cluster(ClusterOrderArguments),
}

/// What to do with a cluster, or with a whole node of it (--node).
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ClusterOrderArguments {
    /// Kill a node: its programs are killed, and its NICs disappear
    Kill,
    /// Boot a node, after killing it if it is running: its services are gone, and ids start again
    Reboot,
    /// Make the switch port of a NIC drop packets
    Port {
        /// Number of the NIC
        nic: u16,
        /// Share of packets, from 0 to 1
        #[arg(long, value_name = "SHARE", value_parser = chance)]
        loss: u16,
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
    /// Set what happens to packets between NICs: nothing, without options
    Fabric {
        /// Share that is lost, from 0 to 1
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
#[derive(Clone, Debug)]
pub(crate) struct Nodes(pub(crate) Vec<String>);

impl FromStr for Nodes {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.split(',').map(str::to_owned).collect()))
    }
}

/// A share of packets as a chance out of 65,536.
fn chance(text: &str) -> Result<u16, String> {
    let share: Option<f64> = text.parse().ok();
    match share.filter(|share| (0.0..=1.0).contains(share)) {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is between 0 and 65,535"
        )]
        Some(share) => Ok((share * f64::from(u16::MAX)).round() as u16),
        None => Err("expected a number from 0 to 1".to_owned()),
    }
}

impl From<ClusterOrderArguments> for ClusterOrder {
    fn from(arguments: ClusterOrderArguments) -> Self {
        match arguments {
            ClusterOrderArguments::Kill => Self::Kill,
            ClusterOrderArguments::Reboot => Self::Reboot,
            ClusterOrderArguments::Port { nic, loss } => Self::Port { nic, loss },
            ClusterOrderArguments::Partition { one, other } => Self::Partition {
                one: one.0,
                other: other.0,
            },
            ClusterOrderArguments::Heal => Self::Heal,
            ClusterOrderArguments::Fabric {
                loss,
                duplication,
                reordering,
                delay,
                seed,
            } => Self::Fabric {
                loss,
                duplication,
                reordering,
                delay,
                seed,
            },
        }
    }
}

/// The state of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LinkState {
    /// The link is up.
    Up,
    /// The link is down.
    Down,
}

/// A register of the hardware.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum HardwareArguments {
    /// Commands in flight in transmit queue INDEX (0 to 1023)
    Txq {
        index: u32,
        in_flight: u32,
        #[arg(long, default_value_t = 0)]
        nic: u16,
    },
    /// Commands in flight in target queue INDEX (1024 to 1535)
    Tgq {
        index: u32,
        in_flight: u32,
        #[arg(long, default_value_t = 0)]
        nic: u16,
    },
    /// TLEs in use in pool POOL (0 to 3)
    Tles {
        pool: u32,
        in_use: u16,
        #[arg(long, default_value_t = 0)]
        nic: u16,
    },
    /// LEs allocated in pool POOL (0 to 15) of processing element ELEMENT (0 to 3)
    Les {
        element: u32,
        pool: u32,
        allocated: u16,
        #[arg(long, default_value_t = 0)]
        nic: u16,
    },
}

impl From<OrderArguments> for Order {
    fn from(arguments: OrderArguments) -> Self {
        match arguments {
            OrderArguments::State => Self::State,
            OrderArguments::Packets { .. } => Self::Packets,
            OrderArguments::Hardware(register) => register.into(),
            OrderArguments::Fault { fault } => Self::Fault { fault },
            OrderArguments::ClearFaults => Self::ClearFaults,
            OrderArguments::Tick { nic } => Self::Tick { nic },
            OrderArguments::Wake { client, wait, nic } => Self::Wake { nic, client, wait },
            OrderArguments::Unplug { nic } => Self::Unplug { nic },
            OrderArguments::Plug { nic } => Self::Plug { nic },
            OrderArguments::Link { link, nic } => Self::Link {
                nic,
                up: link == LinkState::Up,
            },
            OrderArguments::Cluster(order) => Self::Cluster(order.into()),
        }
    }
}

impl From<HardwareArguments> for Order {
    fn from(register: HardwareArguments) -> Self {
        match register {
            HardwareArguments::Txq {
                index,
                in_flight,
                nic,
            } => Self::Txq {
                nic,
                index,
                in_flight,
            },
            HardwareArguments::Tgq {
                index,
                in_flight,
                nic,
            } => Self::Tgq {
                nic,
                index,
                in_flight,
            },
            HardwareArguments::Tles { pool, in_use, nic } => Self::Tles { nic, pool, in_use },
            HardwareArguments::Les {
                element,
                pool,
                allocated,
                nic,
            } => Self::Les {
                nic,
                element,
                pool,
                allocated,
            },
        }
    }
}
