//! A node of a site: prolog and epilog with a record, and the cleanup that knows which jobs live.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use std::{fmt, io};

use cxi::{Clock, Device, DeviceId, Host, Member, Resource, Service, SystemClock, Vni, VniRange};

use serde::Serialize;

use super::decisions::{Decision, Decisions};
use super::job_records::{self, CollectivesRecord, JobRecord, JobRecords};
use super::known_jobs::{KnownJobs, Sorted};
use super::ledger::JobLedger;
use super::network::NetworkOptions;
use super::service_records::ServiceRecords;
use super::shape::JobShape;
use super::store::RecordError;
use super::{SiteError, keys};
use crate::clean::CleanReport;
use crate::release::{FailedNic, Released, release_chosen};
use crate::{
    CleanPolicy, Grant, JobRequest, Node, NodeNic, ReleaseOptions, ReleaseReport, environment,
    live_vnis,
};
use cxi_site::collectives::{self, CollectivesEnv};
use cxi_site::pool::Timestamp;
use cxi_site::settings::Settings;
use cxi_site::{IdSet, JobId, NodeName, StepId};

/// Interval at which a prolog looks for the controller's decision. It has to look, because a file
/// system that many nodes mount does not notify one node of what another one writes.
const POLL: Duration = Duration::from_millis(100);
/// The variable of a job that has less of some resources than its size asks for.
const SCALED_BACK: &str = "SLINGSHOT_CXI_SCALED_BACK";

/// A node of a site, with a record for each of its jobs.
///
/// A record is on the disk before its job gets a service. It is removed after the job's last
/// service is gone and the controller knows. A cleanup therefore never takes a starting job for
/// one that has ended, and finds every service that a killed process leaves behind.
///
/// The lock of the NICs is never waited for while that of the records is held, which is held for a
/// moment only: jobs can start and end while an epilog waits for another job's busy service.
pub struct ComputeNode<'a> {
    settings: Settings,
    jobs: KnownJobs,
    open: Box<dyn Fn() -> Result<Node, SiteError> + Send + Sync + 'a>,
    nics: OnceLock<Node>,
    clock: Arc<dyn Clock>,
}

/// A job that starts on a node: made by [`new`](Self::new), then its fields are set.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StartingJob {
    /// The job; for a heterogeneous one, its leader.
    pub job: JobId,
    /// The component of a heterogeneous job; `None` for the job itself.
    pub component: Option<JobId>,
    /// Access that it gets; `None` for the controller's decision.
    pub access: Option<Access>,
    /// Size on this node.
    pub shape: JobShape,
    /// Destroy what the job has here for another request. Otherwise such a prolog is refused.
    pub replace: bool,
}

impl StartingJob {
    /// A job without limits that gets the access that the controller decides on.
    #[must_use]
    pub fn new(job: JobId) -> Self {
        Self { job, component: None, access: None, shape: JobShape::default(), replace: false }
    }
}

/// Members of services, and their VNIs.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Access {
    /// Members of the services.
    pub members: Vec<Member>,
    /// At most four VNIs, the application's first.
    pub vnis: Vec<Vni>,
    /// Instead, a block of VNIs.
    pub vni_range: Option<VniRange>,
}

impl Access {
    /// The access of these members to these VNIs.
    #[must_use]
    pub fn new(
        members: impl IntoIterator<Item = Member>,
        vnis: impl IntoIterator<Item = Vni>,
    ) -> Self {
        Self {
            members: members.into_iter().collect(),
            vnis: vnis.into_iter().collect(),
            vni_range: None,
        }
    }

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
    /// Services that it got; `None` for a job that wants no VNI.
    pub grant: Option<Grant>,
    /// The NICs on which rendezvous gets could not be turned off, with the reason: the job runs anyway.
    pub warnings: Vec<String>,
}

