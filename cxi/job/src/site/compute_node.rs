//! A node of a site: prolog and epilog with a record, and the cleanup that knows which jobs live.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use cxi::{Clock, Device, Host, Member, Resource, SystemClock, Vni, VniRange};

use serde::Serialize;

use super::decisions::{Decision, Decisions};
use super::job_records::{CollectivesRecord, JobRecord, JobRecords};
use super::network::NetworkOptions;
use super::shape::JobShape;
use super::{SiteError, keys};
use crate::clean::CleanReport;
use crate::collectives::{self, CollectivesEnv};
use crate::settings::Settings;
use crate::{
    CleanPolicy, Grant, IdSet, JobId, JobRequest, Node, NodeName, NodeNic, ReleaseOptions,
    ReleaseReport, StepId, environment, live_vnis,
};

/// How often a prolog looks for the controller's decision. It has to look, because a file system
/// that many nodes mount does not notify one node of what another one writes.
const POLL: Duration = Duration::from_millis(100);
/// The variable of a job that has less of some resources than its size asks for.
pub const SCALED_BACK: &str = "SLINGSHOT_CXI_SCALED_BACK";

/// A node of a site, with a record for each of its jobs.
///
/// A record is on the disk before its job gets a service. It is removed after the job's last
/// service is gone and the controller knows. A cleanup therefore never takes a starting job for
/// one that has ended, and finds every service that a killed process leaves behind.
///
/// The lock of the records and the lock of the NICs are never held at the same time, so that jobs
/// can start and end while an epilog waits for another job's busy service.
pub struct ComputeNode<'a> {
    settings: &'a Settings,
    jobs: KnownJobs,
    open: Box<dyn Fn() -> Result<Node, SiteError> + 'a>,
    nics: OnceCell<Node>,
    clock: Arc<dyn Clock>,
}

/// A job that starts on a node.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_structs, reason = "schedulers fill it in")]
pub struct StartingJob {
    /// The job; for a heterogeneous one, its leader.
    pub job: JobId,
    /// The component of a heterogeneous job; `None` for the job itself.
    pub component: Option<JobId>,
    /// What it gets; `None` for what the controller decided.
    pub access: Option<Access>,
    /// How large it is here.
    pub shape: JobShape,
}

/// Who may use services, on which VNIs.
#[derive(Clone, Debug, Default)]
#[allow(clippy::exhaustive_structs, reason = "schedulers fill it in")]
pub struct Access {
    /// Who.
    pub members: Vec<Member>,
    /// At most four VNIs, the application's first.
    pub vnis: Vec<Vni>,
    /// Instead, a block of VNIs.
    pub vni_range: Option<VniRange>,
}

impl Access {
    /// A request for these members and VNIs.
    ///
    /// # Errors
    ///
    /// [`SiteError::Setting`] or [`SiteError::Request`].
    pub fn request(
        &self,
        shape: &JobShape,
        network: &NetworkOptions,
        settings: &Settings,
    ) -> Result<JobRequest, SiteError> {
        let mut builder = JobRequest::builder().vnis(self.vnis.iter().copied());
        for member in &self.members {
            builder = builder.member(*member);
        }
        if let Some(range) = self.vni_range {
            builder = builder.vni_range(range);
        }
        Ok(shape.apply(builder, network, settings)?.build()?)
    }
}

/// A job that a prolog has started.
#[derive(Debug)]
#[non_exhaustive]
pub struct Started {
    /// What it got; `None` for a job that wants no VNI.
    pub grant: Option<Grant>,
    /// The NICs on which rendezvous gets could not be turned off, with the reason: the job runs anyway.
    pub warnings: Vec<String>,
}

/// Which services a cleanup looks at, and which jobs are live.
#[derive(Clone, Debug, Default)]
#[allow(clippy::exhaustive_structs, reason = "schedulers fill it in")]
pub struct Cleaning {
    /// VNIs that the scheduler assigns: only services with one of them are destroyed, and those of
    /// recorded jobs.
    pub pool: IdSet,
    /// VNIs of live jobs that have no record.
    pub live: IdSet,
    /// A directory with the VNIs of further live jobs, for [`live_vnis`].
    pub live_from: Option<PathBuf>,
    /// No job is live, whatever the records say: the scheduler has just started.
    pub none_live: bool,
    /// Only report.
    pub dry_run: bool,
}

