//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::audit::AuditArgs;
use crate::cdi::CdiArgs;
use crate::collectives::cli::CollectivesCommand;
use crate::deferred::Deferred;
use crate::devices::DevicesArgs;
use crate::explain::ExplainArgs;
use crate::fabric::cli::FabricCommand;
use crate::integration::IntegrationCommand;
use crate::job::cli::JobCommand;
use crate::metrics::MetricsArgs;
use crate::options::Common;
use crate::selftest::SelftestArgs;
use crate::service::cli::ServiceCommand;
use crate::settings::ConfigCommand;
use crate::top::TopArgs;
use crate::vni::cli::VniCommand;

/// Services and resources of Cassini NICs (HPE Slingshot, CXI).
///
/// Works on the NICs of this machine or, with --mock, on NICs that this program simulates.
#[derive(Debug, Parser)]
#[command(
    name = "cxi",
    version,
    propagate_version = true,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Deferred<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the NICs, and how much of their resources is reserved and in use
    #[command(visible_alias = "device")]
    Devices(Deferred<DevicesArgs>),
    /// Manage services: who may use how much of a NIC, on which VNIs
    #[command(subcommand, visible_alias = "svc")]
    Service(Deferred<ServiceCommand>),
    /// Manage the services of a job on all NICs: prolog, environment, epilog
    #[command(subcommand)]
    Job(Deferred<Box<JobCommand>>),
    /// Explain why something does not work, who is in the way, and what to do
    Explain(Deferred<ExplainArgs>),
    /// Find problems with the services of this node before a job does
    Audit(Deferred<AuditArgs>),
    /// Check whether NICs and their driver behave as this program expects, and record their behavior
    Selftest(Deferred<SelftestArgs>),
    /// Manage a pool of VNIs: which job has which, and when each may be reused
    #[command(subcommand)]
    Vni(Deferred<VniCommand>),
    /// Reserve multicast trees for hardware collectives at the fabric manager
    #[command(subcommand)]
    Collectives(Deferred<Box<CollectivesCommand>>),
    /// Check that nodes reach each other on every NIC, and how fast
    #[command(subcommand)]
    Fabric(Deferred<Box<FabricCommand>>),
    /// Print metrics for Prometheus: NICs, services, usage, findings, and the pool of VNIs
    Metrics(Deferred<MetricsArgs>),
    /// Show live resource usage by job
    Top(Deferred<TopArgs>),
    /// Describe the NICs for container runtimes: a specification of the Container Device Interface
    Cdi(Deferred<CdiArgs>),
    /// Show the settings of this machine
    #[command(subcommand)]
    Config(Deferred<ConfigCommand>),
    /// Write scripts for schedulers
    #[command(subcommand)]
    Integration(Deferred<IntegrationCommand>),
    /// Print a completion script
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write manual pages to a directory
    Man {
        /// An existing directory
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
}
