//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::audit::AuditArgs;
use crate::devices::DevicesArgs;
use crate::exit::EXIT_CODES;
use crate::explain::ExplainCommand;
use crate::job::cli::JobCommand;
use crate::options::Common;
use crate::service::cli::ServiceCommand;
use crate::vni::cli::VniArgs;

/// Services and resources of Cassini NICs (HPE Slingshot, CXI).
///
/// Works on the NICs of this machine, or with --mock on NICs that are played by this program.
#[derive(Debug, Parser)]
#[command(
    name = "cxi",
    version,
    propagate_version = true,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = EXIT_CODES,
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The NICs, and how much of their resources is reserved and in use
    #[command(visible_alias = "device")]
    Devices(DevicesArgs),
    /// Services: who may use how much of a NIC, on which VNIs
    #[command(subcommand, visible_alias = "svc")]
    Service(ServiceCommand),
    /// A job on all NICs: its services, its environment, its end
    #[command(subcommand)]
    Job(Box<JobCommand>),
    /// Why something does not work, who is in the way, and what to do
    #[command(subcommand)]
    Explain(ExplainCommand),
    /// What is wrong with the services of the node, before a job finds out
    Audit(AuditArgs),
    /// A pool of VNIs: which job has which, and when one may be used again
    Vni(VniArgs),
    /// Walk through an allocation for a job, on a mock node of its own
    Demo,
    /// Print a completion script
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages into a directory
    Man {
        /// The directory; it must exist
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
}
