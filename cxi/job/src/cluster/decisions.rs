//! Decisions of the controller, in a directory that all nodes read.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use cxi::Vni;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::network::NetworkOptions;
use super::store::{Format, PUBLIC, RecordError, cannot, name_of, names, remove};
use super::{CollectivesRecord, SiteError};
use cxi_site::HostList;
use cxi_site::durable::{self, FileLock, LockGuard, Owner};
use cxi_site::settings::Settings;
use cxi_site::{JobId, NodeName};

const DECISION: Format = Format {
    name: "decision",
    format: "cxi job decision",
    holds: "what the controller decided for a job",
};

/// The VNIs of a job, and the error of its record if they are known in spite of that.
pub(super) type KnownVnis = (Vec<Vni>, Option<RecordError>);

/// The file that says of a job that it has no VNIs.
const WITHOUT: &str = "without-vnis";

/// Decision for a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Decision {
    /// The job; for a heterogeneous one, its leader.
    pub job: JobId,
    /// Its user.
    pub uid: u32,
    /// Its VNIs, the application's first; empty for a job that wants none.
    pub vnis: Vec<Vni>,
    /// The user's options.
    pub network: NetworkOptions,
    /// The job itself, or each component of a heterogeneous job.
    pub components: BTreeMap<JobId, Component>,
    /// `true` if it has a reservation at the fabric manager, or a record that says why not: its
    /// nodes wait for that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub collectives: bool,
}

/// The part of a decision that concerns other jobs. All decisions are read for the start of a job, so
/// the rest, such as the nodes, is skipped.
#[derive(Deserialize)]
struct Held {
    vnis: Vec<Vni>,
}

/// A component of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Component {
    /// Nodes on which it runs.
    pub nodes: HostList,
    /// `true` if it has ended.
    pub ended: bool,
}

impl Decision {
    /// Returns whether a component of the job that has not ended is on a node.
    #[must_use]
    pub(crate) fn runs_on(&self, node: &NodeName) -> bool {
        let mut running = self.components.values().filter(|component| !component.ended);
        running.any(|component| component.nodes.contains(node.as_str()))
    }

    /// Returns whether a component of the job is or was on a node.
    #[must_use]
    pub(crate) fn is_on(&self, node: &NodeName) -> bool {
        let mut components = self.components.values();
        components.any(|component| component.nodes.contains(node.as_str()))
    }

    /// Returns whether all of the job has ended.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.components.values().all(|component| component.ended)
    }
}

/// The directory:
///
/// ```text
/// running/JOB/job.json          the decision
/// running/JOB/reservation.json  with hardware collectives
/// running/JOB/confirmed/NODE    empty: its services are gone there
/// running/JOB/without-vnis      empty: the job has none, even if its decision cannot be read
/// ended/JOB/...                 the same, once all of the job has ended
/// ```
///
/// Each change is one system call: creating, replacing or removing `job.json`, or moving `JOB`. A
/// controller that is killed between two of them leaves one of these states:
///
/// | directory of the job | the pool may have it | what finishes it |
/// |---|---|---|
/// | in `running`, without `job.json` | yes | reserving it again; ending it cancels it, as no node knows it |
/// | in `ended` | reserved, draining, or no longer | collecting frees it, once all nodes have confirmed |
/// | in `ended`, without `job.json` | no | collecting removes the rest |
///
/// Nodes do not take the controller's lock, because ten thousand of them would wait for each other:
/// each writes a file that no other node writes.
#[derive(Clone, Debug)]
pub(super) struct Decisions {
    directory: PathBuf,
    lock: FileLock,
}

impl Decisions {
    pub(super) fn new(directory: PathBuf, settings: &Settings) -> Self {
        let lock = settings.file_lock(directory.join(".lock"));
        Self { directory, lock }
    }

    fn running(&self) -> PathBuf {
        self.directory.join("running")
    }

    fn ended(&self) -> PathBuf {
        self.directory.join("ended")
    }

    fn swept(&self) -> PathBuf {
        self.directory.join("swept")
    }

    /// For the controller, on its machine: one change at a time.
    pub(super) fn lock(&self, wait: Duration) -> Result<LockGuard, SiteError> {
        for directory in [self.running(), self.ended()] {
            durable::create_dir(&directory).map_err(cannot(&directory, "created"))?;
        }
        Ok(self.lock.clone().wait(wait).acquire()?)
    }

    /// Returns the decision for a job, until all its nodes have confirmed; `None` before and after.
    pub(super) fn find(&self, job: &JobId) -> Result<Option<Decision>, RecordError> {
        Ok(self.place(job)?.map(|(_, decision)| decision))
    }

    /// Returns the decision for a job that runs.
    pub(super) fn find_running(&self, job: &JobId) -> Result<Option<Decision>, RecordError> {
        DECISION.read(&self.running().join(name_of(job)?).join("job.json"))
    }

