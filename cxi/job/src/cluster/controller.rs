//! The controller of a site: it decides once for all nodes of a job, and frees VNIs when all nodes
//! have confirmed.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use cxi::{Clock, SystemClock, Vni};

use super::SiteError;
use super::allowance::Allowance;
use super::decisions::{Component, Decision, Decisions};
use super::job_records::CollectivesRecord;
use super::keys::{self, Allowed};
use super::mismatch::Mismatch;
use super::network::NetworkOptions;
use super::pool_store::{Pool, PoolStore, Recorded};
use cxi_site::HostList;
use cxi_site::collectives::CollectivesEnv;
use cxi_site::fabric::{FabricError, FabricManager};
use cxi_site::pool::VniRequest;
use cxi_site::settings::Settings;
use cxi_site::{ErrorCode, JobId, NodeName, StepId, TenantName};

/// Interval at which a job that waits for VNIs tries again. It has to poll: nodes confirm by
/// writing files, and a VNI whose rest time ends notifies no process.
const POLL: Duration = Duration::from_millis(200);

/// The controller of a site. Several processes of one machine may act as it.
///
/// Its decision is on the disk before a node can act on it, and a VNI is free only after the record
/// says so: a controller that is killed at any point leaves a job that reserves too much, never a
/// VNI that two jobs have.
#[derive(Debug)]
pub struct Controller<'a> {
    decisions: Decisions,
    pool: Box<dyn PoolStore + 'a>,
    /// Longest time that an operation may take.
    wait: Duration,
    /// Longest time that the start of a job may take.
    start_wait: Duration,
    single_node_vni: Allowed,
    job_vni: Allowed,
    trees: u32,
    /// Number of nodes from which a job gets trees that does not ask for them.
    min_nodes: Option<NonZeroU32>,
    collectives_required: bool,
    /// Longest time that the start of a job waits for an answer of the fabric manager.
    collectives_wait: Duration,
    /// The manager, or why it cannot be asked; `None` for a site without hardware collectives.
    manager: Option<Result<FabricManager, FabricError>>,
    clock: Arc<dyn Clock>,
}

/// Request for a job: made by [`new`](Self::new), then its fields are set.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReserveRequest {
    /// The job; for a heterogeneous one, its leader, whose VNIs all components share.
    pub job: JobId,
    /// The component of a heterogeneous job; `None` for the job itself.
    pub component: Option<JobId>,
    /// Its user.
    pub uid: u32,
    /// Its nodes.
    pub nodes: HostList,
    /// The user's options.
    pub network: NetworkOptions,
    /// Number of VNIs, up to 4; `None` to follow the options and the settings.
    pub vnis: Option<u8>,
    /// The tenant whose share the VNIs are taken from.
    pub tenant: Option<TenantName>,
}

impl ReserveRequest {
    /// The request of a user's job on these nodes.
    #[must_use]
    pub fn new(job: JobId, uid: u32, nodes: HostList) -> Self {
        Self {
            job,
            component: None,
            uid,
            nodes,
            network: NetworkOptions::default(),
            vnis: None,
            tenant: None,
        }
    }

    fn component(&self) -> &JobId {
        self.component.as_ref().unwrap_or(&self.job)
    }
}

/// Jobs that a pool learned of from the records.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Adopted {
    /// The VNIs that each job has, by its record.
    pub vnis: BTreeMap<JobId, Vec<Vni>>,
    /// The jobs that the pool did not know, and now does.
    pub jobs: Vec<JobId>,
    /// In what it still differs from the records.
    pub mismatches: Vec<Mismatch>,
}

/// A result, with what went wrong without preventing it.
#[derive(Debug)]
#[must_use = "the warnings are for an administrator"]
#[non_exhaustive]
pub struct Done<T> {
    /// The result.
    pub result: T,
    /// Problems without a failure.
    pub warnings: Vec<Warning>,
}

