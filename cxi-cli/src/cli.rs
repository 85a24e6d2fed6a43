//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use cxi::{LnisPerRgid, ServiceId, TrafficClass, Vni, VniRange};
use cxi_ioctl::DriverRelease;
use cxi_mock::FaultSpec;

use crate::args::{LimitArg, NetNsArg, NicChoice, lnis_per_rgid, number};
use crate::audit::AuditArgs;
use crate::exit::EXIT_CODES;
use crate::explain::ExplainCommand;
use crate::job::cli::JobCommand;
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

/// Options of every command.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Common {
    /// NICs to work on: cxi0, cxi0-3, a list of them, or all [default: all for what only reads,
    /// else cxi0]
    #[arg(short, long, global = true, value_name = "NICS")]
    pub(crate) device: Option<NicChoice>,
    /// Print JSON; errors too, one object a line on standard error
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Work on a mock node, as root there. With a file its services live on between calls; the
    /// variable CXI_MOCK can name it too
    #[arg(
        long,
        global = true,
        value_name = "STATE.json",
        num_args = 0..=1,
        require_equals = true,
    )]
    #[allow(clippy::option_option, reason = "how clap spells an optional value")]
    pub(crate) mock: Option<Option<PathBuf>>,
    /// Number of NICs of a new mock node [default: 2]
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=16))]
    pub(crate) mock_nics: Option<u8>,
    /// Driver of a new mock node: shs-12.0, shs-13.0, shs-13.1, shs-14.0.0, shs-14.0.1 or main
    /// [default: shs-14.0.1]
    #[arg(long, global = true, value_name = "RELEASE")]
    pub(crate) mock_release: Option<DriverRelease>,
    /// Make the mock node fail: words with colons between, such as SVC_DESTROY:EBUSY:times=3 or
    /// cxi1:EIO:after=100
    #[arg(
        long,
        global = true,
        value_name = "FAULT",
        env = "CXI_MOCK_FAULT",
        hide_env_values = true,
        value_delimiter = ','
    )]
    pub(crate) mock_fault: Vec<FaultSpec>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The NICs, and how much of their resources is reserved and in use
    #[command(visible_alias = "device")]
    Devices,
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

#[derive(Debug, Subcommand)]
pub(crate) enum ServiceCommand {
    /// All services, those that are the same on several NICs in one line
    #[command(visible_alias = "ls")]
    List,
    /// Everything about some services
    Show {
        /// Service ids
        #[arg(required = true, value_name = "ID")]
        ids: Vec<ServiceId>,
        /// Print a specification that `create --from` reads
        #[arg(long, conflicts_with = "json")]
        yaml: bool,
    },
    /// Make a service (needs CAP_SYS_ADMIN)
    ///
    /// On several NICs: on all of them or, if one refuses, on none.
    Create(Box<CreateArgs>),
    /// Remove services (needs CAP_SYS_ADMIN)
    Destroy {
        /// Service ids
        #[arg(required = true, value_name = "ID")]
        ids: Vec<ServiceId>,
        /// Wait up to that many seconds for a service that is in use
        #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = number)]
        wait: u32,
    },
    /// Let services be used (needs CAP_SYS_ADMIN)
    Enable {
        /// Service ids
        #[arg(required = true, value_name = "ID")]
        ids: Vec<ServiceId>,
    },
    /// Keep services from being used, without removing them (needs CAP_SYS_ADMIN)
    Disable {
        /// Service ids
        #[arg(required = true, value_name = "ID")]
        ids: Vec<ServiceId>,
    },
    /// What services have in use, reserved and at most
    Usage {
        /// Service ids [default: all]
        #[arg(value_name = "ID")]
        ids: Vec<ServiceId>,
    },
}

/// What the service is.
#[derive(Debug, Default, Args)]
pub(crate) struct CreateArgs {
    /// Specification as YAML or JSON, - for standard input; see docs/CLI.md
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,
    /// LNIs that may share an RGID, 0 to 8
    #[arg(long, value_name = "N", value_parser = lnis_per_rgid)]
    pub(crate) lnis_per_rgid: Option<LnisPerRgid>,
    /// Give each LNI communication profiles of its own (only with a VNI range)
    #[arg(long)]
    pub(crate) exclusive_cp: bool,
    #[command(flatten)]
    pub(crate) spec: SpecArgs,
}

/// A specification as options. Without a member anybody may use the service.
#[derive(Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "The service")]
pub(crate) struct SpecArgs {
    /// User who may use it
    #[arg(long, value_name = "UID", value_parser = number)]
    pub(crate) uid: Vec<u32>,
    /// Group that may use it
    #[arg(long, value_name = "GID", value_parser = number)]
    pub(crate) gid: Vec<u32>,
    /// Network namespace that may use it: inode number or a file such as /proc/1/ns/net
    #[arg(long, value_name = "NETNS", conflicts_with_all = ["uid", "gid"])]
    pub(crate) netns: Option<NetNsArg>,
    /// VNIs, at most 4, each 1 to 65535
    #[arg(long, value_name = "VNI", value_delimiter = ',')]
    pub(crate) vni: Vec<Vni>,
    /// Block of VNIs: a power of two long, on its own boundary
    #[arg(long, value_name = "MIN-MAX", conflicts_with = "vni")]
    pub(crate) vni_range: Option<VniRange>,
    /// Traffic classes: dedicated-access, low-latency, bulk-data, best-effort [default: all]
    #[arg(long, value_name = "CLASS", value_delimiter = ',')]
    pub(crate) tc: Vec<TrafficClass>,
    /// Limit of a resource (ptes, txqs, tgqs, eqs, cts, les, tles, acs): reserved and maximum
    #[arg(long, value_name = "RESOURCE=RESERVED:MAX", value_delimiter = ',')]
    pub(crate) limit: Vec<LimitArg>,
    /// Mark it as a service of the system
    #[arg(long)]
    pub(crate) system: bool,
    /// Leave it disabled
    #[arg(long)]
    pub(crate) disabled: bool,
}