    /// Returns the part of the decision that a node needs for a job that runs, once all of it is
    /// known.
    pub(super) fn find_complete(
        &self,
        job: &JobId,
    ) -> Result<Option<(Decision, Option<CollectivesRecord>)>, RecordError> {
        let Some(decision) = self.find_running(job)? else { return Ok(None) };
        if !decision.collectives {
            return Ok(Some((decision, None)));
        }
        let reservation = self.reservation(job)?;
        Ok(reservation.map(|reservation| (decision, Some(reservation))))
    }

    /// Returns the decision for a job that has ended.
    pub(super) fn find_ended(&self, job: &JobId) -> Result<Option<Decision>, RecordError> {
        let path = self.ended().join(name_of(job)?).join("job.json");
        let mut decision: Option<Decision> = DECISION.read(&path)?;
        // Where the record is says so, as moving it is all that ends a job.
        for component in decision.iter_mut().flat_map(|it| it.components.values_mut()) {
            component.ended = true;
        }
        Ok(decision)
    }

    /// The VNIs of a job that runs, or of one that has ended, and what is wrong with its record if they
    /// are known in spite of that.
    pub(super) fn vnis(&self, job: &JobId, ended: bool) -> Result<Option<KnownVnis>, RecordError> {
        let directory = if ended { self.ended() } else { self.running() };
        let path = directory.join(name_of(job)?).join("job.json");
        let Some(text) = DECISION.text(&path)? else { return Ok(None) };
        match DECISION.parse::<Held>(&text) {
            Ok(held) => Ok(Some((held.vnis, None))),
            Err(reason) => {
                let error = RecordError::Invalid { path: path.clone(), reason };
                let none = || match durable::exists(&path.with_file_name(WITHOUT)) {
                    Ok(true) => Some(Vec::new()),
                    _ => None,
                };
                match legible_vnis(&text).or_else(none) {
                    Some(vnis) => Ok(Some((vnis, Some(error)))),
                    None => Err(error),
                }
            }
        }
    }

    /// A job that ends in the meantime is first in one directory, then in the other.
    fn place(&self, job: &JobId) -> Result<Option<(PathBuf, Decision)>, RecordError> {
        let name = name_of(job)?;
        if let Some(decision) = self.find_running(job)? {
            return Ok(Some((self.running().join(name), decision)));
        }
        if let Some(decision) = self.find_ended(job)? {
            return Ok(Some((self.ended().join(name), decision)));
        }
        self.is_there().map(|()| None)
    }

    /// Nothing is known if the directory is not there: its file system is not mounted.
    pub(super) fn is_there(&self) -> Result<(), RecordError> {
        let running = self.running();
        let opened = durable::answers(&running).and_then(|()| File::open(&running));
        opened.map(|_| ()).map_err(cannot(&running, "read"))
    }

    /// Records that a node has destroyed the job's services. Repeating this changes nothing.
    pub(super) fn confirm(&self, job: &JobId, node: &NodeName) -> Result<(), RecordError> {
        let mut attempts = 0;
        loop {
            let Some((place, _)) = self.place(job)? else { return Ok(()) };
            let file = place.join("confirmed").join(node.as_str());
            attempts += 1;
            match durable::mark(&file) {
                // It has been moved since it was found, which happens once. After that, the
                // directory is missing only where the controller is removing the job: it was made
                // before the decision, and all nodes have confirmed.
                Err(error) if error.kind() == io::ErrorKind::NotFound && attempts < 3 => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                result => {
                    return result.map_err(cannot(&file, "created"));
                }
            }
        }
    }

    /// Takes back that a node has confirmed, as long as the job runs.
    pub(super) fn unconfirm(&self, job: &JobId, node: &NodeName) -> Result<(), RecordError> {
        let confirmed = self.running().join(name_of(job)?).join("confirmed");
        remove(&confirmed.join(node.as_str()))
    }

    /// Returns whether a node has confirmed.
    pub(super) fn has_confirmed(&self, job: &JobId, node: &NodeName) -> Result<bool, RecordError> {
        let Some((place, _)) = self.place(job)? else { return Ok(true) };
        let file = place.join("confirmed").join(node.as_str());
        durable::exists(&file).map_err(cannot(&file, "read"))
    }

    /// Makes the directory of a job before it is in the pool: a directory without a decision shows
    /// that its reservation was interrupted.
    pub(super) fn prepare(&self, job: &JobId, has_vnis: bool) -> Result<(), RecordError> {
        let place = self.running().join(name_of(job)?);
        let (confirmed, without) = (place.join("confirmed"), place.join(WITHOUT));
        durable::create_dir(&confirmed).map_err(cannot(&confirmed, "created"))?;
        if has_vnis {
            return Ok(());
        }
        durable::mark(&without).map_err(cannot(&without, "created"))
    }

    /// Returns whether there is a directory of a job that runs, without a decision.
    pub(super) fn is_unfinished(&self, job: &JobId) -> Result<bool, RecordError> {
        let place = self.running().join(name_of(job)?);
        let is_there = durable::exists(&place).map_err(cannot(&place, "read"))?;
        Ok(is_there && self.find_running(job)?.is_none())
    }

