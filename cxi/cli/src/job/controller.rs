//! `cxi job reserve` and `release`: the controller's decisions, made once for all nodes of a job.

use std::collections::BTreeMap;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use cxi::Vni;
use cxi_job::pool::{Timestamp, VniRequest};
use cxi_job::{JobId, NodeName};
use serde::Serialize;

use super::collectives;
use super::record_args::{ReleaseArgs, ReserveArgs};
use crate::exit::{Exit, Failure};
use crate::input;
use crate::options::Common;
use crate::output::Report;
use crate::records::controller::{Component, Decision, Decisions};
use crate::settings::{self, Allowed, Settings};
use crate::vni::{Open, PoolFiles, of_pool, of_reserve};

/// How often a job that waits for VNIs tries again.
const POLL: Duration = Duration::from_millis(200);
/// Ids of all jobs of a cluster.
const LONGEST_QUEUE: u64 = 64 << 20;

#[derive(Serialize)]
struct Reserved<'a> {
    job: &'a JobId,
    vnis: &'a [Vni],
}

#[derive(Serialize)]
struct Released {
    released: Vec<JobId>,
}

/// The controller's directory of decisions.
pub(super) fn decisions(settings: &Settings) -> Result<Decisions, Failure> {
    let directory = settings
        .get(&settings::CONTROLLER_RECORDS)?
        .ok_or_else(|| {
            Failure::bad_input("no directory for what the controller decides")
                .hint("The setting controller.records names it; nodes must see it, too.")
        })?;
    Ok(Decisions::new(directory))
}

pub(super) fn reserve(arguments: &ReserveArgs, common: &Common) -> Result<Report, Failure> {
    let settings = &common.settings;
    settings::no_earlier_file(settings)?;
    let decisions = decisions(settings)?;
    let files = arguments.pool.files(settings)?;
    let wanted = vnis_wanted(arguments, settings)?;
    let deadline = Instant::now() + settings.or(arguments.vni_wait, &settings::CONTROLLER_WAIT)?;
    loop {
        let held = decisions.lock(files.wait)?;
        let mut warnings = collect(&decisions, &files)?;
        match decide(arguments, wanted, &decisions, &files, settings) {
            Err(failure)
                if matches!(failure.kind(), Exit::NotEnough | Exit::Busy)
                    && Instant::now() < deadline =>
            {
                drop(held);
                thread::sleep(POLL);
            }
            decided => {
                let (decision, known) = decided?;
                drop(held);
                match collectives::reserve(&decision, &decisions, settings) {
                    Ok(warning) => warnings.extend(warning),
                    Err(failure) => {
                        if !known {
                            take_back(&decision.job, &decisions, &files)?;
                        }
                        return Err(failure);
                    }
                }
                let vnis = &decision.vnis;
                let text: Vec<String> = vnis.iter().map(Vni::to_string).collect();
                let json = Reserved {
                    job: &decision.job,
                    vnis,
                };
                return Ok(Report::new(text.join(",") + "\n", &json).with_warnings(warnings));
            }
        }
    }
}

/// How many VNIs the job should have.
fn vnis_wanted(arguments: &ReserveArgs, settings: &Settings) -> Result<u8, Failure> {
    let network = &arguments.network;
    let is_allowed = |key, asked, option: &str| match (settings.get(key)?, asked) {
        (Allowed::None, true) => Err(Failure::bad_input(format!(
            "network option {option}: this site does not allow it"
        ))),
        (Allowed::All, _) | (Allowed::User, true) => Ok(true),
        (Allowed::User | Allowed::None, false) => Ok(false),
    };
    let single = &settings::SINGLE_NODE_VNI;
    let single = is_allowed(single, network.single_node_vni, "single_node_vni")?;
    let shared = is_allowed(&settings::JOB_VNI, network.job_vni, "job_vni")?;
    let several = arguments.nodes.names().len() > 1 || arguments.component.is_some();
    let any = !network.no_vni && (single || several);
    Ok(if any { 1 + u8::from(shared) } else { 0 })
}

