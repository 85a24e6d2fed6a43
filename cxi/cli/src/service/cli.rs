//! The command line of `cxi service`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, Subcommand};
use cxi::{Limit, Resource, ServiceId, TrafficClass, Vni, VniRange};
use cxi_site::JobId;

use super::settings::SettingArgs;
use crate::args::{AccessArgs, duration, limit, netns, user, vni};
use crate::deferred::Deferred;

#[derive(Debug, Subcommand)]
pub(crate) enum ServiceCommand {
    /// List services, one line for those that are the same on several NICs
    #[command(visible_alias = "ls")]
    List(Deferred<ListArgs>),
    /// Show all properties of services
    Show(Deferred<ShowArgs>),
    /// Create a service (needs CAP_SYS_ADMIN)
    ///
    /// If one of several NICs refuses, the service is created on none of them.
    Create(Box<Deferred<CreateArgs>>),
    /// Change a service without destroying it (needs CAP_SYS_ADMIN)
    ///
    /// A service that has an LNI cannot be changed. Members, listed VNIs, traffic classes and limits
    /// can never be changed, because no driver applies such a change. A service that has to be
    /// disabled for the change is enabled again afterward.
    Update(Deferred<UpdateArgs>),
    /// Remove services (needs CAP_SYS_ADMIN)
    #[command(visible_aliases = ["rm", "delete"])]
    Destroy(Deferred<DestroyArgs>),
    /// Enable services (needs CAP_SYS_ADMIN)
    Enable(Deferred<ServicesArgs>),
    /// Disable services without removing them (needs CAP_SYS_ADMIN)
    Disable(Deferred<ServicesArgs>),
    /// Show how much of each resource services have in use and reserved, and their maximum
    Usage {
        /// Service IDs [default: all]
        #[arg(value_name = "ID")]
        ids: Vec<ServiceId>,
        /// Draw them: a bar for each resource of a NIC, with a strip for each service
        #[arg(long)]
        svg: bool,
    },
}

/// Choice of services to list; without any of these, all.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only those that name this user
    #[arg(long, value_name = "USER", value_parser = user)]
    pub(crate) uid: Option<u32>,
    /// Only those with this VNI
    #[arg(long, value_name = "VNI", value_parser = vni)]
    pub(crate) vni: Option<Vni>,
    /// Only those that were made for this job, as the record of this node says
    #[arg(long, value_name = "JOB")]
    pub(crate) job: Option<JobId>,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Service IDs [default: all]
    #[arg(value_name = "ID")]
    pub(crate) ids: Vec<ServiceId>,
    /// Also show the resources of their NICs
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Print a specification for `create --from`
    #[arg(long, conflicts_with = "json")]
    pub(crate) yaml: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DestroyArgs {
    #[command(flatten)]
    pub(crate) services: ServicesArgs,
    /// Longest time to wait for the services to become idle, such as 10s
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = duration)]
    pub(crate) wait: Duration,
}

/// Existing services. Without --device, the services with these IDs on all NICs, if they are the same
/// everywhere.
#[derive(Debug, Args)]
pub(crate) struct ServicesArgs {
    /// Service IDs
    #[arg(required = true, value_name = "ID")]
    pub(crate) ids: Vec<ServiceId>,
}

/// The service to create.
#[derive(Debug, Default, Args)]
pub(crate) struct CreateArgs {
    /// Specification as YAML or JSON, - for standard input; HPE's templates are also accepted
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) spec: SpecArgs,
}

/// Changes to a service.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("changes").required(true).multiple(true)))]
pub(crate) struct UpdateArgs {
    #[command(flatten)]
    pub(crate) services: ServicesArgs,
    #[command(flatten)]
    pub(crate) settings: SettingArgs<true>,
    /// Change --exclusive-cp even though the kernel then uses freed memory if a process has a
    /// communication profile on the range
    #[arg(long, requires = "exclusive-cp")]
    pub(crate) force: bool,
    /// Block of VNIs, for a service that has neither a list nor a block yet
    #[arg(long, value_name = "MIN-MAX", group = "changes")]
    pub(crate) vni_range: Option<VniRange>,
    /// Network namespace that may use it, for a service without users and groups
    #[arg(long, value_name = "NETNS", value_parser = netns, group = "changes")]
    pub(crate) netns: Option<u32>,
    /// Enable it
    #[arg(long, group = "changes")]
    pub(crate) enable: bool,
    /// Disable it
    #[arg(long, conflicts_with = "enable", group = "changes")]
    pub(crate) disable: bool,
}

/// A specification, given as options. If no member is named, everyone may use the service.
#[derive(Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "The service")]
pub(crate) struct SpecArgs {
    #[command(flatten)]
    pub(crate) access: AccessArgs,
    /// Traffic classes: dedicated-access, low-latency, bulk-data, best-effort [default: all]
    #[arg(long, value_name = "CLASS", value_delimiter = ',')]
    pub(crate) tc: Vec<TrafficClass>,
    /// Limit of one resource (ptes, txqs, tgqs, eqs, cts, les, tles or acs): RESERVED for the
    /// service, at most MAX. If there is any limit, resources without one cannot be allocated
    #[arg(long, value_name = "RESOURCE=RESERVED:MAX", value_delimiter = ',', value_parser = limit)]
    pub(crate) limit: Vec<(Resource, Limit)>,
    #[command(flatten)]
    pub(crate) settings: SettingArgs<false>,
    /// Create the service disabled
    #[arg(long)]
    pub(crate) disabled: bool,
}