/// What a cleanup did.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct Cleaned {
    /// What it found and destroyed.
    #[serde(flatten)]
    pub clean: CleanReport,
    /// The jobs that have ended, and of which nothing is left now.
    pub ended: Vec<JobId>,
}

/// What a step of a job sets in its environment.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct StepEnvironment {
    /// The variables to set.
    pub set: Vec<(&'static str, String)>,
    /// The variables to remove first.
    pub clear: Vec<&'static str>,
}

impl<'a> ComputeNode<'a> {
    pub(super) fn open(settings: &'a Settings, name: NodeName) -> Result<Self, SiteError> {
        let wait = settings.get(&keys::WAIT)?;
        let records = JobRecords::new(settings.get(&keys::NODE_RECORDS)?, wait);
        let directory = settings.get(&keys::CONTROLLER_RECORDS)?;
        let lock = keys::node_lock(settings)?;
        Ok(Self {
            settings,
            jobs: KnownJobs { name, records, decisions: directory.map(Decisions::new) },
            open: Box::new(move || Ok(Node::discover(&Host::system())?.with_lock(lock.clone()))),
            nics: OnceCell::new(),
            clock: Arc::new(SystemClock),
        })
    }

    /// Sets how the NICs are opened, with their [lock](Node::with_lock): at most once, and only if a
    /// call needs them. The default is all NICs of this machine, with the lock of the settings.
    #[must_use]
    pub fn nics(mut self, open: impl Fn() -> Result<Node, SiteError> + 'a) -> Self {
        self.open = Box::new(open);
        self
    }

