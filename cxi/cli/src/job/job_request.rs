//! Turning the command line into a job request.

use cxi::Limit;
use cxi::{InvalidSpec, Member};
use cxi_job::limits::{LimitPolicy, Mode, Multiplier, ResourcePolicy, Subtract, TleRule};
use cxi_job::{InvalidJobRequest, JobLimits, JobRequest, JobRequestBuilder, NicPolicy, NodeName};

use super::cli::{ModeArg, Policy, ServiceArgs, SizeArgs, SubtractArg, WhoArgs};
use crate::exit::Failure;
use crate::hostlist::{HostList, cpus_at};
use crate::network::Network;
use crate::settings::{self, Settings};
use crate::vni::this_node;

pub(super) fn of_arguments(
    who: &WhoArgs,
    size: &SizeArgs,
    service: &ServiceArgs,
    network: &Network,
    settings: &Settings,
) -> Result<JobRequest, Failure> {
    let mut builder = JobRequest::builder().vnis(who.vni.iter().copied());
    for member in members(who) {
        builder = builder.member(member);
    }
    if let Some(range) = who.vni_range {
        builder = builder.vni_range(range);
    }
    finish(builder, size, service, network, settings)
}

pub(super) fn members(who: &WhoArgs) -> impl Iterator<Item = Member> {
    let uid = who.uid.map(Member::Uid);
    let gid = who.gid.map(Member::Gid);
    let netns = who.netns.map(|netns| Member::NetNs(netns.0));
    uid.into_iter().chain(gid).chain(netns)
}

pub(super) fn finish(
    mut builder: JobRequestBuilder,
    size: &SizeArgs,
    service: &ServiceArgs,
    network: &Network,
    settings: &Settings,
) -> Result<JobRequest, Failure> {
    builder = builder.limits(limits(size, network, settings)?);
    let of_service = || (!service.tc.is_empty()).then(|| service.tc.iter().copied().collect());
    let classes = network.traffic_classes.or_else(of_service);
    builder = builder.traffic_classes(settings.or(classes, &settings::TRAFFIC_CLASSES)?);
    builder = rgids(builder, size, service, network, settings)?;
    if let Some(count) = service.nics_at_least {
        builder = builder.nics(NicPolicy::AnyUsable(count));
    }
    builder.build().map_err(|error| match error {
        InvalidJobRequest::NoMember => Failure::bad_input(
            "no member: name who may use the services with --uid, --gid or --netns",
        ),
        InvalidJobRequest::Spec(InvalidSpec::NoVnis) => {
            Failure::bad_input("no VNIs: name them with --vni, or a block of them with --vni-range")
        }
        error => Failure::bad_input(error.to_string()),
    })
}

/// How many LNIs share an RGID: what the command line says, or as many as Slurm would let.
fn rgids(
    builder: JobRequestBuilder,
    size: &SizeArgs,
    service: &ServiceArgs,
    network: &Network,
    settings: &Settings,
) -> Result<JobRequestBuilder, Failure> {
    if let Some(count) = service.lnis_per_rgid {
        return Ok(builder.lnis_per_rgid(count));
    }
    let policy = settings.or(size.policy, &settings::POLICY)?;
    let Some(processes) = count(size)?.map(Multiplier::count) else {
        return Ok(builder);
    };
    let nics = match network.nic_distribution_count {
        None if policy != Policy::Slurm => return Ok(builder),
        None => settings.get(&settings::NIC_DISTRIBUTION_COUNT)?,
        nics => nics,
    };
    Ok(builder.spread(processes, nics))
}

/// Returns the planned limits for a size and a policy.
pub(super) struct Planned {
    pub(super) policy: LimitPolicy,
    pub(super) size: Multiplier,
    pub(super) mode: Mode,
}

fn limits(size: &SizeArgs, network: &Network, settings: &Settings) -> Result<JobLimits, Failure> {
    Ok(match planned(size, network, settings)? {
        None => JobLimits::Unlimited,
        Some(Planned { policy, size, mode }) => JobLimits::Planned { policy, size, mode },
    })
}

/// The size on the command line; `None` for a job without limits.
fn count(size: &SizeArgs) -> Result<Option<Multiplier>, Failure> {
    Ok(Some(match size {
        SizeArgs {
            cores: Some(cores), ..
        } => Multiplier::Cores(*cores),
        SizeArgs {
            tasks: Some(tasks),
            cpus_per_task,
            ..
        } => Multiplier::Tasks {
            tasks: *tasks,
            cpus_per_task: *cpus_per_task,
        },
        SizeArgs {
            depth: Some(depth), ..
        } => Multiplier::Depth(*depth),
        SizeArgs {
            cpus_per_node: Some(cpus),
            nodes: Some(nodes),
            node,
            ..
        } => Multiplier::Cores(cpus_here(cpus, nodes, node.as_ref())?),
        _ => return Ok(None),
    }))
}

/// Returns `None` for no limits.
pub(super) fn planned(
    size: &SizeArgs,
    network: &Network,
    settings: &Settings,
) -> Result<Option<Planned>, Failure> {
    let Some(count) = count(size)? else {
        return Ok(None);
    };
    let count = network.depth.map_or(count, Multiplier::Depth);
    let mut policy = match settings.or(size.policy, &settings::POLICY)? {
        Policy::Hpe => LimitPolicy::hpe_recommended(),
        Policy::Slurm => LimitPolicy::slurm(),
    };
    let mut named = Vec::new();
    for given in &size.limit {
        if named.contains(&given.resource) {
            return Err(Failure::bad_input(format!(
                "--limit names {} twice: expected each resource once",
                given.resource
            )));
        }
        named.push(given.resource);
        policy = policy.with(given.resource, fixed(given.limit));
    }
    policy = network.apply(policy);
    if size.no_tles || !network.asks_for_tles() && !settings.get(&settings::TLES)? {
        policy = policy.tles(TleRule::Never);
    }
    let policy = policy.subtract(match size.subtract {
        _ if network.adjust_limits == Some(false) => Subtract::None,
        SubtractArg::None => Subtract::None,
        SubtractArg::System => Subtract::System,
        SubtractArg::All => Subtract::All,
    });
    let mode = match settings.or(size.mode, &settings::MODE)? {
        ModeArg::Strict => Mode::Strict,
        ModeArg::ScaleBack => Mode::ScaleBack {
            floor: settings.or(size.floor, &settings::FLOOR)?,
        },
        ModeArg::BestEffort => Mode::BestEffort,
    };
    Ok(Some(Planned {
        policy,
        size: count,
        mode,
    }))
}

/// The CPUs of this node.
fn cpus_here(cpus: &str, nodes: &HostList, node: Option<&NodeName>) -> Result<u32, Failure> {
    let node = node.cloned().map_or_else(this_node, Ok)?;
    let position = nodes.position(node.as_str()).ok_or_else(|| {
        Failure::bad_input(format!("{node} is not one of the nodes {nodes}"))
            .hint("--node says which of them this is.")
    })?;
    cpus_at(cpus, position).map_err(Failure::bad_input)
}

fn fixed(limit: Limit) -> ResourcePolicy {
    ResourcePolicy::fixed(limit.reserved().into(), limit.max().into())
}