/// Scope of a cleanup: the services that it looks at, and the jobs that are live.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Cleaning {
    /// VNIs that the scheduler assigns: services with one of them that no record names are reported, and
    /// destroyed only with [`foreign`](Self::foreign).
    pub pool: IdSet,
    /// VNIs of live jobs that have no record.
    pub live: IdSet,
    /// A directory with the VNIs of further live jobs, for [`live_vnis`].
    pub live_from: Option<PathBuf>,
    /// No job is live, whatever the records say: the scheduler has just started.
    pub none_live: bool,
    /// Destroy services, too, that no record names and that have a VNI of the pool, or none yet: those of
    /// a scheduler that has crashed, or was replaced.
    pub foreign: bool,
    /// Only report.
    pub dry_run: bool,
}

impl Cleaning {
    /// A cleanup of a node whose scheduler assigns these VNIs; live are the jobs that have records.
    #[must_use]
    pub fn new(pool: IdSet) -> Self {
        Self { pool, ..Self::default() }
    }
}

/// Result of a cleanup.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct Cleaned {
    /// Services that it found and destroyed.
    #[serde(flatten)]
    pub clean: CleanReport,
    /// The jobs that have ended, and of which nothing is left now.
    pub ended: Vec<JobId>,
    /// The records that cannot be used, with the reasons. They were put aside, unless this was a dry run.
    pub broken: Vec<String>,
}

/// Variables that a step of a job sets in its environment.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct StepEnvironment {
    /// The variables to set.
    pub set: Vec<(&'static str, String)>,
    /// The variables to remove first.
    pub clear: Vec<&'static str>,
}

impl<'a> ComputeNode<'a> {
    pub(super) fn open(settings: &Settings, name: NodeName) -> Result<Self, SiteError> {
        let wait = settings.get(&keys::WAIT)?;
        let records = JobRecords::new(settings.get(&keys::NODE_RECORDS)?, wait, settings);
        let directory = settings.get(&keys::CONTROLLER_RECORDS)?;
        let lock = keys::node_lock(settings)?;
        Ok(Self {
            settings: settings.clone(),
            jobs: KnownJobs {
                name,
                records,
                services: ServiceRecords::of(settings)?,
                decisions: directory.map(|directory| Decisions::new(directory, settings)),
            },
            open: Box::new(move || Ok(Node::discover(&Host::system())?.with_lock(lock.clone()))),
            nics: OnceLock::new(),
            clock: Arc::new(SystemClock),
        })
    }

