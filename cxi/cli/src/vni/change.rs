//! Commands that change a pool.

use std::num::NonZeroU16;

use cxi::Vni;
use cxi_job::pool::{Allotment, Event, PoolConfig, Timestamp, VniPool, VniRequest};
use cxi_job::{IdSet, JobId, NodeName, StepId, TenantName};
use serde::Serialize;

use super::cli::ConfigArgs;
use super::file::{Open, PoolFiles};
use super::{of_config, of_pool, of_reserve};
use crate::exit::{Exit, Failure};
use crate::node::reading;
use crate::options::Common;
use crate::output::Report;

/// The result of a change, for programs; without an event there was nothing to do.
fn changed(text: String, event: Option<&Event>) -> Report {
    #[derive(Serialize)]
    struct Changed<'a> {
        #[serde(skip_serializing_if = "Option::is_none")]
        event: Option<&'a Event>,
    }
    let report = Report::new(text, &Changed { event });
    if event.is_none() {
        report.nothing_to_do()
    } else {
        report
    }
}

pub(super) fn configure(arguments: &PoolFiles, config: &ConfigArgs) -> Result<Report, Failure> {
    let config = of_arguments(config);
    // An unusable configuration leaves no file behind.
    let new = VniPool::new(config.clone()).map_err(|error| of_config(&error))?;
    let (mut open, made) = Open::or_new(arguments, new)?;
    let at = Timestamp::now();
    let event = if made {
        open.pool.record_config(at).map(Some)
    } else {
        open.pool.reconfigure(config, at)
    }
    .map_err(|error| of_pool(&error))?;
    let pool = open.keep(event.as_ref())?;
    let metrics = pool.metrics(at);
    let what = match (made, &event) {
        (true, _) => "Made",
        (false, Some(_)) => "Changed",
        (false, None) => "Left as it was:",
    };
    let text = format!(
        "{what} the pool {}: {} VNIs, {} of them free\n",
        arguments.pool.display(),
        metrics.total,
        metrics.free
    );
    let outside = (metrics.outside > 0).then(|| {
        format!(
            "{} more VNIs are in use that the pool no longer has: they stay with their jobs",
            metrics.outside
        )
    });
    Ok(changed(text, event.as_ref()).with_warnings(outside))
}

fn of_arguments(arguments: &ConfigArgs) -> PoolConfig {
    let mut config = PoolConfig::new(arguments.vnis.clone()).rest(arguments.rest);
    if let Some(excluded) = &arguments.exclude {
        config = config.exclude(excluded);
    }
    for tenant in &arguments.tenant {
        config = config.tenant(tenant.name.clone(), tenant.vnis.clone());
    }
    config
}

pub(super) fn request(
    count: u8,
    block: Option<u16>,
    for_steps: Option<NonZeroU16>,
    tenant: Option<TenantName>,
) -> VniRequest {
    let request = match (block, for_steps) {
        (Some(size), _) => VniRequest::block(size),
        (None, Some(count)) => VniRequest::for_steps(count),
        (None, None) => VniRequest::vnis(count),
    };
    match tenant {
        Some(tenant) => request.for_tenant(tenant),
        None => request,
    }
}

pub(super) fn reserve(
    arguments: &PoolFiles,
    job: &JobId,
    step: Option<&StepId>,
    request: &VniRequest,
) -> Result<Report, Failure> {
    #[derive(Serialize)]
    struct Reserved<'a> {
        job: &'a JobId,
        vnis: Vec<Vni>,
        /// Whether the job already had them.
        again: bool,
    }
    let mut open = Open::existing(arguments)?;
    let reserved = match step {
        Some(step) => open.pool.share(job, step, request, Timestamp::now()),
        None => open.pool.reserve(job, request, Timestamp::now()),
    }
    .map_err(|error| of_reserve(&error))?;
    let _pool = open.keep(reserved.event.as_ref())?;
    let vnis: Vec<Vni> = reserved.vnis.iter().collect();
    let text = match &reserved.vnis {
        Allotment::Set(vnis) => vnis.to_string(),
        // In the form that --vnis of cxi job accepts.
        _ => vnis
            .iter()
            .map(Vni::to_string)
            .collect::<Vec<_>>()
            .join(","),
    };
    let json = Reserved {
        job,
        again: reserved.event.is_none(),
        vnis,
    };
    Ok(Report::new(text + "\n", &json))
}

pub(super) fn cancel(arguments: &PoolFiles, job: &JobId) -> Result<Report, Failure> {
    let mut open = Open::existing(arguments)?;
    let event = open.pool.cancel(job, Timestamp::now());
    let event = event.map_err(|error| of_pool(&error))?;
    let _pool = open.keep(Some(&event))?;
    let text = format!("Job {job} has no VNIs any more: they may be used again\n");
    Ok(changed(text, Some(&event)))
}

