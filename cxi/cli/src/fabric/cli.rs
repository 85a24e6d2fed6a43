//! The command line of `cxi fabric`.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, Subcommand};
use cxi::{ServiceId, TrafficClass, Vni};
use cxi_site::HostList;
use cxi_site::{JobId, NodeName};

use crate::args::{duration, vni};

#[derive(Debug, Subcommand)]
pub(crate) enum FabricCommand {
    /// Check that nodes reach each other on every NIC, and how fast, before a job runs or when it hangs
    ///
    /// Runs once on each of the nodes at the same time, as root or as the user of a service there: srun
    /// --ntasks-per-node=1, flux run -N, or pdsh. Each NIC sends small messages to the NIC of the same name
    /// on the other nodes, then all together perform a barrier and allreduces. The first node prints the
    /// result. Exit code 9: a node or a link should be looked at.
    #[command(group(ArgGroup::new("where").required(true)))]
    Check(CheckArgs),
    /// Show the result of a check, from its directory
    Show {
        /// The directory of the check
        directory: PathBuf,
        /// Print a picture instead: how long each pair takes, as SVG
        #[arg(long)]
        svg: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Directory that all nodes share, where they meet: empty, and for this check only
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// The nodes, such as n[1-4]
    #[arg(long, value_name = "NODES", group = "where")]
    pub(crate) nodes: Option<HostList>,
    /// The job that the controller has decided, with its nodes and its first VNI
    #[arg(long, value_name = "JOB", group = "where")]
    pub(crate) job: Option<JobId>,
    /// Name of this node among them [default: its host name]
    #[arg(long, value_name = "NODE")]
    pub(crate) node: Option<NodeName>,
    /// The VNI [default: the one that libfabric would take]
    #[arg(long, value_name = "VNI", value_parser = vni)]
    pub(crate) vni: Option<Vni>,
    /// The service on each NIC [default: the first one that allows this user and the VNI]
    #[arg(long, value_name = "ID")]
    pub(crate) service: Option<ServiceId>,
    /// The traffic class
    #[arg(long, value_name = "CLASS", default_value = "best-effort")]
    pub(crate) traffic_class: TrafficClass,
    /// Time for which a node waits for the others to come
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    pub(crate) wait: Duration,
    /// Time after which a node that answers nothing is not reached
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = duration)]
    pub(crate) silence: Duration,
    /// Number of other nodes that each one asks: the next one, and random ones [default: all of up to 64
    /// nodes, otherwise 16]
    #[arg(long, value_name = "N")]
    pub(crate) partners: Option<NonZeroU32>,
    /// Seed of the random nodes [default: another one for each check]
    #[arg(long, value_name = "SEED")]
    pub(crate) seed: Option<u32>,
    /// Judge this node only: exit code 9 if it is the one to take out of service, as a prolog of each node
    /// should end
    #[arg(long)]
    pub(crate) this_node: bool,
    /// Number of messages to each node
    #[arg(long, value_name = "N", default_value = "8")]
    pub(crate) pings: NonZeroU32,
}