/// Problem that did not prevent a result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Warning {
    /// The record of another job cannot be used: its VNIs stay reserved.
    #[error(transparent)]
    Job(SiteError),
    /// The job starts without hardware collectives.
    #[error("the job starts without hardware collectives: {0}")]
    WithoutCollectives(FabricError),
    /// The job's reservation is the one of an earlier attempt.
    #[error("job {0} keeps the reservation that it has: {1}")]
    EarlierReservation(JobId, FabricError),
    /// A reservation at the fabric manager is left; [`Controller::sweep`] releases it.
    #[error("{0}; the reservation is left until the next sweep")]
    ReservationLeft(FabricError),
    /// A reservation has disappeared from the fabric manager while its job runs.
    #[error(
        "job {0}: its reservation is not at the fabric manager any more: its programs go on, new ones \
         without hardware collectives"
    )]
    ReservationGone(JobId),
}

impl<'a> Controller<'a> {
    pub(super) fn open(settings: &Settings, pool: impl PoolStore + 'a) -> Result<Self, SiteError> {
        let directory = settings.get(&keys::CONTROLLER_RECORDS)?;
        Ok(Self {
            decisions: Decisions::new(directory.ok_or(SiteError::NoController)?, settings),
            pool: Box::new(pool),
            wait: settings.get(&keys::WAIT)?,
            start_wait: settings.get(&keys::CONTROLLER_WAIT)?,
            single_node_vni: settings.get(&keys::SINGLE_NODE_VNI)?,
            job_vni: settings.get(&keys::JOB_VNI)?,
            trees: settings.get(&keys::COLLECTIVES_TREES)?,
            min_nodes: settings.get(&keys::COLLECTIVES_MIN_NODES)?,
            collectives_required: settings.get(&keys::COLLECTIVES_REQUIRED)?,
            collectives_wait: settings.get(&keys::COLLECTIVES_WAIT)?,
            manager: None,
            clock: Arc::new(SystemClock),
        })
    }

    /// Sets the fabric manager for hardware collectives, or why it cannot be asked. Without one, no job
    /// gets them.
    #[must_use]
    pub fn fabric_manager(mut self, manager: Result<FabricManager, FabricError>) -> Self {
        self.manager = Some(manager);
        self
    }

    fn manager(&self) -> Option<Result<&FabricManager, FabricError>> {
        Some(self.manager.as_ref()?.as_ref().map_err(FabricError::clone))
    }

    /// Sets the clock for waiting.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Decides what a job gets, for its nodes to read. When repeated, returns the same VNIs.
    ///
    /// Waits for VNIs if none is free, and for nodes that have not confirmed an earlier run of the
    /// job. All of it takes no longer than the setting `controller.wait`: locks, the pool and the fabric
    /// manager included. If that is less than a second, the pool still has one.
    ///
    /// No job gets a VNI that the record of another one has, whatever the pool says: it may be an older
    /// copy, or a new one. The pool is told what it does not know.
    ///
    /// # Errors
    ///
    /// [`SiteError`]. The job has no VNIs then, unless it had them before.
    pub fn reserve(&self, request: &ReserveRequest) -> Result<Done<Decision>, SiteError> {
        let wanted = self.vnis_wanted(request)?;
        let time = self.allowance(self.start_wait);
        loop {
            let held = self.decisions.lock(time.to_wait())?;
            let mut warnings = self.collect_locked(time)?;
            let decided = self.decide(request, wanted, time, &mut warnings);
            let (decision, known) = match decided {
                Err(error)
                    if matches!(error.code(), ErrorCode::NotEnough | ErrorCode::Busy)
                        && !time.to_wait().is_zero() =>
                {
                    // Nodes confirm without the lock, but other jobs are decided with it.
                    drop(held);
                    self.clock.sleep(POLL.min(time.to_wait()));
                    continue;
                }
                decided => decided?,
            };
            // The fabric manager may take its time: other jobs do not wait for that.
            drop(held);
            match self.reserve_collectives(&decision, time) {
                Ok(warning) => warnings.extend(warning),
                Err(error) if known => return Err(error),
                Err(error) => {
                    let left = self.cancel(&decision.job, time.to_undo()).err();
                    return Err(error.and_left(left));
                }
            }
            return Ok(Done { result: decision, warnings });
        }
    }

