//! `cxi vni`: a pool of VNIs in a file or in etcd.

pub(crate) mod cli;

use std::slice;
use std::time::Duration;

use cxi::Vni;
use cxi_job::cluster::{Adopted, Mismatch, Site, keys};
use cxi_site::pool::{
    Allotment, Changed, Event, Holding, Metrics, Phase, PoolConfig, PoolError, Stray, Timestamp,
    VniPool, VniRequest,
};
use cxi_site::{IdSet, JobId, NodeName, TenantName};
use cxi_vni_etcd::SitePool;
use serde::Serialize;
use serde_json::json;

use crate::exit::{Exit, Failure};
use crate::node::{reading, this_node};
use crate::options::Common;
use crate::output::shapes::{Vnis, each};
use crate::output::{Columns, Report, joined, or_dash};
use crate::service::found::{all, named_vnis};
use cli::{ConfigArgs, ConfirmArgs, ReleaseArgs, ReserveArgs, VniCommand};

pub(crate) fn run(command: &VniCommand, common: &Common) -> Result<Report, Failure> {
    let store = &SitePool::of(&common.settings)?;
    match command {
        VniCommand::Configure(config) => configure(store, config),
        VniCommand::Reserve(arguments) => reserve(store, common, arguments),
        VniCommand::Lead => lead(store),
        VniCommand::Cancel { job } => cancel(store, job),
        VniCommand::Release(arguments) => release(store, arguments),
        VniCommand::Confirm(arguments) => confirm(store, arguments),
        VniCommand::Show { job } => show(store, job.as_ref()),
        VniCommand::Reconcile { records: true, .. } => reconcile_records(store, common),
        VniCommand::Reconcile { node, seen, .. } => {
            reconcile(store, common, node.as_ref(), seen.as_ref())
        }
    }
}

/// The result of a change, for programs. If there is no event, there was nothing to do.
fn changed(text: String, event: Option<&Event>) -> Report {
    #[derive(Serialize)]
    struct Logged<'a> {
        #[serde(skip_serializing_if = "Option::is_none")]
        event: Option<&'a Event>,
    }
    Report::new(text, &Logged { event }).nothing_to_do_if(event.is_none())
}

fn configure(store: &SitePool, config: &ConfigArgs) -> Result<Report, Failure> {
    let configured = store.configure(&of_arguments(config))?;
    let metrics = configured.pool.metrics(Timestamp::now());
    let event = configured.event.as_ref();
    let what = match (configured.made, event) {
        (true, _) => "Made",
        (false, Some(_)) => "Changed",
        (false, None) => "Left as it was:",
    };
    let text = format!(
        "{what} the pool {}: {}, {} of them free\n",
        store.place(),
        number_of(metrics.total),
        metrics.free
    );
    let outside = match metrics.outside {
        0 => None,
        1 => Some("1 VNI in use is no longer in the pool: it stays with its job".to_owned()),
        several => Some(format!(
            "{several} VNIs in use are no longer in the pool: they stay with their jobs"
        )),
    };
    Ok(changed(text, event).with_warnings(outside))
}

fn of_arguments(arguments: &ConfigArgs) -> PoolConfig {
    let mut config = PoolConfig::new(arguments.vnis.clone()).rest(arguments.rest);
    if let Some(excluded) = &arguments.exclude {
        config = config.exclude(excluded);
    }
    for (name, vnis) in &arguments.tenant {
        config = config.tenant(name.clone(), vnis.clone());
    }
    config
}

fn reserve(store: &SitePool, common: &Common, arguments: &ReserveArgs) -> Result<Report, Failure> {
    let job = &arguments.job;
    let mut request = match (arguments.block, arguments.for_steps) {
        (Some(size), _) => VniRequest::block(size),
        (None, Some(count)) => VniRequest::for_steps(count),
        (None, None) => VniRequest::vnis(arguments.count),
    };
    if let Some(tenant) = &arguments.tenant {
        request = request.for_tenant(tenant.clone());
    }
    if let Some(adopted) = adopt(store, common)? {
        let others = adopted.vnis.iter().filter(|(other, _)| *other != job);
        request = request.except(others.flat_map(|(_, vnis)| vnis).map(|vni| vni.get()).collect());
    }
    let mut pool = store.open()?;
    let reserved = pool.change(Timestamp::now(), |pool, now| pool.reserve(job, &request, now))?;
    let vnis: Vec<Vni> = reserved.result.iter().collect();
    let text = match &reserved.result {
        Allotment::Set(vnis) => vnis.to_string(),
        // In the form that the option --vnis of cxi job accepts.
        _ => joined(&vnis, ","),
    };
    // Without an event, the job already had them.
    let json = json!({"job": job, "vnis": vnis, "again": reserved.event.is_none()});
    Ok(Report::new(text + "\n", &json))
}