    /// Sets the clock for waiting.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    fn node(&self) -> Result<&Node, SiteError> {
        if let Some(node) = self.nics.get() {
            return Ok(node);
        }
        let node = (self.open)()?;
        Ok(self.nics.get_or_init(|| node))
    }

    /// Makes a job's services, on all NICs or on none, and records them. Waits for the controller's
    /// decision. When repeated, adopts what the first call made.
    ///
    /// # Errors
    ///
    /// [`SiteError`]. The job has neither services nor a record then, except for what
    /// [`SiteError::Unfinished`] says.
    pub fn prolog(&self, starting: &StartingJob) -> Result<Started, SiteError> {
        let job = &starting.job;
        let component = starting.component.as_ref().unwrap_or(job);
        let (access, network, uid, reservation) = if let Some(access) = &starting.access {
            (access.clone(), NetworkOptions::default(), None, None)
        } else {
            let (decision, reservation) = self.decided(job)?;
            let access = Access {
                members: vec![Member::Uid(decision.uid)],
                vnis: decision.vnis,
                vni_range: None,
            };
            (access, decision.network, Some(decision.uid), reservation)
        };
        // A decision without VNIs is for a job that wants none.
        let wants_none = uid.is_some() && access.vnis.is_empty();
        // An invalid request leaves no record.
        let request = if wants_none {
            None
        } else {
            Some(access.request(&starting.shape, &network, self.settings)?)
        };
        let mut record = JobRecord {
            job: job.clone(),
            members: access.members,
            vnis: request.as_ref().map(JobRequest::vnis),
            running: [component.clone()].into(),
            decided: uid.is_some(),
            disable_rdzv_get: network.disable_rdzv_get,
            grant: None,
        };
        // Before there is a service: a cleanup would take it for an orphan.
        self.begin(&mut record)?;
        let Some(request) = request else {
            return Ok(Started { grant: None, warnings: Vec::new() });
        };
        let allocated = self.node().and_then(|node| Ok((node, node.allocate(&request)?)));
        let (node, grant) =
            allocated.map_err(|error| error.and_left(self.give_up(job, component).err()))?;
        if let Err(error) = self.keep(job, &grant, uid, reservation.as_ref()) {
            return Err(error.and_left(self.undo(job, Some(component), &grant).err()));
        }
        let warnings =
            if network.disable_rdzv_get { disable_rdzv_get(node, &grant) } else { Vec::new() };
        Ok(Started { grant: Some(grant), warnings })
    }

    /// The controller's decision, once it is complete.
    fn decided(&self, job: &JobId) -> Result<(Decision, Option<CollectivesRecord>), SiteError> {
        let decisions = self.jobs.decisions.as_ref().ok_or(SiteError::NoController)?;
        let waited = self.settings.get(&keys::WAIT)?;
        let deadline = self.clock.now() + waited;
        loop {
            match decisions.find_complete(job)? {
                Some(complete) => return Ok(complete),
                None if self.clock.now() < deadline => self.clock.sleep(POLL),
                None => {
                    // Without the directory, the node is at fault and not the job.
                    decisions.is_there()?;
                    let job = job.clone();
                    return Err(SiteError::Undecided { job, waited });
                }
            }
        }
    }

    /// Writes the record of a component that begins.
    fn begin(&self, record: &mut JobRecord) -> Result<(), SiteError> {
        let held = self.jobs.records.lock()?;
        let before = self.jobs.records.read(&record.job)?;
        if let Some(before) = before.as_ref().filter(|before| before.has_services_of(record)) {
            record.running.extend(before.running.iter().cloned());
            record.grant.clone_from(&before.grant);
            return Ok(self.jobs.records.write(record)?);
        }
        drop(held);
        // The job ran here before with other VNIs, and its end was never reported.
        if let Some(filter) = before.as_ref().and_then(JobRecord::filter) {
            let retry = self.settings.get(&keys::RETRY_BUSY)?;
            let options = ReleaseOptions::until(retry).clock(&*self.clock);
            let release = self.node()?.release(&filter, &options);
            if release.code().is_some() {
                return Err(SiteError::Left(release));
            }
        }
        let _held = self.jobs.records.lock()?;
        Ok(self.jobs.records.write(record)?)
    }

    /// Records what a job got.
    fn keep(
        &self,
        job: &JobId,
        grant: &Grant,
        uid: Option<u32>,
        reservation: Option<&CollectivesRecord>,
    ) -> Result<(), SiteError> {
        let _held = self.jobs.records.lock()?;
        if let Some(mut record) = self.jobs.records.read(job)? {
            record.grant = Some(grant.clone());
            self.jobs.records.write(&record)?;
        }
        Ok(self.jobs.records.keep_reservation(job, uid, reservation)?)
    }

    /// Undoes a prolog whose grant did not reach its caller: destroys the services that it made, and
    /// takes the component out of the record.
    ///
    /// # Errors
    ///
    /// [`SiteError`]: what is left, for an epilog or a cleanup.
    pub fn undo(
        &self,
        job: &JobId,
        component: Option<&JobId>,
        grant: &Grant,
    ) -> Result<(), SiteError> {
        let release = self.node()?.undo(grant);
        self.give_up(job, component.unwrap_or(job))?;
        match release.code() {
            None => Ok(()),
            Some(_) => Err(SiteError::Left(release)),
        }
    }

    /// Takes a component out of its job's record, and removes the record if nothing is left of the job.
    fn give_up(&self, job: &JobId, component: &JobId) -> Result<(), SiteError> {
        let _held = self.jobs.records.lock()?;
        let Some(mut record) = self.jobs.records.read(job)? else { return Ok(()) };
        record.running.remove(component);
        if record.running.is_empty() && self.nothing_left(&record)? {
            return self.forget(&record);
        }
        Ok(self.jobs.records.write(&record)?)
    }

    /// Whether this node has no services of a job any more.
    fn nothing_left(&self, record: &JobRecord) -> Result<bool, SiteError> {
        match record.filter() {
            None => Ok(true),
            Some(filter) => Ok(self.node()?.select(&filter)?.is_empty()),
        }
    }

    /// Ends a job on this node, or a component of it: by its record, or else by what the controller
    /// decided. Nothing is released if neither contains the job, or another component still runs here.
    /// Confirms to the controller when nothing is left.
    ///
    /// # Errors
    ///
    /// [`SiteError`]. What could not be destroyed is in the report, and a cleanup tries it again.
    pub fn epilog(
        &self,
        job: &JobId,
        component: Option<&JobId>,
        options: &ReleaseOptions<'_>,
    ) -> Result<ReleaseReport, SiteError> {
        let held = self.jobs.records.lock()?;
        let record = match self.jobs.records.read(job)? {
            Some(mut record) => {
                // Before its services go: a cleanup finishes an epilog that is killed.
                record.running.remove(component.unwrap_or(job));
                self.jobs.records.write(&record)?;
                Some(record)
            }
            // A node that was reset has no record, and still must confirm.
            None => self.jobs.forgotten(job)?,
        };
        drop(held);
        let Some(record) = record.filter(|record| record.running.is_empty()) else {
            return Ok(ReleaseReport::default());
        };
        let release = match record.filter() {
            Some(filter) => self.node()?.release(&filter, options),
            None => ReleaseReport::default(),
        };
        if release.code().is_none() {
            self.finish(&record)?;
        }
        Ok(release)
    }

    /// Nothing is left of a job: notifies the controller, and then removes the record. In the opposite
    /// order, a node that is reset in between would never confirm.
    fn finish(&self, record: &JobRecord) -> Result<(), SiteError> {
        let _held = self.jobs.records.lock()?;
        let now = self.jobs.records.read(&record.job)?;
        // The job may have been started again in the meantime.
        if now.is_some_and(|now| now.running != record.running) {
            return Ok(());
        }
        if let (true, Some(decisions)) = (record.decided, &self.jobs.decisions) {
            decisions.confirm(&record.job, &self.jobs.name)?;
        }
        self.forget(record)
    }

    /// Removes the record of a job of which nothing is left, and turns on rendezvous gets, unless
    /// another job of this node wants them off.
    fn forget(&self, record: &JobRecord) -> Result<(), SiteError> {
        let off = |other: &JobRecord| other.disable_rdzv_get && other.job != record.job;
        if record.disable_rdzv_get
            && record.vnis.is_some()
            && !self.jobs.records.all()?.iter().any(off)
        {
            let devices = self.node()?.nics().iter().filter_map(NodeNic::device);
            for device in devices.filter(|device| device.rdzv_get_default() == Some(true)) {
                device.set_rdzv_get_enabled(true)?;
            }
        }
        Ok(self.jobs.records.remove(&record.job)?)
    }

    /// Destroys what ended jobs left behind, and confirms to the controller.
    ///
    /// A job is live if its record names a component that runs, and the controller, if it decided the
    /// job, does not say that it has ended. If that cannot be read, nothing is destroyed.
    ///
    /// # Errors
    ///
    /// [`SiteError`]. What could not be destroyed is in the report.
    pub fn clean(
        &self,
        cleaning: &Cleaning,
        options: &ReleaseOptions<'_>,
    ) -> Result<Cleaned, SiteError> {
        let ended = self.jobs.ended(cleaning.none_live)?;
        let vnis = ended.iter().map(JobRecord::vni_set);
        let pool = vnis.fold(cleaning.pool.clone(), |pool, vnis| pool.union(&vnis));
        let jobs = &self.jobs;
        let live = || {
            let recorded = jobs.live_vnis(cleaning.none_live);
            let recorded = recorded.map_err(|error| io::Error::other(error.to_string()))?;
            let more = cleaning.live_from.as_deref().map(live_vnis).transpose()?;
            Ok(recorded.union(&cleaning.live).union(&more.unwrap_or_default()))
        };
        let policy = CleanPolicy::new(pool).live(&live).dry_run(cleaning.dry_run);
        let clean = self.node()?.clean(&policy, options).map_err(SiteError::Live)?;
        let mut done = Vec::new();
        for record in ended.iter().filter(|_| !cleaning.dry_run) {
            if self.nothing_left(record)? {
                self.finish(record)?;
                done.push(record.job.clone());
            }
        }
        if !cleaning.dry_run {
            // What was done is reported even if these have to wait for the next time.
            let _ = self.jobs.records.remove_unfinished();
        }
        Ok(Cleaned { clean, ended: done })
    }

    /// The jobs that have a record on this node.
    ///
    /// # Errors
    ///
    /// [`SiteError::Record`].
    pub fn list(&self) -> Result<Vec<JobRecord>, SiteError> {
        Ok(self.jobs.records.all()?)
    }

    /// What a step of a job sets in its environment. Needs no privilege other than to be the job's user,
    /// and asks no NIC.
    ///
    /// # Errors
    ///
    /// [`SiteError::NoRecord`] and [`SiteError::Starting`], or the record cannot be used.
    pub fn environment(
        &self,
        job: &JobId,
        step: Option<&StepId>,
    ) -> Result<StepEnvironment, SiteError> {
        let Some(record) = self.jobs.records.read(job)? else {
            let (path, job) = (self.jobs.records.path(job)?, job.clone());
            return Err(SiteError::NoRecord { job, path });
        };
        let mut found = StepEnvironment { set: Vec::new(), clear: environment::CLEAR.to_vec() };
        if record.vnis.is_none() {
            return Ok(found);
        }
        let grant = record.grant.ok_or_else(|| SiteError::Starting(job.clone()))?;
        found.set = grant.env()?.vars();
        let cut: BTreeSet<Resource> = grant.cuts().map(|cut| cut.resource).collect();
        if !cut.is_empty() {
            let cut: Vec<String> = cut.iter().map(Resource::to_string).collect();
            found.set.push((SCALED_BACK, cut.join(",")));
        }
        if let Some(CollectivesRecord { variables }) = self.jobs.records.reservation(job)? {
            let step = step.cloned().unwrap_or_else(StepId::every);
            let env =
                CollectivesEnv::inherit(|name| variables.get(name).map(OsString::from), step)?;
            found.set.extend(env.iter().flat_map(CollectivesEnv::vars));
            found.clear.extend(collectives::CLEAR);
        }
        Ok(found)
    }
}