    fn allowance(&self, time: Duration) -> Allowance<'_> {
        Allowance::new(&*self.clock, time)
    }

    fn pool<'s>(&'s self, time: Allowance<'s>) -> Pool<'s> {
        Pool { store: &*self.pool, time }
    }

    /// Returns the records' jobs, with the lock held.
    fn recorded(&self, warnings: &mut Vec<Warning>) -> Result<Recorded, SiteError> {
        let mut recorded = Recorded::default();
        let running = self.decisions.running_jobs()?.into_iter().map(|job| (job, false));
        let ended = self.decisions.ended_jobs()?.into_iter().map(|job| (job, true));
        for (job, ended) in running.chain(ended) {
            match self.decisions.vnis(&job, ended) {
                Ok(Some((vnis, broken))) => {
                    recorded.add(job, vnis, ended);
                    // Collecting warns of one that has ended.
                    warnings
                        .extend(broken.filter(|_| !ended).map(|error| Warning::Job(error.into())));
                }
                // Its reservation was interrupted, or it is being forgotten: no node knows of it.
                Ok(None) => {}
                Err(error) => {
                    recorded.unusable.push((job, error.to_string()));
                    // Collecting warns of one that has ended.
                    if !ended {
                        warnings.push(Warning::Job(error.into()));
                    }
                }
            }
        }
        Ok(recorded)
    }

    /// Tells the pool what the records say that it does not know, as after an older copy of it was
    /// restored, or a new one configured. Returns the jobs that it did not know, and in what it still
    /// differs from the records.
    ///
    /// # Errors
    ///
    /// [`SiteError`]: the records or the pool cannot be used.
    pub fn adopt(&self) -> Result<Adopted, SiteError> {
        let time = self.allowance(self.wait);
        let _held = self.decisions.lock(time.to_wait())?;
        let mut warnings = Vec::new();
        let recorded = self.recorded(&mut warnings)?;
        let (jobs, mismatches) = self.pool(time).adopt(&recorded)?;
        Ok(Adopted { vnis: recorded.vnis, jobs, mismatches })
    }

    /// Compares the pool with the records, and changes nothing.
    ///
    /// # Errors
    ///
    /// [`SiteError`]: the records or the pool cannot be used.
    pub fn compare(&self) -> Result<Vec<Mismatch>, SiteError> {
        self.decisions.is_there()?;
        let time = self.allowance(self.wait);
        let _held = self.decisions.lock(time.to_wait())?;
        let recorded = self.recorded(&mut Vec::new())?;
        self.pool(time).compare(&recorded)
    }

    /// Returns the number of VNIs that the job should have.
    fn vnis_wanted(&self, request: &ReserveRequest) -> Result<u8, SiteError> {
        if let Some(vnis) = request.vnis {
            return Ok(vnis);
        }
        let network = &request.network;
        let allows = |rule, asked, option| match (rule, asked) {
            (Allowed::None, true) => Err(SiteError::NotAllowed(option)),
            (Allowed::All, _) | (Allowed::User, true) => Ok(true),
            (Allowed::User | Allowed::None, false) => Ok(false),
        };
        let single = allows(self.single_node_vni, network.single_node_vni, "single_node_vni")?;
        let shared = allows(self.job_vni, network.job_vni, "job_vni")?;
        let several = request.nodes.names().len() > 1 || request.component.is_some();
        let any = !network.no_vni && (single || several);
        Ok(if any { 1 + u8::from(shared) } else { 0 })
    }

    /// Decides with the lock held. Also returns whether there was a decision before.
    fn decide(
        &self,
        request: &ReserveRequest,
        wanted: u8,
        time: Allowance<'_>,
        warnings: &mut Vec<Warning>,
    ) -> Result<(Decision, bool), SiteError> {
        let (job, component) = (&request.job, request.component());
        let before = self.decisions.find_running(job)?;
        if let Some(before) = before.as_ref().filter(|before| before.uid != request.uid) {
            return Err(SiteError::OtherUser {
                job: job.clone(),
                owner: before.uid,
                uid: request.uid,
            });
        }
        if self.decisions.find_ended(job)?.is_some() {
            return Err(SiteError::Ending(job.clone()));
        }
        // The options of the first component apply to all.
        let wanted = before.as_ref().map_or(usize::from(wanted), |before| before.vnis.len());
        self.decisions.prepare(job, wanted > 0)?;
        // The pool first: a decision whose VNIs another job could get would be worse than VNIs
        // without a decision, which the next attempt finds again.
        let vnis = match u8::try_from(wanted) {
            Ok(count @ 1..) => {
                let mut vnis = VniRequest::vnis(count);
                if let Some(tenant) = request.tenant.clone() {
                    vnis = vnis.for_tenant(tenant);
                }
                let shared = self
                    .recorded(warnings)
                    .and_then(|recorded| self.pool(time).reserve(job, &vnis, &recorded));
                if shared.is_err() && before.is_none() {
                    self.decisions.take_back(job)?;
                }
                shared?
            }
            _ => Vec::new(),
        };
        let known = before.is_some();
        let mut decision = before.unwrap_or_else(|| Decision {
            job: job.clone(),
            uid: request.uid,
            vnis: Vec::new(),
            network: request.network.clone(),
            components: BTreeMap::new(),
            collectives: false,
        });
        decision.vnis = vnis;
        let nodes = match decision.components.get(component) {
            // Its epilog was never reported: what its nodes have must be confirmed, too.
            Some(before) if before.nodes != request.nodes => before.nodes.and(&request.nodes),
            _ => request.nodes.clone(),
        };
        let begins = Component { nodes, ended: false };
        decision.components.insert(component.clone(), begins);
        decision.collectives = self.wants_collectives(&decision);
        self.decisions.begin(&decision, component)?;
        Ok((decision, known))
    }

    /// Takes a decision back: nodes wait for its reservation, so no prolog has begun.
    fn cancel(&self, job: &JobId, time: Allowance<'_>) -> Result<(), SiteError> {
        let _held = self.decisions.lock(time.left())?;
        // No node can read the decision when its VNIs become free.
        self.decisions.take_back(job)?;
        self.pool(time).cancel(job)
    }

    /// Cancels a job whose reservation was killed before there was a decision, so that no node knows
    /// of it.
    fn cancel_unfinished(&self, job: &JobId, time: Allowance<'_>) -> Result<(), SiteError> {
        if self.decisions.is_unfinished(job)? {
            self.pool(time).cancel(job)?;
            self.decisions.take_back(job)?;
        }
        Ok(())
    }

    /// Ends a job, or one component of a heterogeneous job. Its VNIs are free when all its nodes have
    /// confirmed. Returns what ended: nothing if it had ended before.
    ///
    /// # Errors
    ///
    /// [`SiteError`].
    pub fn release(
        &self,
        job: &JobId,
        component: Option<&JobId>,
    ) -> Result<Done<Vec<JobId>>, SiteError> {
        let ends = |id: &JobId| component.is_none_or(|component| component == id);
        let mut warnings = Vec::from_iter(self.release_collectives(job, ends)?);
        let time = self.allowance(self.wait);
        let _held = self.decisions.lock(time.to_wait())?;
        let released = self.end_locked(job, ends, time)?;
        warnings.extend(self.collect_locked(time)?);
        Ok(Done { result: released, warnings })
    }

    /// Ends all jobs that the scheduler no longer knows, as after an epilog on the controller that
    /// was lost, and releases the reservations at the fabric manager of jobs that do not run. `live`
    /// returns the scheduler's jobs; if it fails, nothing ends. Returns what ended.
    ///
    /// # Errors
    ///
    /// Those of `live`, and [`SiteError`]. Some of the jobs may have ended.
    pub fn sweep<E: From<SiteError>>(
        &self,
        live: impl FnOnce() -> Result<Vec<JobId>, E>,
    ) -> Result<Done<Vec<JobId>>, E> {
        // Before the scheduler's list: a job that is decided after the list was made is not in it.
        let running = self.decisions.running_jobs().map_err(SiteError::from)?;
        let live: BTreeSet<JobId> = live()?.into_iter().collect();
        let time = self.allowance(self.wait);
        let _held = self.decisions.lock(time.to_wait())?;
        let mut released = Vec::new();
        for job in running {
            released.extend(self.end_locked(&job, |id| !live.contains(id), time)?);
        }
        let mut warnings = self.collect_locked(time)?;
        warnings.extend(self.sweep_reservations()?);
        self.decisions.note_sweep().map_err(SiteError::from)?;
        Ok(Done { result: released, warnings })
    }

    /// When the last [`sweep`](Self::sweep) ended; `None` if there was none.
    ///
    /// # Errors
    ///
    /// [`SiteError`]: the records cannot be used.
    pub fn last_sweep(&self) -> Result<Option<SystemTime>, SiteError> {
        Ok(self.decisions.last_sweep()?)
    }

    /// Ends a job, or a component of it, with the lock held.
    fn end_locked(
        &self,
        job: &JobId,
        ends: impl Fn(&JobId) -> bool,
        time: Allowance<'_>,
    ) -> Result<Vec<JobId>, SiteError> {
        let mut released = Vec::new();
        let Some(mut decision) = self.decisions.find_running(job)? else {
            self.cancel_unfinished(job, time)?;
            return Ok(released);
        };
        for (component, state) in &mut decision.components {
            if !state.ended && ends(component) {
                state.ended = true;
                released.push(component.clone());
            }
        }
        if !released.is_empty() {
            // The decision first: what is decided to be over does not run, and no VNI is free before
            // the nodes have confirmed, whatever the pool says.
            self.decisions.end(&decision)?;
            if decision.ended() && !decision.vnis.is_empty() {
                self.pool(time).drain(&decision)?;
            }
        }
        Ok(released)
    }

    /// Frees the VNIs of jobs that all nodes have confirmed. [`reserve`](Self::reserve) and
    /// [`release`](Self::release) do that too.
    ///
    /// # Errors
    ///
    /// [`SiteError`]: the records or the pool cannot be used.
    pub fn collect(&self) -> Result<Vec<Warning>, SiteError> {
        let time = self.allowance(self.wait);
        let _held = self.decisions.lock(time.to_wait())?;
        self.collect_locked(time)
    }

    fn collect_locked(&self, time: Allowance<'_>) -> Result<Vec<Warning>, SiteError> {
        let (mut over, mut warnings) = (Vec::new(), Vec::new());
        for job in self.decisions.ended_jobs()? {
            match self.decisions.find_ended(&job) {
                Ok(Some(decision)) if self.decisions.missing(&decision)?.is_empty() => {
                    over.push(decision);
                }
                Ok(Some(_)) => {}
                // What a controller left that was killed while it forgot the job.
                Ok(None) => self.decisions.forget(&job)?,
                // One bad record does not keep the VNIs of other jobs.
                Err(error) => warnings.push(Warning::Job(error.into())),
            }
        }
        let with_vnis = over.iter().filter(|decision| !decision.vnis.is_empty());
        let with_vnis: Vec<_> = with_vnis.map(|decision| decision.job.clone()).collect();
        self.pool(time).free(&with_vnis)?;
        // The records go last: as long as they are there, this is tried again.
        for decision in &over {
            self.decisions.forget(&decision.job)?;
        }
        Ok(warnings)
    }

    /// Releases the reservations of jobs that do not run, under the lock, so that none of them starts in
    /// the meantime, and tells of those that have disappeared.
    fn sweep_reservations(&self) -> Result<Vec<Warning>, SiteError> {
        let Some(manager) = self.manager() else { return Ok(Vec::new()) };
        let running = self.decisions.running_jobs()?;
        let mut warnings = Vec::new();
        // Before the manager's list: reservations are made without the lock.
        let mut reserved = BTreeSet::new();
        for job in &running {
            match self.has_reservation(job) {
                Ok(true) => {
                    reserved.insert(job);
                }
                Ok(false) => {}
                // One bad record does not keep the reservations of other jobs.
                Err(error) => warnings.push(Warning::Job(error)),
            }
        }
        match manager.and_then(|manager| manager.sweep(|job| running.contains(job))) {
            Ok(swept) => {
                let left = swept.failed.into_iter().map(|(_, error)| error);
                warnings.extend(left.map(Warning::ReservationLeft));
                let there: BTreeSet<&JobId> = swept.live.iter().collect();
                let gone = reserved.difference(&there).copied().cloned();
                warnings.extend(gone.map(Warning::ReservationGone));
            }
            Err(error) => warnings.push(Warning::ReservationLeft(error)),
        }
        Ok(warnings)
    }

    /// Says for a node that none of a job's services are left there. A node does that itself, unless
    /// it is gone for good.
    ///
    /// # Errors
    ///
    /// [`SiteError::NotWaiting`], or the records cannot be used.
    pub fn confirm(&self, job: &JobId, node: &NodeName) -> Result<(), SiteError> {
        let decision = self.decisions.find(job)?;
        if !decision.is_some_and(|decision| decision.is_on(node)) {
            let (job, node) = (job.clone(), node.clone());
            return Err(SiteError::NotWaiting { job, node });
        }
        Ok(self.decisions.confirm(job, node)?)
    }

    /// The jobs that run, and those that have ended and wait for nodes; with these nodes.
    ///
    /// # Errors
    ///
    /// [`SiteError`]: the records cannot be used.
    pub fn list(&self) -> Result<Vec<(Decision, Vec<String>)>, SiteError> {
        let mut jobs = self.decisions.running_jobs()?;
        // One that ends meanwhile is in both lists.
        jobs.extend(self.decisions.ended_jobs()?);
        jobs.sort();
        jobs.dedup();
        let mut list = Vec::new();
        for job in jobs {
            if let Some(decision) = self.decisions.find(&job)? {
                let missing =
                    if decision.ended() { self.decisions.missing(&decision)? } else { Vec::new() };
                list.push((decision, missing));
            }
        }
        Ok(list)
    }

    /// Returns whether a job is to have a reservation.
    fn wants_collectives(&self, decision: &Decision) -> bool {
        if decision.vnis.is_empty() || self.manager.is_none() {
            return false;
        }
        let live = decision.components.values().filter(|one| !one.ended);
        let nodes: usize = live.map(|component| component.nodes.names().len()).sum();
        let usual = self.min_nodes.is_some_and(|least| nodes >= least.get() as usize);
        decision.collectives || decision.network.hwcoll || usual
    }

    /// Reserves for a job, and records what its nodes need. What an earlier run recorded is better than
    /// nothing.
    fn reserve_collectives(
        &self,
        decision: &Decision,
        time: Allowance<'_>,
    ) -> Result<Option<Warning>, SiteError> {
        let job = &decision.job;
        let (true, Some(manager)) = (decision.collectives, self.manager()) else { return Ok(None) };
        // Only a job that starts is in a hurry: what ends may take as long as the manager's own limit.
        let reserved = manager.and_then(|manager| {
            let wait = self.collectives_wait.min(time.left());
            manager.clone().within(wait).reserve(job, self.trees)
        });
        let error = match reserved {
            Ok(info) => {
                let env = CollectivesEnv::new(info.reservation, StepId::every())
                    .addresses_per_job(info.limit.unwrap_or(self.trees));
                let env = match self.min_nodes {
                    Some(least) => env.min_nodes(least.get()),
                    None => env,
                };
                let variables = env.vars().into_iter();
                let record = CollectivesRecord {
                    variables: variables.map(|(name, value)| (name.to_owned(), value)).collect(),
                };
                self.decisions.keep_reservation(job, &record)?;
                return Ok(None);
            }
            Err(error) => error,
        };
        if self.has_reservation(job)? {
            return Ok(Some(Warning::EarlierReservation(job.clone(), error)));
        }
        if self.collectives_required {
            return Err(error.into());
        }
        // An empty record: nodes wait for one.
        self.decisions.keep_reservation(job, &CollectivesRecord::default())?;
        Ok(Some(Warning::WithoutCollectives(error)))
    }

    fn has_reservation(&self, job: &JobId) -> Result<bool, SiteError> {
        let record = self.decisions.reservation(job)?;
        Ok(record.is_some_and(|record| !record.variables.is_empty()))
    }

    /// Releases what a job has that is about to end. Before it ends: afterward a new run may use its
    /// name.
    fn release_collectives(
        &self,
        job: &JobId,
        ends: impl Fn(&JobId) -> bool,
    ) -> Result<Option<Warning>, SiteError> {
        let Some(manager) = self.manager() else { return Ok(None) };
        let Some(decision) = self.decisions.find_running(job)? else { return Ok(None) };
        let mut components = decision.components.iter();
        if !decision.collectives
            || components.any(|(component, state)| !state.ended && !ends(component))
            // One that is not known may have been made.
            || (self.decisions.reservation(job)?.is_some() && !self.has_reservation(job)?)
        {
            return Ok(None);
        }
        Ok(manager.and_then(|manager| manager.release(job)).err().map(Warning::ReservationLeft))
    }
}