    /// Writes what was decided. The nodes of a component that begins have confirmed nothing yet.
    pub(super) fn begin(&self, decision: &Decision, component: &JobId) -> Result<(), RecordError> {
        let place = self.running().join(name_of(&decision.job)?);
        let confirmed = place.join("confirmed");
        let there: BTreeSet<String> = names(&confirmed)?.into_iter().collect();
        if let (false, Some(component)) = (there.is_empty(), decision.components.get(component)) {
            for node in component.nodes.names().iter().filter(|node| there.contains(*node)) {
                let file = confirmed.join(node);
                durable::may_change()
                    .and_then(|()| fs::remove_file(&file))
                    .map_err(cannot(&file, "removed"))?;
            }
        }
        DECISION.write(&place.join("job.json"), decision, PUBLIC)
    }

    fn reservation_path(&self, job: &JobId) -> Result<PathBuf, RecordError> {
        Ok(self.running().join(name_of(job)?).join("reservation.json"))
    }

    /// Returns the reservation of a running job at the fabric manager, once that is known.
    pub(super) fn reservation(
        &self,
        job: &JobId,
    ) -> Result<Option<CollectivesRecord>, RecordError> {
        CollectivesRecord::read(&self.reservation_path(job)?)
    }

    pub(super) fn keep_reservation(
        &self,
        job: &JobId,
        reservation: &CollectivesRecord,
    ) -> Result<(), RecordError> {
        reservation.write(&self.reservation_path(job)?, None)
    }

    /// Takes back a decision that no node has acted on, or an interrupted reservation.
    pub(super) fn take_back(&self, job: &JobId) -> Result<(), RecordError> {
        remove_job(&self.running().join(name_of(job)?))
    }

    /// Writes what has ended of a job; if all of it has, moves it to where nodes find the jobs that
    /// have ended.
    pub(super) fn end(&self, decision: &Decision) -> Result<(), RecordError> {
        let name = name_of(&decision.job)?;
        let (running, ended) = (self.running().join(name), self.ended().join(name));
        if !decision.ended() {
            return DECISION.write(&running.join("job.json"), decision, PUBLIC);
        }
        durable::answers(&running)
            .and_then(|()| durable::may_change())
            .and_then(|()| fs::rename(&running, &ended))
            .map_err(cannot(&running, "moved"))?;
        // The token is of no use to a job that has ended.
        remove(&ended.join("reservation.json"))
    }

    /// The jobs that run, and those whose reservation was interrupted.
    pub(super) fn running_jobs(&self) -> Result<Vec<JobId>, RecordError> {
        jobs_in(&self.running())
    }

    /// The jobs that have ended, and that not all nodes have confirmed.
    pub(super) fn ended_jobs(&self) -> Result<Vec<JobId>, RecordError> {
        jobs_in(&self.ended())
    }

    /// The nodes that have not confirmed yet.
    pub(super) fn missing(&self, decision: &Decision) -> Result<Vec<String>, RecordError> {
        let place = self.ended().join(name_of(&decision.job)?);
        let there: BTreeSet<String> = names(&place.join("confirmed"))?.into_iter().collect();
        let nodes = decision.components.values().flat_map(|component| component.nodes.names());
        let nodes: BTreeSet<String> = nodes.cloned().collect();
        Ok(nodes.difference(&there).cloned().collect())
    }

    /// Notes that what the scheduler has lost has ended.
    pub(super) fn note_sweep(&self) -> Result<(), RecordError> {
        let file = self.swept();
        durable::replace(&file, b"", Owner::Kept).map_err(cannot(&file, "written"))
    }

    /// When that was.
    pub(super) fn last_sweep(&self) -> Result<Option<SystemTime>, RecordError> {
        let file = self.swept();
        let metadata = durable::answers(&file).and_then(|()| fs::metadata(&file));
        match metadata.and_then(|metadata| metadata.modified()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            at => at.map(Some).map_err(cannot(&file, "read")),
        }
    }

    /// Forgets a job that has ended.
    pub(super) fn forget(&self, job: &JobId) -> Result<(), RecordError> {
        remove_job(&self.ended().join(name_of(job)?))
    }
}

/// The VNIs in a decision that is cut off behind them, as after a crash of the file system.
fn legible_vnis(text: &str) -> Option<Vec<Vni>> {
    let whole: Result<IgnoredAny, _> = serde_json::from_str(text);
    if !whole.is_err_and(|error| error.is_eof()) {
        return None;
    }
    let (before, rest) = text.split_once("\"vnis\":")?;
    let is_decision = before.contains(&format!("\"{}\"", DECISION.format));
    let list = rest.split_inclusive(']').next().filter(|list| list.ends_with(']'))?;
    is_decision.then(|| serde_json::from_str(list).ok())?
}

/// Removes the decision first: without it, no node creates a file there any more.
fn remove_job(place: &Path) -> Result<(), RecordError> {
    remove(&place.join("job.json"))?;
    match durable::may_change().and_then(|()| fs::remove_dir_all(place)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(cannot(place, "removed")),
    }
}

fn jobs_in(directory: &Path) -> Result<Vec<JobId>, RecordError> {
    Ok(names(directory)?.iter().filter_map(|name| JobId::new(name).ok()).collect())
}