fn lead(store: &SitePool) -> Result<Report, Failure> {
    let epoch = store.lead()?;
    let text = match epoch {
        Some(epoch) => format!("This controller leads {}: epoch {epoch}\n", store.place()),
        None => "Nothing to do: a pool in a file has one controller\n".to_owned(),
    };
    Ok(Report::of(text, "epoch", &epoch).nothing_to_do_if(epoch.is_none()))
}

fn cancel(store: &SitePool, job: &JobId) -> Result<Report, Failure> {
    let mut pool = store.open()?;
    let cancelled = pool.change(Timestamp::now(), |pool, now| pool.cancel(job, now))?;
    let text = format!("Job {job} no longer has VNIs: they may be used again\n");
    Ok(changed(text, cancelled.event.as_ref()))
}

fn release(store: &SitePool, arguments: &ReleaseArgs) -> Result<Report, Failure> {
    let ReleaseArgs { job, nodes } = arguments;
    let mut pool = store.open()?;
    let released = pool.change(Timestamp::now(), |pool, now| pool.release(job, nodes, now))?;
    let text = state_of(pool.pool(), job);
    Ok(changed(text, released.event.as_ref()))
}

fn confirm(store: &SitePool, arguments: &ConfirmArgs) -> Result<Report, Failure> {
    let (job, node) = (&arguments.job, &arguments.node);
    let mut pool = store.open()?;
    let confirmed = pool.change(Timestamp::now(), |pool, now| {
        match (job, node, arguments.stray) {
            (_, _, Some(vni)) => pool.operator_release_stray(vni, now),
            (Some(job), Some(node), None) => pool.confirm(job, node, now),
            (Some(job), None, None) => pool.confirm_all(slice::from_ref(job), now),
            // The command line requires a job or a VNI.
            (None, _, None) => Ok(Changed::nothing()),
        }
    })?;
    let pool = pool.pool();
    let text = match (job, arguments.stray) {
        (Some(job), _) => state_of(pool, job),
        (None, Some(vni)) => format!("VNI {vni}: {}\n", free_again(pool)),
        (None, None) => String::new(),
    };
    Ok(changed(text, confirmed.event.as_ref()))
}