pub(super) fn release(
    arguments: &PoolFiles,
    job: &JobId,
    nodes: &[NodeName],
    step: Option<&StepId>,
) -> Result<Report, Failure> {
    let mut open = Open::existing(arguments)?;
    let event = match step {
        Some(step) => open
            .pool
            .leave(job, step, nodes, Timestamp::now())
            .map(Some),
        None => open.pool.release(job, nodes, Timestamp::now()),
    }
    .map_err(|error| of_pool(&error))?;
    let pool = open.keep(event.as_ref())?;
    let text = state_of(&pool, job);
    Ok(changed(text, event.as_ref()))
}

pub(super) fn confirm(
    arguments: &PoolFiles,
    job: Option<&JobId>,
    node: Option<&NodeName>,
    stray: Option<Vni>,
    operator: bool,
) -> Result<Report, Failure> {
    let mut open = Open::existing(arguments)?;
    let pool = &mut open.pool;
    let event = match (job, node, stray) {
        (_, _, Some(vni)) => pool.operator_release_stray(vni, Timestamp::now()),
        (Some(job), Some(node), None) => pool.confirm(job, node, Timestamp::now()),
        (Some(job), None, None) if operator => pool.operator_release(job, Timestamp::now()),
        (Some(job), None, None) => pool.confirm_all(job, Timestamp::now()),
        (None, _, None) => return Err(Failure::bad_input("no job: name one, or --stray VNI")),
    }
    .map_err(|error| of_pool(&error))?;
    let pool = open.keep(Some(&event))?;
    let text = match (job, stray) {
        (Some(job), _) => state_of(&pool, job),
        (None, Some(vni)) => format!("VNI {vni}: {}\n", free_again(&pool)),
        (None, None) => String::new(),
    };
    Ok(changed(text, Some(&event)))
}

/// What happened to a job's VNIs.
fn state_of(pool: &VniPool, job: &JobId) -> String {
    match pool.job(job) {
        None => format!(
            "Job {job} has no VNIs any more: they {}\n",
            free_again(pool)
        ),
        Some(held) => format!(
            "Job {job}: {}, {}\n",
            held.vnis,
            super::show::phase(&held.phase)
        ),
    }
}

/// When a VNI whose services are destroyed may be reused.
fn free_again(pool: &VniPool) -> String {
    let rest = pool.config().rest_time();
    if rest.is_zero() {
        return "may be used again".to_owned();
    }
    let rest = humantime::format_duration(rest);
    format!("rest for {rest} before they may be used again")
}

pub(super) fn reconcile(
    arguments: &PoolFiles,
    common: &Common,
    node: Option<&NodeName>,
    seen: Option<&IdSet>,
) -> Result<Report, Failure> {
    let node = match node {
        Some(node) => node.clone(),
        None => this_node()?,
    };
    match seen {
        Some(seen) => compare(arguments, &node, seen),
        // The NICs are queried first, so that the pool's state is newer than what they show.
        None => reading(common, |nics| {
            let mut seen = IdSet::new();
            for (_, listed) in crate::service::all(nics.devices())? {
                seen.extend(listed.service.vnis().iter().map(Vni::get));
            }
            compare(arguments, &node, &seen)
        }),
    }
}

fn compare(arguments: &PoolFiles, node: &NodeName, seen: &IdSet) -> Result<Report, Failure> {
    #[derive(Serialize)]
    struct Compared<'a> {
        node: &'a NodeName,
        seen: &'a IdSet,
        strays: &'a IdSet,
        waiting_again: &'a [JobId],
        unseen: &'a [JobId],
        outside: &'a IdSet,
    }
    let mut open = Open::existing(arguments)?;
    let result = open.pool.reconcile(node, seen, Timestamp::now());
    let _pool = open.keep(result.event.as_ref())?;
    let mut text = String::new();
    if !result.strays.is_empty() {
        text += &format!(
            "VNIs {} are on {node} and no job has them: they are not assigned until it no longer \
             shows them\n",
            result.strays
        );
    }
    for job in &result.waiting_again {
        text += &format!("Job {job} is released and still on {node}: it waits for it now\n");
    }
    for job in &result.unseen {
        text += &format!(
            "Job {job} waits for {node}, which shows none of its VNIs: if none of its prologs can \
             still be running, cxi vni confirm {job} --node {node}\n"
        );
    }
    if !result.outside.is_empty() {
        text += &format!(
            "VNIs {} are on {node} and not of this pool\n",
            result.outside
        );
    }
    if text.is_empty() {
        text = format!("{node} shows nothing that the pool does not know\n");
    }
    let json = Compared {
        node,
        seen,
        strays: &result.strays,
        waiting_again: &result.waiting_again,
        unseen: &result.unseen,
        outside: &result.outside,
    };
    Ok(Report::new(text, &json))
}

/// The host name of this machine.
pub(crate) fn this_node() -> Result<NodeName, Failure> {
    let name = nix::unistd::gethostname().map_err(|errno| {
        Failure::new(Exit::Failed, format!("this machine has no name: {errno}"))
    })?;
    NodeName::new(&name.to_string_lossy())
        .map_err(|error| Failure::bad_input(error.to_string()).hint("Name the node with --node."))
}