/// The jobs that a node knows of.
#[derive(Debug)]
struct KnownJobs {
    name: NodeName,
    records: JobRecords,
    decisions: Option<Decisions>,
}

impl KnownJobs {
    fn lives(&self, record: &JobRecord, none_live: bool) -> Result<bool, SiteError> {
        if none_live || record.running.is_empty() {
            return Ok(false);
        }
        match &self.decisions {
            Some(decisions) if record.decided => {
                let decision = decisions.find(&record.job)?;
                Ok(decision.is_some_and(|decision| decision.runs_on(&self.name)))
            }
            _ => Ok(true),
        }
    }

    /// The jobs that have ended, and that this node has not confirmed.
    fn ended(&self, none_live: bool) -> Result<Vec<JobRecord>, SiteError> {
        let records = self.records.all()?;
        let recorded: BTreeSet<JobId> = records.iter().map(|record| record.job.clone()).collect();
        let mut ended = Vec::new();
        for record in records {
            if !self.lives(&record, none_live)? {
                ended.push(record);
            }
        }
        let Some(decisions) = &self.decisions else { return Ok(ended) };
        for job in decisions.ended_jobs()? {
            if !recorded.contains(&job)
                && !decisions.has_confirmed(&job, &self.name)?
                && let Some(record) = self.forgotten(&job)?
            {
                ended.push(record);
            }
        }
        Ok(ended)
    }

