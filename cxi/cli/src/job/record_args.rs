//! The command line of commands that write or read records.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use cxi::Host;
use cxi_job::{JobId, TenantName};

use crate::args::{duration, number};
use crate::hostlist::HostList;
use crate::network::Network;
use crate::options::Common;
use crate::output::Report;
use crate::vni::cli::PoolArgs;

/// Options for the record that this node keeps of a job.
#[derive(Debug, Args)]
#[command(next_help_heading = "Its record")]
pub(crate) struct RecordArgs {
    /// The job; for a heterogeneous one, its leader. This node keeps a record of it. Without VNIs
    /// on the command line, it gets those that the controller decided
    #[arg(long, value_name = "JOB")]
    pub(crate) job: Option<JobId>,
    /// The component of a heterogeneous job
    #[arg(long, value_name = "JOB", requires = "job")]
    component: Option<JobId>,
    #[command(flatten)]
    pub(crate) optional: NicsOptional,
}

/// What to do on a node without NICs.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct NicsOptional {
    /// Succeed on a node that has no NIC at all: say so, and do nothing
    #[arg(long)]
    nics_optional: bool,
}

impl NicsOptional {
    /// The report of a command on a node without NICs, if that is not a failure.
    pub(crate) fn without_nics(self, common: &Common) -> Option<Report> {
        (self.nics_optional && has_no_nic(common))
            .then(|| Report::new("Nothing to do: this node has no NIC\n", &()))
    }
}

/// Whether this node has no NIC at all.
pub(crate) fn has_no_nic(common: &Common) -> bool {
    let ids = Host::system().device_ids();
    common.mock.is_none() && ids.is_ok_and(|ids| ids.is_empty())
}

impl RecordArgs {
    /// The job and its component, which is the job itself if it has none.
    pub(crate) fn names(&self) -> Option<(&JobId, &JobId)> {
        let job = self.job.as_ref()?;
        Some((job, self.component.as_ref().unwrap_or(job)))
    }
}

#[derive(Debug, Args)]
pub(crate) struct ReserveArgs {
    /// The job; for a heterogeneous one, its leader, whose VNIs all components share
    pub(crate) job: JobId,
    /// The component of a heterogeneous job
    #[arg(long, value_name = "JOB")]
    pub(crate) component: Option<JobId>,
    /// Its user
    #[arg(long, value_name = "UID", value_parser = number)]
    pub(crate) uid: u32,
    /// Its nodes, such as n[1-4]
    #[arg(long, value_name = "NODES")]
    pub(crate) nodes: HostList,
    /// The user's --network options
    #[arg(long, value_name = "OPTIONS", default_value = "")]
    pub(crate) network: Network,
    /// Take the VNIs from this tenant's share
    #[arg(long, value_name = "TENANT")]
    pub(crate) tenant: Option<TenantName>,
    /// How long to wait for VNIs [default: setting controller.wait]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) vni_wait: Option<Duration>,
    #[command(flatten)]
    pub(crate) pool: PoolArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ReleaseArgs {
    /// The job
    #[arg(required_unless_present = "unless_in")]
    pub(crate) job: Option<JobId>,
    /// The component of a heterogeneous job
    #[arg(long, value_name = "JOB", requires = "job")]
    pub(crate) component: Option<JobId>,
    /// All jobs that this file does not name: it lists the jobs that the scheduler still has, one
    /// per line; - for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "job")]
    pub(crate) unless_in: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) pool: PoolArgs,
}
