//! Stores of a controller's pool of VNIs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use cxi::Vni;

use super::SiteError;
use super::allowance::Allowance;
use super::decisions::Decision;
use super::mismatch::{Mismatch, mismatches};
use cxi_site::pool::log::{EventLog, SharedPool};
use cxi_site::pool::{Changed, Timestamp, VniPool, VniRequest};
use cxi_site::{ErrorCode, IdSet, JobId};

/// Store of a controller's pool of VNIs: a [`SharedPool`] in a mutex, the `SitePool` of the crate
/// `cxi-vni-etcd`, which the settings describe, or a store that you provide.
pub trait PoolStore: Send + Sync + fmt::Debug {
    /// Makes a change: `act` gets the pool as it is, and the time, and changes it. When this returns,
    /// the event is durable. `act` may be called again if another process was faster. It takes no
    /// longer than `wait`: the start of a job waits for it.
    ///
    /// # Errors
    ///
    /// That of `act`, or [`SiteError::PoolStore`]; that of a [`SharedPool`] has a
    /// [`ChangeError<Infallible>`](cxi_site::pool::log::ChangeError). Nothing has changed.
    fn change(&self, wait: Duration, act: &mut Act<'_>) -> Result<(), SiteError>;
}

/// A change of a pool.
pub type Act<'a> = dyn FnMut(&mut VniPool, Timestamp) -> Result<Changed, SiteError> + 'a;

impl<L: EventLog + Send> PoolStore for Mutex<SharedPool<L>> {
    fn change(&self, wait: Duration, act: &mut Act<'_>) -> Result<(), SiteError> {
        let mut pool = self.lock().unwrap_or_else(PoisonError::into_inner);
        pool.within(wait);
        pool.change(Timestamp::now(), |pool, now| act(pool, now)).map(drop).map_err(|error| {
            let store = |error| SiteError::PoolStore {
                code: ErrorCode::Failed,
                errno: ErrorCode::Failed.errno(),
                source: Box::new(error),
            };
            error.into_refusal().unwrap_or_else(store)
        })
    }
}

impl<S: PoolStore + ?Sized> PoolStore for &S {
    fn change(&self, wait: Duration, act: &mut Act<'_>) -> Result<(), SiteError> {
        (**self).change(wait, act)
    }
}

/// Holdings of jobs according to the controller's records.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    /// The VNIs of each job.
    pub(super) vnis: BTreeMap<JobId, Vec<Vni>>,
    /// The jobs that have ended.
    pub(super) ended: BTreeSet<JobId>,
    /// The jobs whose records cannot be used, and why.
    pub(super) unusable: Vec<(JobId, String)>,
}

impl Recorded {
    pub(super) fn add(&mut self, job: JobId, vnis: Vec<Vni>, ended: bool) {
        if vnis.is_empty() {
            return;
        }
        if ended {
            self.ended.insert(job.clone());
        }
        self.vnis.insert(job, vnis);
    }

    /// The VNIs of all jobs but one.
    pub(super) fn others(&self, job: &JobId) -> IdSet {
        let others = self.vnis.iter().filter(|(other, _)| *other != job);
        others.flat_map(|(_, vnis)| vnis).map(|vni| vni.get()).collect()
    }

    /// The next change with which the pool knows what the records say; `None` if it does. A job that has
    /// ended drains, unless another one has its VNIs there.
    fn next(&self, pool: &mut VniPool, now: Timestamp) -> Result<Option<Changed>, SiteError> {
        for (job, reason) in &self.unusable {
            if pool.job(job).is_none() {
                let (job, reason) = (job.clone(), reason.clone());
                return Err(SiteError::UnknownVnis { job, reason });
            }
        }
        let Changed { event, .. } = pool.adopt(&self.vnis, now)?;
        if event.is_some() {
            return Ok(Some(Changed { result: (), event }));
        }
        for job in &self.ended {
            if pool.job(job).is_some() {
                let released = pool.release(job, &[], now)?;
                if released.event.is_some() {
                    return Ok(Some(released));
                }
            }
        }
        Ok(None)
    }
}

/// The controller's pool, for as long as one operation may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pool<'a> {
    pub(super) store: &'a dyn PoolStore,
    pub(super) time: Allowance<'a>,
}