    /// The VNIs of the jobs that live.
    fn live_vnis(&self, none_live: bool) -> Result<IdSet, SiteError> {
        let mut live = IdSet::new();
        for record in self.records.all()? {
            if self.lives(&record, none_live)? {
                live = live.union(&record.vni_set());
            }
        }
        Ok(live)
    }

    /// A job that was on this node, by the controller's decision.
    fn forgotten(&self, job: &JobId) -> Result<Option<JobRecord>, SiteError> {
        let Some(decisions) = &self.decisions else { return Ok(None) };
        let decision = decisions.find(job)?;
        Ok(decision
            .filter(|decision| decision.is_on(&self.name))
            .map(|decision| JobRecord::of_decision(&decision)))
    }
}

/// Turns rendezvous gets off on those of the job's NICs where the driver has turned them on.
/// Returns what failed.
fn disable_rdzv_get(node: &Node, grant: &Grant) -> Vec<String> {
    let nics = grant.services.iter().map(|entry| node.nic(entry.device));
    let failed = |device: &Device| match device.rdzv_get_default() {
        Some(true) => device.set_rdzv_get_enabled(false).err().map(|error| error.to_string()),
        Some(false) => None,
        None => Some(format!("{}: sysfs does not say whether they are on", device.id())),
    };
    let failed = nics.flatten().filter_map(NodeNic::device).filter_map(failed);
    failed.map(|why| format!("rendezvous gets stay as they are: {why}")).collect()
}

impl fmt::Debug for ComputeNode<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ComputeNode").field("jobs", &self.jobs).finish_non_exhaustive()
    }
}