/// Under the lock; also whether there was a decision before.
fn decide(
    arguments: &ReserveArgs,
    wanted: u8,
    decisions: &Decisions,
    files: &PoolFiles,
    settings: &Settings,
) -> Result<(Decision, bool), Failure> {
    let job = &arguments.job;
    let component = arguments.component.as_ref().unwrap_or(job);
    let before = decisions.find_running(job)?;
    if let Some(before) = before.as_ref().filter(|before| before.uid != arguments.uid) {
        return Err(Failure::bad_input(format!(
            "job {job} is one of uid {}, not {}",
            before.uid, arguments.uid
        )));
    }
    // The options of the first component apply to all.
    let wanted = before
        .as_ref()
        .map_or(usize::from(wanted), |before| before.vnis.len());
    let vnis = match u8::try_from(wanted) {
        Ok(count @ 1..) => {
            let mut request = VniRequest::vnis(count);
            if let Some(tenant) = arguments.tenant.clone() {
                request = request.for_tenant(tenant);
            }
            let step = component.as_str().parse().map_err(|error| {
                Failure::bad_input(format!("invalid component '{component}': {error}"))
            })?;
            let mut open = Open::existing(files)?;
            let reserved = open.pool.share(job, &step, &request, Timestamp::now());
            let reserved = reserved.map_err(|error| of_reserve(&error))?;
            open.keep(reserved.event.as_ref())?;
            reserved.vnis.iter().collect()
        }
        _ => Vec::new(),
    };
    let known = before.is_some();
    let mut decision = before.unwrap_or_else(|| Decision {
        job: job.clone(),
        uid: arguments.uid,
        vnis: Vec::new(),
        network: arguments.network.clone(),
        components: BTreeMap::new(),
        collectives: false,
    });
    decision.vnis = vnis;
    let nodes = match decision.components.get(component) {
        // Its epilog was never reported: what its nodes have must be confirmed, too.
        Some(before) if before.nodes != arguments.nodes => before.nodes.and(&arguments.nodes),
        _ => arguments.nodes.clone(),
    };
    let begins = Component {
        nodes,
        ended: false,
    };
    decision.components.insert(component.clone(), begins);
    decision.collectives = collectives::wanted(&decision, settings)?;
    decisions.begin(&decision, component)?;
    Ok((decision, known))
}

/// Takes a decision back: nodes wait for a reservation, so none has begun.
fn take_back(job: &JobId, decisions: &Decisions, files: &PoolFiles) -> Result<(), Failure> {
    let _held = decisions.lock(files.wait)?;
    let mut open = Open::existing(files)?;
    let event = open.pool.cancel(job, Timestamp::now());
    open.keep(Some(&event.map_err(|error| of_pool(&error))?))?;
    decisions.take_back(job)
}

/// Frees the VNIs of jobs that all nodes have confirmed; returns what is wrong with others, as
/// warnings.
fn collect(decisions: &Decisions, files: &PoolFiles) -> Result<Vec<String>, Failure> {
    let mut warnings = Vec::new();
    for job in decisions.jobs_ended()? {
        match decisions.find(&job) {
            Ok(Some(decision)) if decisions.missing(&decision)?.is_empty() => {
                if !decision.vnis.is_empty() {
                    free(&job, files)?;
                }
                decisions.forget(&job)?;
            }
            Ok(_) => {}
            // The others' VNIs are free all the same.
            Err(failure) => warnings.push(failure.message()),
        }
    }
    Ok(warnings)
}

/// Takes a job out of the pool that all its nodes have confirmed, if it is still there.
fn free(job: &JobId, files: &PoolFiles) -> Result<(), Failure> {
    drain(job, files)?;
    let mut open = Open::existing(files)?;
    if open.pool.job(job).is_none() {
        return Ok(());
    }
    let event = open.pool.confirm_all(job, Timestamp::now());
    let event = event.map_err(|error| of_pool(&error))?;
    open.keep(Some(&event)).map(|_| ())
}

