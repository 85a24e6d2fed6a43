//! Commands that change a pool.

use std::num::NonZeroU16;

use cxi::Vni;
use cxi_job::pool::{Allotment, Changed, Event, PoolConfig, Timestamp, VniPool, VniRequest};
use cxi_job::{IdSet, JobId, NodeName, StepId, TenantName};
use serde::Serialize;

use super::cli::ConfigArgs;
use super::file::{PoolFile, of_change};
use super::{of_config, of_pool, of_reserve};
use crate::exit::{Exit, Failure};
use crate::node::reading;
use crate::options::Common;
use crate::output::Report;

/// The result of a change, for programs; without an event there was nothing to do.
fn changed(text: String, event: Option<&Event>) -> Report {
    #[derive(Serialize)]
    struct Logged<'a> {
        #[serde(skip_serializing_if = "Option::is_none")]
        event: Option<&'a Event>,
    }
    let report = Report::new(text, &Logged { event });
    if event.is_none() {
        report.nothing_to_do()
    } else {
        report
    }
}

pub(super) fn configure(file: &PoolFile, config: &ConfigArgs) -> Result<Report, Failure> {
    let config = of_arguments(config);
    // An unusable configuration leaves no file behind.
    let mut new = VniPool::new(config.clone()).map_err(|error| of_config(&error))?;
    let at = Timestamp::now();
    let (mut pool, made) = file.open_or_new(config.clone(), at)?;
    let event = if made {
        new.record_config(at)
            .map_err(|error| of_pool(&error))?
            .event
    } else {
        let changed = pool.change(at, |pool, at| pool.reconfigure(config.clone(), at));
        changed.map_err(|error| of_change(error, of_pool))?.event
    };
    let metrics = pool.pool().metrics(at);
    let what = match (made, &event) {
        (true, _) => "Made",
        (false, Some(_)) => "Changed",
        (false, None) => "Left as it was:",
    };
    let text = format!(
        "{what} the pool {}: {} VNIs, {} of them free\n",
        file.path.display(),
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
    file: &PoolFile,
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
    let mut pool = file.open()?;
    let reserved = pool.change(Timestamp::now(), |pool, now| match step {
        Some(step) => pool.share(job, step, request, now),
        None => pool.reserve(job, request, now),
    });
    let reserved = reserved.map_err(|error| of_change(error, of_reserve))?;
    let vnis: Vec<Vni> = reserved.result.iter().collect();
    let text = match &reserved.result {
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

pub(super) fn cancel(file: &PoolFile, job: &JobId) -> Result<Report, Failure> {
    let mut pool = file.open()?;
    let cancelled = pool.change(Timestamp::now(), |pool, now| pool.cancel(job, now));
    let cancelled = cancelled.map_err(|error| of_change(error, of_pool))?;
    let text = format!("Job {job} has no VNIs any more: they may be used again\n");
    Ok(changed(text, cancelled.event.as_ref()))
}

pub(super) fn release(
    file: &PoolFile,
    job: &JobId,
    nodes: &[NodeName],
    step: Option<&StepId>,
) -> Result<Report, Failure> {
    let mut pool = file.open()?;
    let released = pool.change(Timestamp::now(), |pool, now| match step {
        Some(step) => pool.leave(job, step, nodes, now),
        None => pool.release(job, nodes, now),
    });
    let released = released.map_err(|error| of_change(error, of_pool))?;
    let text = state_of(pool.pool(), job);
    Ok(changed(text, released.event.as_ref()))
}

pub(super) fn confirm(
    file: &PoolFile,
    job: Option<&JobId>,
    node: Option<&NodeName>,
    stray: Option<Vni>,
    operator: bool,
) -> Result<Report, Failure> {
    let mut pool = file.open()?;
    let confirmed = pool.change(Timestamp::now(), |pool, now| match (job, node, stray) {
        (_, _, Some(vni)) => pool.operator_release_stray(vni, now),
        (Some(job), Some(node), None) => pool.confirm(job, node, now),
        (Some(job), None, None) if operator => pool.operator_release(job, now),
        (Some(job), None, None) => pool.confirm_all(job, now),
        // The command line wants a job or a VNI.
        (None, _, None) => Ok(Changed::nothing()),
    });
    let confirmed = confirmed.map_err(|error| of_change(error, of_pool))?;
    let pool = pool.pool();
    let text = match (job, stray) {
        (Some(job), _) => state_of(pool, job),
        (None, Some(vni)) => format!("VNI {vni}: {}\n", free_again(pool)),
        (None, None) => String::new(),
    };
    Ok(changed(text, confirmed.event.as_ref()))
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
    file: &PoolFile,
    common: &Common,
    node: Option<&NodeName>,
    seen: Option<&IdSet>,
) -> Result<Report, Failure> {
    let node = match node {
        Some(node) => node.clone(),
        None => this_node()?,
    };
    match seen {
        Some(seen) => compare(file, &node, seen),
        // The NICs are queried first, so that the pool's state is newer than what they show.
        None => reading(common, |nics| {
            let mut seen = IdSet::new();
            for (_, listed) in crate::service::all(nics.devices())? {
                seen.extend(listed.service.vnis().iter().map(Vni::get));
            }
            compare(file, &node, &seen)
        }),
    }
}

fn compare(file: &PoolFile, node: &NodeName, seen: &IdSet) -> Result<Report, Failure> {
    #[derive(Serialize)]
    struct Compared<'a> {
        node: &'a NodeName,
        seen: &'a IdSet,
        strays: &'a IdSet,
        waiting_again: &'a [JobId],
        unseen: &'a [JobId],
        outside: &'a IdSet,
    }
    let mut pool = file.open()?;
    let compared = pool.change(Timestamp::now(), |pool, now| {
        Ok(pool.reconcile(node, seen, now))
    });
    let result = compared.map_err(|error| of_change(error, of_pool))?.result;
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
