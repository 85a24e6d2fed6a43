//! The command line of `cxi collectives`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, Subcommand};
use cxi_job::collectives::Certificate;
use cxi_job::fabric::ClusterName;
use cxi_job::settings::Value as _;
use cxi_job::site::ManagerOptions;
use cxi_job::site::keys::Auth;
use cxi_job::{JobId, StepId};

use crate::args::{duration, number, word};
use crate::exit::Failure;
use crate::settings::Settings;

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
        #[command(flatten)]
        manager: ManagerArgs,
    },
    /// Release a job's reservation, with all its trees
    Release {
        /// The job
        job: JobId,
        #[command(flatten)]
        manager: ManagerArgs,
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
    #[command(flatten)]
    pub(crate) manager: ManagerArgs,
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
    #[command(flatten)]
    pub(crate) manager: ManagerArgs,
}

/// The fabric manager, how to authenticate to it, and how long to wait.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "The fabric manager")]
pub(crate) struct ManagerArgs {
    /// Its address, the part before /fabric/… [default: setting fabric-manager.url]
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// This cluster's name, the prefix of its reservations [default: setting fabric-manager.cluster]
    #[arg(long, value_name = "NAME")]
    pub(crate) cluster: Option<ClusterName>,
    /// How to authenticate to it [default: setting fabric-manager.auth]
    #[arg(long, value_parser = word::<Auth>(Auth::WORDS))]
    pub(crate) auth: Option<Auth>,
    /// Directory with endpoint, client-id and client-secret, or with passwd [default: setting
    /// fabric-manager.auth-dir, or /etc/wlm-client-auth, /etc/fmsim]
    #[arg(long, value_name = "DIR")]
    pub(crate) auth_dir: Option<PathBuf>,
    /// How to verify its certificate: system, a file or directory of authorities, or no to skip
    /// verification; libfabric is configured the same way [default: setting fabric-manager.certificate]
    #[arg(long, value_name = "CERTIFICATE", value_parser = Certificate::parse)]
    pub(crate) certificate: Option<Certificate>,
    /// The client certificate to present, a file in PEM format [default: setting fabric-manager.client-certificate]
    #[arg(long, value_name = "FILE", requires = "client_key")]
    pub(crate) client_certificate: Option<PathBuf>,
    /// The key of the client certificate [default: setting fabric-manager.client-key]
    #[arg(long, value_name = "FILE")]
    pub(crate) client_key: Option<PathBuf>,
    /// Total time to try [default: setting fabric-manager.deadline]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) deadline: Option<Duration>,
}

impl ManagerArgs {
    /// What the settings say, overridden by the options.
    pub(crate) fn or(&self, settings: &Settings) -> Result<ManagerOptions, Failure> {
        let (own, usual) = (self.clone(), ManagerOptions::of(settings)?);
        Ok(ManagerOptions {
            url: own.url.or(usual.url),
            cluster: own.cluster.or(usual.cluster),
            auth: own.auth.unwrap_or(usual.auth),
            auth_dir: own.auth_dir.or(usual.auth_dir),
            certificate: own.certificate.unwrap_or(usual.certificate),
            client_certificate: own.client_certificate.or(usual.client_certificate),
            client_key: own.client_key.or(usual.client_key),
            deadline: own.deadline.unwrap_or(usual.deadline),
        })
    }
}