/// Ends a job's use of its VNIs, if it has them still.
fn drain(job: &JobId, files: &PoolFiles) -> Result<(), Failure> {
    let mut open = Open::existing(files)?;
    if open.pool.job(job).is_none() {
        return Ok(());
    }
    let event = open.pool.release(job, &[], Timestamp::now());
    let event = event.map_err(|error| of_pool(&error))?;
    open.keep(event.as_ref()).map(|_| ())
}

pub(super) fn release(arguments: &ReleaseArgs, common: &Common) -> Result<Report, Failure> {
    let decisions = decisions(&common.settings)?;
    let files = arguments.pool.files(&common.settings)?;
    let queued = arguments.unless_in.as_deref().map(read_queue).transpose()?;
    let mut warnings = Vec::new();
    warnings.extend(collectives::release(
        arguments,
        &decisions,
        &common.settings,
    )?);
    let _held = decisions.lock(files.wait)?;
    let mut released = Vec::new();
    let jobs = match &arguments.job {
        Some(job) => vec![job.clone()],
        None => decisions.jobs_running()?,
    };
    for job in jobs {
        let Some(decision) = decisions.find_running(&job)? else {
            continue;
        };
        let ends = |component: &JobId| match (&queued, &arguments.component) {
            (Some(queued), _) => !queued.contains(component),
            (None, Some(wanted)) => wanted == component,
            (None, None) => true,
        };
        let components: Vec<JobId> = decision
            .components
            .iter()
            .filter(|(component, state)| !state.ended && ends(component))
            .map(|(component, _)| component.clone())
            .collect();
        end(decision, &components, &decisions, &files)?;
        released.extend(components);
    }
    warnings.extend(collect(&decisions, &files)?);
    if queued.is_some() {
        warnings.extend(collectives::sweep(&decisions, &common.settings)?);
    }
    let text = released.iter().map(|job| format!("Job {job} has ended\n"));
    let mut text: String = text.collect();
    if text.is_empty() {
        text += "Nothing to do: no such job runs\n";
    }
    let json = Released { released };
    let report = Report::new(text, &json).with_warnings(warnings);
    Ok(if json.released.is_empty() {
        report.nothing_to_do()
    } else {
        report
    })
}

fn end(
    mut decision: Decision,
    components: &[JobId],
    decisions: &Decisions,
    files: &PoolFiles,
) -> Result<(), Failure> {
    for component in components {
        if let Some(component) = decision.components.get_mut(component) {
            component.ended = true;
        }
    }
    if components.is_empty() {
        return Ok(());
    }
    if decision.ended() && !decision.vnis.is_empty() {
        drain(&decision.job, files)?;
    }
    decisions.end(&decision)
}

/// The jobs that the scheduler still has.
fn read_queue(path: &Path) -> Result<Vec<JobId>, Failure> {
    let input::Input { name, text } = input::read(path, LONGEST_QUEUE)?;
    let wrong = |error| Failure::bad_input(format!("{name}: {error}"));
    text.split_whitespace()
        .map(|id| JobId::new(id).map_err(wrong))
        .collect()
}

pub(super) fn confirm(job: &JobId, node: &NodeName, common: &Common) -> Result<Report, Failure> {
    #[derive(Serialize)]
    struct Confirmed<'a> {
        job: &'a JobId,
        node: &'a NodeName,
    }
    let decisions = decisions(&common.settings)?;
    let decision = decisions.find(job)?;
    if !decision.is_some_and(|decision| decision.names(node)) {
        let message = format!("no job {job} waits for {node}");
        return Err(Failure::new(Exit::NotFound, message));
    }
    decisions.confirm(job, node)?;
    let text = format!("Job {job}: confirmed for {node}\n");
    Ok(Report::new(text, &Confirmed { job, node }))
}