    /// Sets how the NICs are opened, with their [lock](Node::with_lock): at most once, and only if a
    /// call needs them. The default is all NICs of this machine, with the lock of the settings.
    #[must_use]
    pub fn nics(mut self, open: impl Fn() -> Result<Node, SiteError> + Send + Sync + 'a) -> Self {
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
            let (decision, reservation) = self.begin_again(job)?;
            let access = Access::new([Member::Uid(decision.uid)], decision.vnis);
            (access, decision.network, Some(decision.uid), reservation)
        };
        // A decision without VNIs is for a job that wants none.
        let wants_none = uid.is_some() && access.vnis.is_empty();
        // An invalid request leaves no record.
        let request = if wants_none {
            None
        } else {
            Some(access.request(&starting.shape, &network, &self.settings)?)
        };
        let mut record = JobRecord {
            job: job.clone(),
            members: access.members,
            vnis: request.as_ref().map(JobRequest::vnis),
            running: [component.clone()].into(),
            decided: uid.is_some(),
            disable_rdzv_get: network.disable_rdzv_get,
            grant: None,
            made: Vec::new(),
            begun: Vec::new(),
            sizes: [(component.clone(), starting.shape.to_string())].into(),
            boot: job_records::boot_id(),
        };
        // Before there is a service: otherwise nothing would say whose it is.
        let earlier = self.begin(&mut record, component, starting.replace)?;
        let Some(request) = request else {
            return Ok(Started { grant: None, warnings: Vec::new() });
        };
        let allocated = self.allocate(&record, component, &request, |ledger, grant| {
            let _held = self.jobs.records.lock()?;
            ledger.close(grant)?;
            Ok(self.jobs.records.keep_reservation(job, uid, reservation.as_ref())?)
        });
        let (node, grant, mut warnings) = allocated.map_err(|error| {
            let is_left = matches!(&error, SiteError::Allocate(error) if error.left_something());
            error.and_left(self.give_up(job, component, earlier.as_ref(), is_left).err())
        })?;
        warnings.extend(shares(&record, component, earlier.as_ref(), &grant));
        if network.disable_rdzv_get {
            warnings.extend(disable_rdzv_get(node, &grant));
        }
        Ok(Started { grant: Some(grant), warnings })
    }

    /// Makes the services of a record, or adopts those that it made before, and keeps what the job got.
    /// Also returns what else has their VNIs.
    fn allocate(
        &self,
        record: &JobRecord,
        component: &JobId,
        request: &JobRequest,
        keep: impl FnOnce(&JobLedger<'_>, &Grant) -> Result<(), SiteError>,
    ) -> Result<(&Node, Grant, Vec<String>), SiteError> {
        let node = self.node()?;
        self.has_all_nics(node)?;
        let (job, found) = (&record.job, OnceLock::new());
        let ledger = JobLedger { jobs: &self.jobs, node, job, component, found };
        let grant = node.allocate_with(request, &ledger)?;
        if let Err(error) = keep(&ledger, &grant) {
            return Err(error.and_left(self.undo(&record.job, Some(component), &grant).err()));
        }
        let found = ledger.found.into_inner();
        let others = found.iter().flat_map(|found| &found.others).map(Released::shares).collect();
        Ok((node, grant, others))
    }

    /// The controller's decision for a job that begins. If an epilog was here before, as after a prolog
    /// that failed, its VNIs are in use again.
    fn begin_again(&self, job: &JobId) -> Result<(Decision, Option<CollectivesRecord>), SiteError> {
        let decided = self.decided(job)?;
        let Some(decisions) = &self.jobs.decisions else { return Ok(decided) };
        if !decisions.has_confirmed(job, &self.jobs.name)? {
            return Ok(decided);
        }
        decisions.unconfirm(job, &self.jobs.name)?;
        // The controller may have ended it until then.
        let decided = decisions.find_complete(job)?;
        decided.ok_or_else(|| SiteError::EndedMeanwhile(job.clone()))
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

    /// Refuses a job on a node with a dead NIC: it would run slower than its user knows, or get stuck.
    fn has_all_nics(&self, node: &Node) -> Result<(), SiteError> {
        let Some(expected) = self.settings.get(&keys::NODE_NICS)? else { return Ok(()) };
        let usable = u32::try_from(node.usable().count()).unwrap_or(u32::MAX);
        if usable >= expected.get() {
            return Ok(());
        }
        let problems = node.nics().iter().filter(|nic| !nic.is_usable()).map(|nic| {
            let problems = nic.problems().iter().map(ToString::to_string);
            format!("{}: {}", nic.id(), problems.collect::<Vec<_>>().join("; "))
        });
        Err(SiteError::MissingNics { usable, expected: expected.get(), why: problems.collect() })
    }

    /// Writes the record of a component that begins. Returns the one that was there before.
    fn begin(
        &self,
        record: &mut JobRecord,
        component: &JobId,
        replace: bool,
    ) -> Result<Option<JobRecord>, SiteError> {
        let held = self.jobs.records.lock()?;
        // Nothing is left of what an earlier boot made.
        let mut before = self.jobs.record(&record.job)?.filter(JobRecord::is_of_this_boot);
        let asks_for_more = |before: &JobRecord| {
            let size = before.sizes.get(component);
            !before.has_services_of(record)
                || size.is_some_and(|size| record.sizes.get(component) != Some(size))
        };
        if let Some(other) = before.take_if(|before| asks_for_more(before)) {
            drop(held);
            if !other.running.is_empty() && !replace {
                return Err(SiteError::OtherRequest {
                    job: record.job.clone(),
                    has: other.request(component),
                    asks: record.request(component),
                });
            }
            // Its epilog was not finished, or this is the order.
            let retry = self.settings.get(&keys::RETRY_BUSY)?;
            let options = ReleaseOptions::until(retry).clock(&*self.clock);
            let release = self.release(&other, &options)?;
            if release.code().is_some() {
                return Err(SiteError::Left(release));
            }
            return self.begin_anew(record, None);
        }
        drop(held);
        self.begin_anew(record, before)
    }

    /// Writes the record of a component that begins, with what its job has already.
    fn begin_anew(
        &self,
        record: &mut JobRecord,
        before: Option<JobRecord>,
    ) -> Result<Option<JobRecord>, SiteError> {
        let _held = self.jobs.records.lock()?;
        self.jobs.shares_no_vni(record)?;
        if let Some(before) = &before {
            record.running.extend(before.running.iter().cloned());
            let sizes = before.sizes.iter();
            record.sizes.extend(sizes.map(|(component, size)| (component.clone(), size.clone())));
            record.grant.clone_from(&before.grant);
            record.made.clone_from(&before.made);
            record.begun.clone_from(&before.begun);
            record.boot.clone_from(&before.boot);
        }
        self.jobs.records.write(record)?;
        Ok(before)
    }

    /// All services of the node's NICs.
    fn list_services(&self) -> Result<Vec<(DeviceId, Service)>, SiteError> {
        Ok(self.node()?.services(|_, _| true)?)
    }

    fn sort(&self, record: &JobRecord) -> Result<Sorted, SiteError> {
        self.jobs.sort(self.node()?, record)
    }

    /// Returns whether every NIC that can be opened says that nothing of the job is left.
    fn has_none(&self, sorted: &Sorted) -> Result<bool, SiteError> {
        let node = self.node()?;
        let is_open =
            |nic: &FailedNic| node.nic(nic.device).is_some_and(|nic| nic.device().is_some());
        Ok(sorted.own.is_empty() && !sorted.nics.iter().any(is_open))
    }

    /// Destroys what a job made here, and says what else has its VNIs.
    fn release(
        &self,
        record: &JobRecord,
        options: &ReleaseOptions<'_>,
    ) -> Result<ReleaseReport, SiteError> {
        if record.vnis.is_none() {
            return Ok(ReleaseReport::default());
        }
        let Sorted { own, others, shared, nics, .. } = self.sort(record)?;
        let keep_none = |_: &Device| Ok(BTreeSet::new());
        let mut services = release_chosen(self.node()?, &own, &keep_none, options);
        services.extend(others);
        services.sort_by_key(|released| (released.device, released.service));
        Ok(ReleaseReport { services, nics, shared })
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
        // An earlier prolog made them all, and its job runs.
        if grant.services.iter().all(|entry| entry.adopted) {
            return Ok(());
        }
        let release = self.node()?.undo(grant);
        let held = self.jobs.records.lock()?;
        let record = self.jobs.records.read(job)?;
        drop(held);
        if let Some(mut record) = record {
            record.running.remove(component.unwrap_or(job));
            if release.code().is_none() {
                let made = grant.services.iter().filter(|entry| !entry.adopted);
                let made: Vec<_> = made.map(|entry| (entry.device, entry.service)).collect();
                record.made.retain(|one| !made.contains(&(one.device, one.service)));
            }
            self.settle(&record)?;
        }
        match release.code() {
            None => Ok(()),
            Some(_) => Err(SiteError::Left(release)),
        }
    }

    /// Takes back the record of a prolog that failed: what was there before counts again. Only if it left
    /// something behind, that may be among the services that it has begun.
    fn give_up(
        &self,
        job: &JobId,
        component: &JobId,
        earlier: Option<&JobRecord>,
        is_left: bool,
    ) -> Result<(), SiteError> {
        let held = self.jobs.records.lock()?;
        // An epilog may have ended it, and has seen to what is left.
        let Some(mut record) = self.jobs.records.read(job)? else { return Ok(()) };
        if earlier.is_none_or(|earlier| !earlier.running.contains(component)) {
            record.running.remove(component);
            record.sizes.remove(component);
        }
        match earlier {
            Some(earlier) => {
                if !is_left {
                    record.made.clone_from(&earlier.made);
                    record.begun.clone_from(&earlier.begun);
                }
                Ok(self.jobs.records.write(&record)?)
            }
            None if is_left => {
                drop(held);
                self.settle(&record)
            }
            None => self.forget(&record),
        }
    }

    /// Writes the record of a job of which no component runs any more, or removes it if nothing is left
    /// of the job.
    fn settle(&self, record: &JobRecord) -> Result<(), SiteError> {
        let is_left = !record.running.is_empty() || self.is_left(record)?;
        let _held = self.jobs.records.lock()?;
        if is_left {
            return Ok(self.jobs.records.write(record)?);
        }
        self.forget(record)
    }

    /// Returns whether this node has services of a job.
    fn is_left(&self, record: &JobRecord) -> Result<bool, SiteError> {
        if record.vnis.is_none() {
            return Ok(false);
        }
        let sorted = self.sort(record)?;
        Ok(!self.has_none(&sorted)?)
    }

    /// Ends a job on this node, or a component of it: by its record, or else by what the controller
    /// decided. Nothing is released if neither contains the job, or another component still runs here.
    /// Confirms to the controller when nothing is left.
    ///
    /// Only services that the record names are destroyed. What else has one of the job's VNIs is in the
    /// report; as long as it is there, the VNI is not free, and the node does not confirm.
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
        let record = match self.jobs.record(job)? {
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
        let release = self.release(&record, options)?;
        if release.code().is_none() {
            let are_free = release.foreign().next().is_none() && !release.shared;
            self.finish(&record, are_free)?;
        }
        Ok(release)
    }

    /// Nothing is left of a job: notifies the controller, and then removes the record. In the opposite
    /// order, a node that is reset in between would never confirm.
    ///
    /// Ends a record. While others have its VNIs, the controller must not hear that they are free:
    /// the record stays for a cleanup. Returns whether the job is finished.
    fn finish(&self, record: &JobRecord, are_free: bool) -> Result<bool, SiteError> {
        let _held = self.jobs.records.lock()?;
        let now = self.jobs.records.read(&record.job)?;
        // The job may have been started again in the meantime.
        if now.is_some_and(|now| now.running != record.running) {
            return Ok(false);
        }
        if let (true, Some(decisions)) = (record.decided, &self.jobs.decisions) {
            if !are_free {
                return Ok(false);
            }
            decisions.confirm(&record.job, &self.jobs.name)?;
        }
        self.forget(record)?;
        Ok(true)
    }

    /// Removes the record of a job of which nothing is left, and turns on rendezvous gets, unless
    /// another job of this node wants them off.
    fn forget(&self, record: &JobRecord) -> Result<(), SiteError> {
        let off = |other: &JobRecord| other.disable_rdzv_get && other.job != record.job;
        if record.disable_rdzv_get
            && record.vnis.is_some()
            && !self.jobs.records.all()?.0.iter().any(off)
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
        let broken = if cleaning.dry_run { self.jobs.records.all()?.1 } else { self.set_aside()? };
        let ended = self.jobs.ended(cleaning.none_live)?;
        let jobs = &self.jobs;
        let text = |error: SiteError| io::Error::other(error.to_string());
        let owners = || jobs.owners(cleaning.none_live, None).map_err(text);
        let live = || {
            let recorded = jobs.live_vnis(cleaning.none_live).map_err(text)?;
            let more = cleaning.live_from.as_deref().map(live_vnis).transpose()?;
            Ok(recorded.union(&cleaning.live).union(&more.unwrap_or_default()))
        };
        let policy = CleanPolicy::new(cleaning.pool.clone())
            .owners(&owners)
            .live(&live)
            .foreign(cleaning.foreign)
            .dry_run(cleaning.dry_run);
        let clean = self.node()?.clean(&policy, options).map_err(SiteError::Live)?;
        let mut done = Vec::new();
        for record in ended.iter().filter(|_| !cleaning.dry_run) {
            let sorted = self.sort(record)?;
            if self.has_none(&sorted)?
                && self.finish(record, sorted.others.is_empty() && !sorted.shared)?
            {
                done.push(record.job.clone());
            }
        }
        if !cleaning.dry_run {
            // What was done is reported even if these have to wait for the next time.
            let _ = self.jobs.records.remove_unfinished();
            let _ = self.jobs.services.tidy(self.node()?);
            let _ = self.jobs.records.note_cleanup(Timestamp::now());
        }
        let broken = broken.iter().map(ToString::to_string).collect();
        Ok(Cleaned { clean, ended: done, broken })
    }

    /// Puts the records aside that cannot be used; returns what is wrong with them.
    fn set_aside(&self) -> Result<Vec<RecordError>, SiteError> {
        if self.jobs.records.all()?.1.is_empty() {
            return Ok(Vec::new());
        }
        let _held = self.jobs.records.lock()?;
        let broken = self.jobs.records.all()?.1;
        for error in &broken {
            JobRecords::set_aside(error)?;
        }
        Ok(broken)
    }

    /// The services of which no record says who made them: another scheduler's, another tool's, or of a
    /// record that is lost. Those of the system are not looked at.
    ///
    /// # Errors
    ///
    /// A NIC or the records cannot be read.
    pub fn foreign(&self) -> Result<Vec<(DeviceId, Service)>, SiteError> {
        let services = self.list_services()?;
        let owners = self.jobs.owners(false, None)?;
        let makers = owners.of(&services);
        let foreign = services.iter().zip(makers).filter(|((_, service), maker)| {
            maker.is_none() && !service.id().is_default() && !service.is_system()
        });
        Ok(foreign.map(|(found, _)| *found).collect())
    }

    /// Time at which [`clean`](Self::clean) last came to its end; `None` if it did not since the node started.
    ///
    /// # Errors
    ///
    /// [`SiteError::Record`].
    pub fn last_cleanup(&self) -> Result<Option<Timestamp>, SiteError> {
        Ok(self.jobs.records.last_cleanup()?)
    }

    /// The jobs that have a record on this node, and what is wrong with records that cannot be used.
    /// A user other than root sees their own.
    ///
    /// # Errors
    ///
    /// [`SiteError::Record`].
    pub fn list(&self) -> Result<(Vec<JobRecord>, Vec<RecordError>), SiteError> {
        Ok(self.jobs.records.all()?)
    }

    /// Returns the controller's decision for a job, if there is one.
    ///
    /// # Errors
    ///
    /// [`SiteError::NoController`] without [`keys::CONTROLLER_RECORDS`], or the decision cannot be read.
    pub fn decision(&self, job: &JobId) -> Result<Option<Decision>, SiteError> {
        let decisions = self.jobs.decisions.as_ref().ok_or(SiteError::NoController)?;
        Ok(decisions.find(job)?)
    }

    /// Returns the variables that a step of a job sets in its environment. Needs no privilege other
    /// than to be the job's user, and asks no NIC.
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

/// Says that a component of a heterogeneous job uses services that another one of another size made.
fn shares(
    record: &JobRecord,
    component: &JobId,
    earlier: Option<&JobRecord>,
    grant: &Grant,
) -> Option<String> {
    let own = record.sizes.get(component)?;
    let mut others = earlier?.sizes.iter().filter(|(other, _)| *other != component);
    let (other, size) = others.find(|(_, size)| *size != own)?;
    grant.services.iter().any(|entry| entry.adopted).then(|| {
        format!(
            "{component} ({own}) shares the services that were made for {other} ({size}), with their \
             limits"
        )
    })
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
