//! Reserving VNIs for jobs and their steps.

use super::allotment::Shape;
use super::{
    Allotment, Change, Changed, Holding, Phase, PoolShortage, ReserveError, Timestamp, VniPool,
    VniRequest,
};
use crate::{JobId, StepId, TenantName};
use cxi::{Vni, VniRange};

impl VniPool {
    /// Reserves VNIs for a job. Repeating the request returns what the job has.
    ///
    /// # Errors
    /// [`ReserveError`]: an impossible request, too few VNIs, or a job that has something else or
    /// is draining.
    pub fn reserve(
        &mut self,
        job: &JobId,
        request: &VniRequest,
        now: Timestamp,
    ) -> Result<Changed<Allotment>, ReserveError> {
        self.reserve_for(job, None, request, now)
    }

    /// Reserves VNIs that the steps of a job share. The first step reserves them and further ones
    /// join; when the last one has left ([`VniPool::leave`]), they drain. If the job itself
    /// reserved them, they stay until [`VniPool::release`].
    ///
    /// # Errors
    /// As [`VniPool::reserve`].
    pub fn share(
        &mut self,
        job: &JobId,
        step: &StepId,
        request: &VniRequest,
        now: Timestamp,
    ) -> Result<Changed<Allotment>, ReserveError> {
        self.reserve_for(job, Some(step), request, now)
    }

    fn reserve_for(
        &mut self,
        job: &JobId,
        step: Option<&StepId>,
        request: &VniRequest,
        now: Timestamp,
    ) -> Result<Changed<Allotment>, ReserveError> {
        request.check()?;
        if let Some(held) = self.state.jobs.get(job) {
            let result = held.vnis.clone();
            let event = match rejoin(job, step, request, held)? {
                Some(change) => self.commit(change, now)?.event,
                None => None,
            };
            return Ok(Changed { result, event });
        }
        self.check_tenant(request.tenant.as_ref())?;
        let Some(vnis) = self.pick(request, now) else {
            let part = self.part_metrics(request.tenant.as_ref(), now);
            return Err(ReserveError::Short(PoolShortage {
                asked: request.clone(),
                part: part.unwrap_or_default(),
            }));
        };
        let change = Change::Reserved {
            job: job.clone(),
            step: step.cloned(),
            tenant: request.tenant.clone(),
            vnis: vnis.clone(),
        };
        Ok(Changed {
            result: vnis,
            event: self.commit(change, now)?.event,
        })
    }

    fn check_tenant(&self, tenant: Option<&TenantName>) -> Result<(), ReserveError> {
        match tenant {
            Some(tenant) if self.state.partition(Some(tenant)).is_none() => {
                Err(ReserveError::UnknownTenant {
                    tenant: tenant.clone(),
                    known: self.config().tenants().keys().cloned().collect(),
                })
            }
            _ => Ok(()),
        }
    }

    fn pick(&self, request: &VniRequest, now: Timestamp) -> Option<Allotment> {
        let partition = self.state.partition(request.tenant.as_ref())?;
        let free = self.state.free_at(partition, now);
        match request.shape {
            Shape::List(count) => {
                let ids = partition.pick(&free, count.into())?;
                let vnis = ids.into_iter().map(|id| Vni::new(id).ok());
                vnis.collect::<Option<_>>().map(Allotment::List)
            }
            Shape::Block(size) => {
                let first = Vni::new(partition.pick_block(&free, size)?).ok()?;
                VniRange::new(first, size).ok().map(Allotment::Block)
            }
            Shape::Set(count) => {
                let ids = partition.pick(&free, count.get())?;
                Some(Allotment::Set(ids.into_iter().collect()))
            }
        }
    }
}

/// What a further request changes for a job that already has VNIs.
fn rejoin(
    job: &JobId,
    step: Option<&StepId>,
    request: &VniRequest,
    held: &Holding,
) -> Result<Option<Change>, ReserveError> {
    let (by_job, steps) = match &held.phase {
        Phase::Draining {
            waiting,
            nodes_known,
            ..
        } => {
            return Err(ReserveError::Draining {
                job: job.clone(),
                vnis: held.vnis.clone(),
                nodes: nodes_known.then_some(waiting.len()),
            });
        }
        Phase::Reserved { by_job, steps } => (*by_job, steps),
    };
    if !held.vnis.answers(request.shape) || held.tenant != request.tenant {
        return Err(ReserveError::Differs {
            job: job.clone(),
            held: held.vnis.clone(),
            tenant: held.tenant.clone(),
            asked: Box::new(request.clone()),
        });
    }
    Ok(match step {
        Some(step) if !steps.contains(step) => Some(Change::Shared {
            job: job.clone(),
            step: Some(step.clone()),
        }),
        None if !by_job => Some(Change::Shared {
            job: job.clone(),
            step: None,
        }),
        _ => None,
    })
}