/// Returns the state of a job's VNIs.
fn state_of(pool: &VniPool, job: &JobId) -> String {
    match pool.job(job) {
        None => format!("Job {job} no longer has VNIs: they {}\n", free_again(pool)),
        Some(held) => format!("Job {job}: {}, {}\n", held.vnis, phase(&held.phase)),
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

/// Tells the pool of the jobs that have a record; `None` where there are no records.
fn adopt(store: &SitePool, common: &Common) -> Result<Option<Adopted>, Failure> {
    if common.settings.get(&keys::CONTROLLER_RECORDS)?.is_none() {
        return Ok(None);
    }
    // Not where there is no pool: the records would be made there.
    drop(store.open()?);
    let site = Site::open(common.settings.clone())?;
    Ok(Some(site.controller(store)?.adopt()?))
}

fn reconcile_records(store: &SitePool, common: &Common) -> Result<Report, Failure> {
    let Some(adopted) = adopt(store, common)? else {
        return Err(Failure::bad_input("no records: expected the setting controller.records"));
    };
    let mut text = of_records(&adopted);
    if text.is_empty() {
        text += "The pool and the records agree\n";
    }
    let report = Report::new(text, &json!({"records": in_json(&adopted)}));
    Ok(ending(report, &adopted))
}

fn of_records(adopted: &Adopted) -> String {
    let mut text = String::new();
    for job in &adopted.jobs {
        let vnis = adopted.vnis.get(job).map(|vnis| joined(vnis, ",")).unwrap_or_default();
        text += &format!("Job {job} has VNI {vnis} by its record: the pool did not know that\n");
    }
    for mismatch in &adopted.mismatches {
        let severity = if mismatch.is_harmful() { "error" } else { "info" };
        text += &format!("{severity}: {mismatch}\n");
    }
    text
}

fn in_json(adopted: &Adopted) -> serde_json::Value {
    json!({"adopted": adopted.jobs, "mismatches": adopted.mismatches})
}

fn ending(report: Report, adopted: &Adopted) -> Report {
    if adopted.mismatches.iter().any(Mismatch::is_harmful) {
        return report.ending_with(Exit::Findings as u8);
    }
    report
}

fn reconcile(
    store: &SitePool,
    common: &Common,
    node: Option<&NodeName>,
    seen: Option<&IdSet>,
) -> Result<Report, Failure> {
    let node = node.cloned().map_or_else(this_node, Ok)?;
    // First: otherwise the VNIs of jobs with a record are strays.
    let adopted = adopt(store, common)?;
    let adopted = adopted.as_ref();
    match seen {
        Some(seen) => compare(store, &node, seen, adopted),
        // The NICs are queried first, so that the pool's state is newer than what they show.
        None => reading(common, |nics| {
            let found = all(nics.devices())?;
            let seen = named_vnis(found.iter().map(|(_, found)| &found.service));
            compare(store, &node, &seen, adopted)
        }),
    }
}

fn compare(
    store: &SitePool,
    node: &NodeName,
    seen: &IdSet,
    adopted: Option<&Adopted>,
) -> Result<Report, Failure> {
    let mut pool = store.open()?;
    let compared = pool
        .change::<_, PoolError>(Timestamp::now(), |pool, now| Ok(pool.reconcile(node, seen, now)));
    let result = compared?.result;
    let mut text = adopted.map(of_records).unwrap_or_default();
    if !result.strays.is_empty() {
        let (is, it) = if result.strays.len() == 1 { ("is", "it is") } else { ("are", "they are") };
        text += &format!(
            "{} {is} on {node} and no job has {}: {it} not assigned until {it} no longer there\n",
            of_set(&result.strays),
            if result.strays.len() == 1 { "it" } else { "them" },
        );
    }
    for job in &result.waiting_again {
        text +=
            &format!("Job {job} is released but still on {node}: its VNIs now wait for {node}\n");
    }
    for job in &result.unseen {
        text += &format!(
            "Job {job} waits for {node}, which shows none of its VNIs: if none of its prologs can \
             still be running, cxi vni confirm {job} --node {node}\n"
        );
    }
    if !result.outside.is_empty() {
        let is = if result.outside.len() == 1 { "is" } else { "are" };
        text += &format!("{} {is} on {node} and not in this pool\n", of_set(&result.outside));
    }
    if text.is_empty() {
        text = format!("{node} shows nothing that the pool does not know\n");
    }
    let json = json!({
        "node": node,
        "seen": each(seen),
        "strays": each(&result.strays),
        "waiting_again": result.waiting_again,
        "unseen": result.unseen,
        "outside": each(&result.outside),
        "records": adopted.map(in_json),
    });
    let report = Report::new(text, &json);
    Ok(match adopted {
        Some(adopted) => ending(report, adopted),
        None => report,
    })
}

#[derive(Serialize)]
struct Entry<'a> {
    job: &'a JobId,
    #[serde(flatten)]
    vnis: Vnis,
    tenant: Option<&'a TenantName>,
    reserved_at: Timestamp,
    phase: &'static str,
    /// Since when it drains.
    since: Option<Timestamp>,
    /// The nodes that have not confirmed; null if they are not known.
    waits_for: Option<Vec<&'a NodeName>>,
}

impl<'a> Entry<'a> {
    fn new(job: &'a JobId, held: &'a Holding) -> Self {
        let (phase, since, waits_for) = match &held.phase {
            Phase::Reserved => ("reserved", None, Some(Vec::new())),
            Phase::Draining { since, waiting, nodes_known } => {
                ("draining", Some(*since), nodes_known.then(|| waiting.iter().collect()))
            }
            _ => ("unknown", None, None),
        };
        Self {
            job,
            vnis: (&held.vnis).into(),
            tenant: held.tenant.as_ref(),
            reserved_at: held.reserved_at,
            phase,
            since,
            waits_for,
        }
    }
}

#[derive(Serialize)]
struct StrayVni<'a> {
    vni: Vni,
    #[serde(flatten)]
    stray: &'a Stray,
}

