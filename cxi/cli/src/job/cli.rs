//! The command line of `cxi job`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, Subcommand};
use cxi::{Limit, LnisPerRgid, Resource, TrafficClass, Vni};
use cxi_job::cluster::{JobShape, NetworkOptions};
use cxi_site::{HostList, cpus_at};
use cxi_site::{IdSet, JobId, NodeName, StepId, TenantName};

use crate::args::{
    AccessArgs, duration, group, limit, lnis_per_rgid, number, once_each, user, vni, word,
};
use crate::exit::Failure;
use crate::node::{has_no_nic, this_node};
use crate::options::Common;
use crate::settings::{self, ModeName, PolicyName, Settings};

#[derive(Debug, Subcommand)]
pub(crate) enum JobCommand {
    /// Show what a job of a given size would get on each NIC, and how many such jobs fit
    Plan {
        #[command(flatten)]
        size: SizeArgs,
    },
    /// Create a job's services, on all NICs or on none (needs CAP_SYS_ADMIN)
    ///
    /// When run again, it adopts the services that the first run created.
    Prolog(PrologArgs),
    /// Destroy a job's services on all NICs (needs CAP_SYS_ADMIN)
    ///
    /// Exit code 0: all are gone, and its VNIs may be reused here. 4: still busy, try again later.
    /// 8: there are none. Anything else: failure.
    Epilog(EpilogArgs),
    /// Destroy what ended jobs left behind (needs CAP_SYS_ADMIN)
    ///
    /// Exit codes are those of `epilog`. The default service and system services are kept.
    Clean(CleanArgs),
    /// Print the environment of a job with services, for a shell
    Env(EnvArgs),
    /// On the controller: decide which VNIs a job gets; its nodes read the decision
    ///
    /// If no VNI is free, waits for nodes that have not confirmed yet. When repeated, prints the same
    /// VNIs.
    Reserve(ReserveArgs),
    /// On the controller: end a job; its VNIs are free once all its nodes have confirmed
    Release(ReleaseArgs),
    /// On the controller: end the jobs that the scheduler no longer knows
    ///
    /// This makes up for lost releases. If the command that lists the scheduler's jobs fails, nothing
    /// is released.
    Sweep {
        /// Prints the IDs of the scheduler's jobs, separated by white space
        #[arg(last = true, required = true, value_name = "COMMAND")]
        live: Vec<OsString>,
    },
    /// Confirm for a node that none of the job's services are left there
    Confirm {
        /// The job
        job: JobId,
        /// The node
        #[arg(long, value_name = "NODE")]
        node: NodeName,
    },
    /// List the jobs of this node, or of the controller, and their state
    #[command(visible_alias = "ls")]
    List {
        /// List the jobs of the controller
        #[arg(long)]
        controller: bool,
    },
    /// Show jobs of this node, or of the controller
    Show {
        /// The jobs
        #[arg(value_name = "JOB", required = true)]
        jobs: Vec<JobId>,
        /// Show what the controller knows of them
        #[arg(long)]
        controller: bool,
    },
    /// Run a program with services that exist as long as it runs (needs root)
    ///
    /// Exits with the program's exit code, or 128 plus the number of the signal that ended it. If
    /// the program succeeded but a service is left, exits with the code of `epilog`; with 126 or
    /// 127 if the program cannot be started.
    Run(RunArgs),
    /// Switch to a user and execute a program
    #[command(hide = true)]
    Become {
        #[arg(long)]
        uid: u32,
        #[arg(long)]
        gid: Option<u32>,
        #[arg(required = true, last = true)]
        program: Vec<OsString>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct PrologArgs {
    #[command(flatten)]
    pub(crate) record: RecordArgs,
    #[command(flatten)]
    pub(crate) who: AccessArgs,
    #[command(flatten)]
    pub(crate) size: SizeArgs,
    #[command(flatten)]
    pub(crate) service: ServiceArgs,
    /// Only check, and print what would be created
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// If the job has services here for another request, destroy them; otherwise the prolog is refused
    #[arg(long)]
    pub(crate) replace: bool,
}

#[derive(Debug, Args)]
pub(crate) struct EpilogArgs {
    #[command(flatten)]
    pub(crate) record: RecordArgs,
    /// This node's name in the scheduler [default: the name of this machine]
    #[arg(long, value_name = "NODE")]
    pub(crate) node: Option<NodeName>,
    #[command(flatten)]
    pub(crate) wait: WaitArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CleanArgs {
    /// VNIs that the scheduler assigns: services with one of them that no record names are reported
    /// [default: setting pool.vnis]
    #[arg(long, alias = "vni-pool", value_name = "VNIS")]
    pub(crate) pool_vnis: Option<IdSet>,
    /// Destroy services with a VNI of the pool, too, of which no record says who made them: those
    /// of a scheduler that has crashed, or was replaced
    #[arg(long)]
    pub(crate) foreign: bool,
    /// VNIs of live jobs that have no record on this node: their services are
    /// kept
    #[arg(long, value_name = "VNIS")]
    pub(crate) live: Option<IdSet>,
    /// Directory with a file JOB.vnis for each live job that contains its VNIs. It is read
    /// after the services are listed, so that a job that starts in the meantime loses nothing
    #[arg(long, value_name = "DIR", conflicts_with = "live")]
    pub(crate) live_from: Option<PathBuf>,
    /// No job is live on this node, whatever the records say: its scheduler has just started
    #[arg(long, conflicts_with = "live")]
    pub(crate) none_live: bool,
    #[command(flatten)]
    pub(crate) optional: NicsOptional,
    /// This node's name in the scheduler [default: the name of this machine]
    #[arg(long, value_name = "NODE")]
    pub(crate) node: Option<NodeName>,
    #[command(flatten)]
    pub(crate) wait: WaitArgs,
    /// Only print what would be destroyed
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct EnvArgs {
    /// The job
    #[arg(long, value_name = "JOB")]
    pub(crate) job: JobId,
    /// The step, for its hardware collectives [default: all steps together]
    #[arg(long, value_name = "STEP")]
    pub(crate) step: Option<StepId>,
}

/// The size of the job on this node, and the limits that follow from it.
#[derive(Debug, Args)]
#[command(
    next_help_heading = "Size of the job",
    group(ArgGroup::new("size").required(true).args(["cores", "cpus_per_node", "unlimited"]))
)]
pub(crate) struct SizeArgs {
    /// Number of cores on this node
    #[arg(long, value_name = "N", value_parser = number)]
    pub(crate) cores: Option<u32>,
    /// CPUs on each of the job's nodes, in the form of SLURM_JOB_CPUS_PER_NODE: 2(x3),1
    #[arg(long, value_name = "CPUS", requires = "nodes")]
    pub(crate) cpus_per_node: Option<String>,
    /// With --cpus-per-node: the job's nodes, such as n[1-4]
    #[arg(long, value_name = "NODES")]
    pub(crate) nodes: Option<HostList>,
    /// This node's name in --nodes [default: the name of this machine]
    #[arg(long, value_name = "NODE")]
    pub(crate) node: Option<NodeName>,
    /// No limits: the job may have everything that the NIC has
    #[arg(long)]
    pub(crate) unlimited: bool,
    /// Policy for the amount of each resource for each unit of size [default: setting job.policy]
    #[arg(long, value_parser = word::<PolicyName>(PolicyName::WORDS))]
    policy: Option<PolicyName>,
    /// Limit of one resource, replacing what --policy gives for the job's size: reserve RESERVED
    /// and allow at most MAX of ptes, txqs, tgqs, eqs, cts, les, tles or acs
    #[arg(long, value_name = "RESOURCE=RESERVED:MAX", value_delimiter = ',', value_parser = limit)]
    pub(crate) limit: Vec<(Resource, Limit)>,
    /// No TLEs, so that more than three jobs fit on a NIC (no triggered operations)
    #[arg(long)]
    pub(crate) no_tles: bool,
    /// Reaction if not enough resources are available [default: setting job.mode]
    #[arg(long, value_parser = word::<ModeName>(ModeName::WORDS))]
    mode: Option<ModeName>,
    /// With --mode=scale-back: reserve at least as much as for a job of this size [default: setting
    /// job.floor]
    #[arg(long, value_name = "N", value_parser = number)]
    pub(crate) floor: Option<u32>,
}

/// Other properties of its services.
#[derive(Debug, Args)]
#[command(next_help_heading = "Services of the job")]
pub(crate) struct ServiceArgs {
    /// Traffic classes: dedicated-access, low-latency, bulk-data, best-effort [default: setting
    /// job.traffic-classes]
    #[arg(long, value_name = "CLASS", value_delimiter = ',')]
    pub(crate) tc: Vec<TrafficClass>,
    /// LNIs that may share an RGID, 0 to 8
    #[arg(long, value_name = "N", value_parser = lnis_per_rgid)]
    pub(crate) lnis_per_rgid: Option<LnisPerRgid>,
    /// Minimum number of usable NICs; unusable ones are left out [default: all must be usable]
    #[arg(long, value_name = "N")]
    pub(crate) nics_at_least: Option<usize>,
}

impl SizeArgs {
    /// The shape of a job with services of these properties.
    pub(crate) fn shape(&self, service: &ServiceArgs) -> Result<JobShape, Failure> {
        let mut shape = self.of_size()?;
        shape.traffic_classes =
            (!service.tc.is_empty()).then(|| service.tc.iter().copied().collect());
        shape.lnis_per_rgid = service.lnis_per_rgid;
        shape.nics_at_least = service.nics_at_least;
        Ok(shape)
    }

    pub(crate) fn of_size(&self) -> Result<JobShape, Failure> {
        let mut shape = JobShape::default();
        shape.limits = once_each(&self.limit)?;
        shape.size = self.count()?;
        shape.policy = self.policy;
        shape.no_tles = self.no_tles;
        shape.mode = self.mode;
        shape.floor = self.floor;
        Ok(shape)
    }

    /// `None` for a job without limits.
    fn count(&self) -> Result<Option<u32>, Failure> {
        if let (Some(cpus), Some(nodes)) = (&self.cpus_per_node, &self.nodes) {
            let node = self.node.clone().map_or_else(this_node, Ok)?;
            let position = nodes.position(node.as_str()).ok_or_else(|| {
                Failure::bad_input(format!("{node} is not one of the nodes {nodes}"))
                    .hint("--node says which of them this is.")
            })?;
            let cpus = cpus_at(cpus, position).map_err(Failure::bad_input)?;
            return Ok(Some(cpus));
        }
        Ok(self.cores)
    }
}

/// Waiting for busy services.
#[derive(Debug, Args)]
pub(crate) struct WaitArgs {
    /// Try to destroy busy services for this long, such as 5s or 5m [default: setting
    /// node.retry-busy]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) retry_busy: Option<Duration>,
}

impl WaitArgs {
    pub(crate) fn time(&self, settings: &Settings) -> Result<Duration, Failure> {
        Ok(settings.or(self.retry_busy, &settings::RETRY_BUSY)?)
    }
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// User to run the program as, who may use the services [default: you]
    #[arg(long, value_name = "USER", value_parser = user)]
    pub(crate) uid: Option<u32>,
    /// Group to run the program as [default: the user's]
    #[arg(long, value_name = "GROUP", value_parser = group)]
    pub(crate) gid: Option<u32>,
    /// VNIs, at most 4 [default: the first from 1024 on that no service of this node has]
    #[arg(long, visible_alias = "vnis", value_name = "VNI", value_delimiter = ',', value_parser = vni)]
    pub(crate) vni: Vec<Vni>,
    #[command(flatten)]
    pub(crate) size: SizeArgs,
    #[command(flatten)]
    pub(crate) service: ServiceArgs,
    /// Try for this long to destroy services that are still in use when the program has ended
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10s")]
    pub(crate) retry_busy: Duration,
    /// Time that the program may take to end after SIGTERM before it is killed
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10s")]
    pub(crate) grace: Duration,
    /// The program and its arguments
    #[arg(required = true, last = true)]
    pub(crate) program: Vec<OsString>,
}

/// The job, of which this node keeps a record from its prolog to its epilog.
#[derive(Debug, Args)]
#[command(next_help_heading = "The job")]
pub(crate) struct RecordArgs {
    /// Job ID; for a heterogeneous job, the leader's. Without VNIs on the command line, it gets those
    /// that the controller assigned
    #[arg(long, value_name = "JOB")]
    pub(crate) job: JobId,
    /// The component of a heterogeneous job
    #[arg(long, value_name = "JOB")]
    pub(crate) component: Option<JobId>,
    #[command(flatten)]
    pub(crate) optional: NicsOptional,
}

/// Treatment of a node without NICs.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct NicsOptional {
    /// On a node without any NIC, report that, do nothing, and succeed
    #[arg(long)]
    nics_optional: bool,
}

impl NicsOptional {
    /// Returns whether this node has no NIC, and that is not a failure.
    pub(crate) fn applies(self, common: &Common) -> bool {
        self.nics_optional && has_no_nic(common)
    }
}

#[derive(Debug, Args)]
pub(crate) struct ReserveArgs {
    /// The job; for a heterogeneous one, its leader, whose VNIs all components share
    pub(crate) job: JobId,
    /// The component of a heterogeneous job
    #[arg(long, value_name = "JOB")]
    pub(crate) component: Option<JobId>,
    /// The job's user
    #[arg(long, value_name = "USER", value_parser = user)]
    pub(crate) uid: u32,
    /// The job's nodes, such as n[1-4]
    #[arg(long, value_name = "NODES")]
    pub(crate) nodes: HostList,
    /// The user's --network options
    #[arg(long, value_name = "OPTIONS", default_value = "")]
    pub(crate) network: NetworkOptions,
    /// Number of VNIs, up to 4 [default: what --network and the settings say]
    #[arg(long, value_name = "N")]
    pub(crate) vnis: Option<u8>,
    /// Take the VNIs from this tenant's share
    #[arg(long, value_name = "TENANT")]
    pub(crate) tenant: Option<TenantName>,
}

#[derive(Debug, Args)]
pub(crate) struct ReleaseArgs {
    /// The job
    pub(crate) job: JobId,
    /// The component of a heterogeneous job
    #[arg(long, value_name = "JOB")]
    pub(crate) component: Option<JobId>,
}