impl Pool<'_> {
    fn change(&self, act: &mut Act<'_>) -> Result<(), SiteError> {
        self.store.change(self.time.left(), act)
    }

    /// Makes the pool know what the records say, and then a change.
    fn change_with(&self, recorded: &Recorded, act: &mut Act<'_>) -> Result<(), SiteError> {
        let mut knows = false;
        while !knows {
            self.change(&mut |pool, now| {
                let next = recorded.next(pool, now)?;
                knows = next.is_none();
                next.map_or_else(|| act(pool, now), Ok)
            })?;
        }
        Ok(())
    }

    /// Reserves for a job, in a pool that knows what the records say, and nothing that they give to
    /// others. A job that has a record keeps what that says.
    pub(super) fn reserve(
        &self,
        job: &JobId,
        request: &VniRequest,
        recorded: &Recorded,
    ) -> Result<Vec<Vni>, SiteError> {
        let mut vnis = recorded.vnis.get(job).cloned().unwrap_or_default();
        let request = request.clone().except(recorded.others(job));
        self.change_with(recorded, &mut |pool, now| {
            if recorded.vnis.contains_key(job) {
                return Ok(Changed::nothing());
            }
            let Changed { result, event } = pool.reserve(job, &request, now)?;
            vnis = result.iter().collect();
            Ok(Changed { result: (), event })
        })?;
        Ok(vnis)
    }

    /// Makes the pool know what the records say, and compares the rest. Returns the jobs that it did not
    /// know, and what the two do not agree on.
    pub(super) fn adopt(
        &self,
        recorded: &Recorded,
    ) -> Result<(Vec<JobId>, Vec<Mismatch>), SiteError> {
        let (mut adopted, mut left) = (Vec::new(), Vec::new());
        self.change(&mut |pool, _| {
            let unknown = recorded.vnis.keys().filter(|job| pool.job(job).is_none());
            adopted = unknown.cloned().collect();
            Ok(Changed::nothing())
        })?;
        self.change_with(recorded, &mut |pool, _| {
            left = mismatches(pool, recorded);
            adopted.retain(|job| pool.job(job).is_some());
            Ok(Changed::nothing())
        })?;
        Ok((adopted, left))
    }

    /// Returns the disagreements of the pool and the records.
    pub(super) fn compare(&self, recorded: &Recorded) -> Result<Vec<Mismatch>, SiteError> {
        let mut found = Vec::new();
        self.change(&mut |pool, _| {
            found = mismatches(pool, recorded);
            Ok(Changed::nothing())
        })?;
        Ok(found)
    }

    /// Frees the VNIs of a job that did not start, if it has some.
    pub(super) fn cancel(&self, job: &JobId) -> Result<(), SiteError> {
        self.change(&mut |pool, now| match pool.job(job) {
            None => Ok(Changed::nothing()),
            Some(_) => Ok(pool.cancel(job, now)?),
        })
    }

    /// Ends the use of the VNIs of a job whose record says that it has ended. They drain, even if the
    /// pool did not know them.
    pub(super) fn drain(&self, decision: &Decision) -> Result<(), SiteError> {
        let mut recorded = Recorded::default();
        recorded.add(decision.job.clone(), decision.vnis.clone(), true);
        self.change_with(&recorded, &mut |_, _| Ok(Changed::nothing()))
    }

    /// Frees the VNIs of jobs that all their nodes have confirmed, as far as the pool has them. This is
    /// one change, however many jobs there are, because the start of another job waits for it.
    pub(super) fn free(&self, jobs: &[JobId]) -> Result<(), SiteError> {
        if jobs.is_empty() {
            return Ok(());
        }
        let mut left = true;
        while left {
            self.change(&mut |pool, now| {
                left = true;
                let held = jobs.iter().filter(|job| pool.job(job).is_some());
                let held: Vec<_> = held.cloned().collect();
                for job in &held {
                    let released = pool.release(job, &[], now)?;
                    // The controller was killed between record and pool.
                    if released.event.is_some() {
                        return Ok(released);
                    }
                }
                left = false;
                Ok(pool.confirm_all(&held, now)?)
            })?;
        }
        Ok(())
    }
}