fn show(store: &SitePool, job: Option<&JobId>) -> Result<Report, Failure> {
    let pool = store.look()?;
    let at = Timestamp::now();
    let mut jobs: Vec<(&JobId, &Holding)> =
        pool.jobs().filter(|(id, _)| job.is_none_or(|wanted| wanted == *id)).collect();
    if let (Some(job), true) = (job, jobs.is_empty()) {
        return Err(Failure::new(Exit::NotFound, format!("job {job} has no VNIs in the pool")));
    }
    jobs.sort_by_key(|(job, _)| *job);
    let metrics = pool.metrics(at);
    let mut text =
        if job.is_some() { String::new() } else { totals(pool.config().vnis(), &metrics) };
    if !jobs.is_empty() {
        let mut table = Columns::new(&["Job", "VNIs", "Tenant", "Since", "State"]);
        for (id, held) in &jobs {
            table.row([
                id.to_string(),
                held.vnis.to_set().to_string(),
                or_dash(held.tenant.as_ref()),
                age(at.since(held.reserved_at)),
                phase(&held.phase),
            ]);
        }
        text += &table.render(0);
    }
    for (vni, stray) in pool.strays().filter(|_| job.is_none()) {
        let nodes = joined(&stray.nodes, ", ");
        text += &format!("VNI {vni} is in use on {nodes}, but assigned to no job\n");
    }
    let jobs = jobs.into_iter().map(|(job, held)| Entry::new(job, held));
    let strays = pool.strays().map(|(vni, stray)| StrayVni { vni, stray });
    let json = json!({
        "pool": pool.config().vnis(),
        "total": metrics.total,
        "free": metrics.free,
        "reserved": metrics.reserved,
        "draining": metrics.draining,
        "resting": metrics.resting,
        "outside": metrics.outside,
        "jobs": jobs.collect::<Vec<_>>(),
        "strays": strays.collect::<Vec<_>>(),
    });
    Ok(Report::new(text, &json))
}

fn totals(configured: &IdSet, metrics: &Metrics) -> String {
    let mut text = format!(
        "VNIs {configured}: {} in the pool, {} free, {} reserved, {} draining, {} resting\n",
        metrics.total, metrics.free, metrics.reserved, metrics.draining, metrics.resting
    );
    if metrics.outside > 0 {
        text += &format!("{} in use are no longer in the pool\n", metrics.outside);
    }
    if let Some((holder, since)) = &metrics.oldest_draining {
        text += &format!("Longest draining: {holder}, for {}\n", age(*since));
    }
    text
}

/// With the noun, as in `VNI 1024` and `VNIs 1024-1025`.
fn of_set(vnis: &IdSet) -> String {
    let noun = if vnis.len() == 1 { "VNI" } else { "VNIs" };
    format!("{noun} {vnis}")
}

/// `1 VNI`, `2 VNIs`.
fn number_of(vnis: usize) -> String {
    if vnis == 1 { "1 VNI".to_owned() } else { format!("{vnis} VNIs") }
}

/// The state of a job's VNIs, in words.
fn phase(phase: &Phase) -> String {
    match phase {
        Phase::Reserved => "reserved".to_owned(),
        Phase::Draining { nodes_known: false, .. } => {
            "draining until all nodes are confirmed at once".to_owned()
        }
        Phase::Draining { waiting, .. } => {
            format!("draining, waits for {}", joined(waiting, ", "))
        }
        _ => "unknown".to_owned(),
    }
}

/// A duration, rounded to whole seconds.
fn age(time: Duration) -> String {
    humantime::format_duration(Duration::from_secs(time.as_secs())).to_string()
}
