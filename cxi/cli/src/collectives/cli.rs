//! The command line of `cxi collectives`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};
use cxi_site::{JobId, StepId};

use crate::args::number;

#[derive(Debug, Subcommand)]
pub(crate) enum CollectivesCommand {
    /// Reserve multicast trees for a job, and print the environment of a step, for a shell
    ///
    /// When run again, it finds what the first run reserved. If it fails, the job may start without
    /// hardware collectives: the environment says so, and the exit code is 0.
    Reserve(ReserveArgs),
    /// Delete the trees that a step left behind
    StepEnd {
        /// The job [default: that of FI_CXI_COLL_JOB_ID, authenticated by its session token]
        #[arg(long, value_name = "JOB")]
        job: Option<JobId>,
        /// The step
        step: StepId,
    },
    /// Release a job's reservation, with all its trees
    Release {
        /// The job
        job: JobId,
    },
    /// Release the reservations of this cluster's jobs that have ended
    #[command(group(ArgGroup::new("which").required(true)))]
    Sweep(SweepArgs),
    /// Check the variables of this process, on the node where it runs
    ///
    /// libfabric waits forever for some mistakes instead of failing. Exit code 9: something should be fixed;
    /// 8: there is no reservation.
    Preflight,
}

#[derive(Debug, Args)]
pub(crate) struct ReserveArgs {
    /// The job
    pub(crate) job: JobId,
    /// The step, unique within the job
    #[arg(long, value_name = "STEP", default_value = "0")]
    pub(crate) step: StepId,
    /// Maximum number of trees at a time
    #[arg(long, value_name = "N", value_parser = number)]
    pub(crate) limit: u32,
    /// Fewest nodes for which a job uses the trees; passed on to the job
    #[arg(long, value_name = "N", value_parser = number)]
    pub(crate) min_nodes: Option<u32>,
    /// Fail if the reservation fails
    #[arg(long)]
    pub(crate) required: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SweepArgs {
    /// Live jobs, whose reservations stay
    #[arg(long, value_name = "JOB", value_delimiter = ',', group = "which")]
    pub(crate) live: Vec<JobId>,
    /// File with the live jobs, one per line, - for standard input. It is read after the
    /// reservations are listed, so that a job that starts in the meantime loses nothing; if it
    /// cannot be read, nothing is released
    #[arg(long, value_name = "FILE", group = "which")]
    pub(crate) live_from: Option<PathBuf>,
    /// No job is live: release all reservations of this cluster
    #[arg(long, group = "which")]
    none_live: bool,
    /// Only print what would be released
    #[arg(long)]
    pub(crate) dry_run: bool,
}
