//! Reserving VNIs for jobs.

use std::borrow::Cow;

use super::allotment::Shape;
use super::{
    Allotment, Change, Changed, Holding, Phase, PoolShortage, ReserveError, Timestamp, VniPool,
    VniRequest,
};
use crate::{JobId, TenantName};
use cxi::{Vni, VniRange};

impl VniPool {
    /// Reserves VNIs for a job. Repeating the request, for example for each step that shares them,
    /// returns what the job has.
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
        request.check()?;
        if let Some(held) = self.state.jobs.get(job) {
            check_same(job, request, held)?;
            let result = held.vnis.clone();
            return Ok(Changed { result, event: None });
        }
        self.check_tenant(request.tenant.as_ref())?;
        let Some(vnis) = self.pick(request, now) else {
            let part = self.part_metrics(request.tenant.as_ref(), now);
            return Err(ReserveError::Short(PoolShortage {
                asked: Box::new(request.clone()),
                part: part.unwrap_or_default(),
            }));
        };
        let change = Change::Reserved {
            job: job.clone(),
            tenant: request.tenant.clone(),
            vnis: vnis.clone(),
        };
        Ok(Changed { result: vnis, event: self.commit(change, now)?.event })
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
        let mut free = self.state.free_at(partition, now);
        if !request.except.is_empty() {
            free = Cow::Owned(free.difference(&request.except));
        }
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

/// Returns whether a further request of a job that already has VNIs asks for these.
fn check_same(job: &JobId, request: &VniRequest, held: &Holding) -> Result<(), ReserveError> {
    if let Phase::Draining { waiting, nodes_known, .. } = &held.phase {
        return Err(ReserveError::Draining {
            job: job.clone(),
            vnis: held.vnis.clone(),
            nodes: nodes_known.then_some(waiting.len()),
        });
    }
    if !held.vnis.answers(request.shape) || held.tenant != request.tenant {
        return Err(ReserveError::Differs {
            job: job.clone(),
            held: held.vnis.clone(),
            tenant: held.tenant.clone(),
            asked: Box::new(request.clone()),
        });
    }
    let others = held.vnis.to_set().intersection(&request.except);
    if !others.is_empty() {
        return Err(ReserveError::Others { job: job.clone(), held: held.vnis.clone(), others });
    }
    Ok(())
}
