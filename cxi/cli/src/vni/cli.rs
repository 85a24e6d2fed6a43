//! The command line of `cxi vni`.

use std::num::NonZeroU16;
use std::time::Duration;

use clap::{ArgGroup, Args, Subcommand};
use cxi::Vni;
use cxi_site::{IdSet, JobId, NodeName, TenantName};

use crate::args::{duration, tenant};

#[derive(Debug, Subcommand)]
pub(crate) enum VniCommand {
    /// Create the pool, or change which VNIs it assigns
    ///
    /// VNIs that jobs have stay with them; those that are no longer in the pool are not
    /// assigned again.
    Configure(ConfigArgs),
    /// Assign VNIs to a job, and print them; when repeated, print the same ones
    ///
    /// The pool is all that this knows. Where there is a setting controller.records, no VNI is assigned
    /// that those records give to another job, and cxi job reserve is the command that makes a record.
    /// Without records, a pool that was restored from a copy, or configured anew, does not know which
    /// VNIs are in use: cxi vni reconcile on each node first.
    Reserve(ReserveArgs),
    /// Take over a pool in etcd: from now on only this controller may change it
    ///
    /// Exit code 8: the pool is in a file, and has one controller.
    Lead,
    /// Take back the VNIs of a job that did not start; they are free immediately
    ///
    /// Only for a job that no node has learned of. A job that may have services must be released
    /// instead.
    Cancel {
        /// The job
        job: JobId,
    },
    /// End a job's use of its VNIs: they drain until every node has confirmed
    Release(ReleaseArgs),
    /// Confirm that the services of a released job are destroyed, so that its VNIs may be reused
    #[command(group(ArgGroup::new("who").required(true)))]
    Confirm(ConfirmArgs),
    /// Show how full the pool is, and which VNIs each job has
    #[command(visible_aliases = ["list", "ls"])]
    Show {
        /// Show only this job
        job: Option<JobId>,
    },
    /// Compare the pool with the VNIs of the services on a node's NICs
    ///
    /// VNIs that no live job has are not assigned until the node no longer shows them. Where there is a
    /// setting controller.records, the pool is first told of the jobs that have a record and that it
    /// does not know. Exit code 9: a VNI is, or may be, given to two jobs.
    Reconcile {
        /// Compare the pool only with the controller's records, not with a node
        #[arg(long, conflicts_with_all = ["node", "seen"])]
        records: bool,
        /// The node [default: the host name of this machine]
        #[arg(long, value_name = "NODE")]
        node: Option<NodeName>,
        /// The VNIs that the node shows [default: those of the services on this machine's NICs]
        #[arg(long, value_name = "VNIS")]
        seen: Option<IdSet>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ReserveArgs {
    /// The job
    pub(crate) job: JobId,
    /// Number of VNIs, 1 to 4
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) count: u8,
    /// Instead, a block of this many VNIs for range services: a power of two
    #[arg(long, value_name = "N", conflicts_with = "count")]
    pub(crate) block: Option<u16>,
    /// Instead, this many VNIs for the job's steps, printed as a set. The job makes a pool of
    /// them (`cxi vni configure`), as Slurm's stepmgr does on each node
    #[arg(long, value_name = "N", conflicts_with_all = ["count", "block"])]
    pub(crate) for_steps: Option<NonZeroU16>,
    /// Take them from this tenant's share
    #[arg(long, value_name = "TENANT")]
    pub(crate) tenant: Option<TenantName>,
}

#[derive(Debug, Args)]
pub(crate) struct ReleaseArgs {
    /// The job
    pub(crate) job: JobId,
    /// Nodes on which its services must be destroyed first; without any, only confirm --all
    /// frees its VNIs
    #[arg(long, value_name = "NODE", value_delimiter = ',')]
    pub(crate) nodes: Vec<NodeName>,
}

#[derive(Debug, Args)]
pub(crate) struct ConfirmArgs {
    /// The job
    #[arg(required_unless_present = "stray")]
    pub(crate) job: Option<JobId>,
    /// This node has destroyed the job's services
    #[arg(long, value_name = "NODE", group = "who")]
    pub(crate) node: Option<NodeName>,
    /// All nodes of the job have destroyed its services; or assume that, at your own risk, for
    /// example because a node was replaced
    #[arg(long, group = "who")]
    all: bool,
    /// Instead of a job, free a VNI that no job has but a node has shown, at your own risk: no
    /// service may still have it
    #[arg(long, value_name = "VNI", group = "who", conflicts_with = "job")]
    pub(crate) stray: Option<Vni>,
}

/// The VNIs that a pool assigns.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    /// VNIs, such as 1024-65535; 0, 1 and 10 are never assigned
    pub(crate) vnis: IdSet,
    /// Never assign these either
    #[arg(long, value_name = "VNIS")]
    pub(crate) exclude: Option<IdSet>,
    /// Time that each VNI stays unused after its services are destroyed, such as 30s
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "0s")]
    pub(crate) rest: Duration,
    /// Share of the VNIs for one tenant, such as blue=1024-2047
    #[arg(long, value_name = "NAME=VNIS", value_parser = tenant)]
    pub(crate) tenant: Vec<(TenantName, IdSet)>,
}
