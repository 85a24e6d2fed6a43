//! Where a controller's pool of VNIs is.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use cxi::Vni;

use super::SiteError;
use crate::pool::log::{EventLog, SharedPool};
use crate::pool::{Changed, PoolError, Timestamp, VniPool, VniRequest};
use crate::{ErrorCode, JobId};

/// Where a controller's pool of VNIs is: a [`SharedPool`] in a mutex, the `SitePool` of the crate
/// `cxi-vni-etcd`, which the settings describe, or a store that you provide.
pub trait PoolStore: fmt::Debug {
    /// Makes a change: `act` gets the pool as it is, and the time, and changes it. When this returns,
    /// the event is durable. `act` may be called again if another process was faster.
    ///
    /// # Errors
    ///
    /// That of `act`, or [`SiteError::PoolStore`]; that of a [`SharedPool`] has a
    /// [`ChangeError<Infallible>`](crate::pool::log::ChangeError). Nothing has changed.
    fn change(&self, act: &mut Act<'_>) -> Result<(), SiteError>;
}

/// A change of a pool.
pub type Act<'a> = dyn FnMut(&mut VniPool, Timestamp) -> Result<Changed, SiteError> + 'a;

impl<L: EventLog> PoolStore for Mutex<SharedPool<L>> {
    fn change(&self, act: &mut Act<'_>) -> Result<(), SiteError> {
        let mut pool = self.lock().unwrap_or_else(PoisonError::into_inner);
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
    fn change(&self, act: &mut Act<'_>) -> Result<(), SiteError> {
        (**self).change(act)
    }
}

/// Reserves for a job; repeated for each of its components, which share the VNIs.
pub(super) fn reserve(
    store: &dyn PoolStore,
    job: &JobId,
    request: &VniRequest,
) -> Result<Vec<Vni>, SiteError> {
    let mut vnis = Vec::new();
    store.change(&mut |pool, now| {
        let Changed { result, event } = pool.reserve(job, request, now)?;
        vnis = result.iter().collect();
        Ok(Changed { result: (), event })
    })?;
    Ok(vnis)
}

/// Frees the VNIs of a job that did not start, if it has some.
pub(super) fn cancel(store: &dyn PoolStore, job: &JobId) -> Result<(), SiteError> {
    if_held(store, job, VniPool::cancel)
}

/// Ends a job's use of its VNIs, if it still has them.
pub(super) fn drain(store: &dyn PoolStore, job: &JobId) -> Result<(), SiteError> {
    if_held(store, job, |pool, job, now| pool.release(job, &[], now))
}

/// Frees the VNIs of jobs that all their nodes have confirmed, as far as they still have them. This is
/// one change, however many jobs there are, because the start of another job waits for it.
pub(super) fn free(store: &dyn PoolStore, jobs: &[JobId]) -> Result<(), SiteError> {
    let mut left = !jobs.is_empty();
    while left {
        store.change(&mut |pool, now| {
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

fn if_held(
    store: &dyn PoolStore,
    job: &JobId,
    act: fn(&mut VniPool, &JobId, Timestamp) -> Result<Changed, PoolError>,
) -> Result<(), SiteError> {
    store.change(&mut |pool, now| match pool.job(job) {
        None => Ok(Changed::nothing()),
        Some(_) => Ok(act(pool, job, now)?),
    })
}
