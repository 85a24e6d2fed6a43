//! Application of events to the state, shared by live changes and replay; impossible events are
//! refused.

use std::collections::BTreeSet;

use super::state::{Owner, State, vnis};
use super::{
    Allotment, Change, Event, Holder, Holding, MAX_VNIS_PER_JOB, Phase, PoolError, Reconciled,
    Stray, Timestamp,
};
use crate::{IdSet, JobId, NodeName};
use cxi::Vni;

impl State {
    /// Applies an event; an error leaves the state unchanged.
    pub(super) fn apply(&mut self, event: &Event) -> Result<(), PoolError> {
        let at = event.at;
        match &event.change {
            Change::Reserved { job, tenant, vnis } => {
                self.check_new(job, vnis)?;
                self.settle(at);
                let holding = Holding {
                    vnis: vnis.clone(),
                    tenant: tenant.clone(),
                    reserved_at: at,
                    phase: Phase::Reserved,
                };
                self.give(job, holding);
                if let Some(last) = vnis.iter().last()
                    && let Some(partition) = self.home(last)
                {
                    partition.next = last.get().wrapping_add(1);
                }
            }
            Change::Adopted { jobs } => {
                let mut taken = BTreeSet::new();
                for (job, vnis) in jobs {
                    self.check_adoption(job, vnis)?;
                    if let Some(vni) = vnis.iter().find(|vni| !taken.insert(**vni)) {
                        return Err(PoolError::InUse { vni: *vni, holder: job.clone() });
                    }
                }
                self.settle(at);
                for (job, vnis) in jobs {
                    for vni in vnis {
                        self.strays.remove(vni);
                    }
                    let holding = Holding {
                        vnis: Allotment::List(vnis.clone()),
                        tenant: None,
                        reserved_at: at,
                        phase: Phase::Reserved,
                    };
                    self.give(job, holding);
                }
            }
            Change::Cancelled { job } => self.cancel(job)?,
            Change::Released { job, nodes } => {
                self.check_live(job)?;
                self.drain(job, nodes, at);
            }
            Change::Confirmed { job, node } => self.confirm(job, node, at)?,
            Change::ConfirmedAll { jobs } => {
                for job in jobs {
                    self.waiting(job)?;
                }
                for job in jobs {
                    self.finish(job, at);
                }
            }
            Change::StrayReleased { vni } => {
                if !self.strays.contains_key(vni) {
                    return Err(PoolError::NotStray { vni: *vni });
                }
                self.end_stray(*vni, at);
            }
            Change::Observed { node, vnis } => drop(self.observe(node, vnis, at)),
            Change::Reconfigured { config } => self.configure(config.clone())?,
            Change::Saved { pool } => *self = Self::restore((**pool).clone())?,
        }
        Ok(())
    }

    pub(super) fn holding(&self, job: &JobId) -> Result<&Holding, PoolError> {
        self.jobs.get(job).ok_or_else(|| PoolError::UnknownJob { job: job.clone() })
    }

    fn holding_mut(&mut self, job: &JobId) -> Result<&mut Holding, PoolError> {
        self.jobs.get_mut(job).ok_or_else(|| PoolError::UnknownJob { job: job.clone() })
    }

    /// Refuses a job that is unknown, or whose VNIs are draining.
    fn check_live(&self, job: &JobId) -> Result<(), PoolError> {
        match self.holding(job)?.phase {
            Phase::Reserved => Ok(()),
            Phase::Draining { .. } => Err(PoolError::Released { job: job.clone() }),
        }
    }

    /// The nodes a draining job is waiting for, and whether they are complete.
    fn waiting(&mut self, job: &JobId) -> Result<(&mut BTreeSet<NodeName>, bool), PoolError> {
        match &mut self.holding_mut(job)?.phase {
            Phase::Reserved => Err(PoolError::NotReleased { job: job.clone() }),
            Phase::Draining { waiting, nodes_known, .. } => Ok((waiting, *nodes_known)),
        }
    }

    fn check_new(&self, job: &JobId, vnis: &Allotment) -> Result<(), PoolError> {
        if let Some(held) = self.jobs.get(job) {
            return Err(PoolError::AlreadyHolds { job: job.clone(), held: held.vnis.clone() });
        }
        if !well_formed(vnis) {
            return Err(PoolError::BadAllotment { job: job.clone(), vnis: vnis.clone() });
        }
        vnis.iter().try_for_each(|vni| self.check_unowned(vni))
    }

    /// A VNI that a node shows, but no job in the pool has, may be the one of a recorded job.
    fn check_adoption(&self, job: &JobId, vnis: &[Vni]) -> Result<(), PoolError> {
        if let Some(held) = self.jobs.get(job) {
            return Err(PoolError::AlreadyHolds { job: job.clone(), held: held.vnis.clone() });
        }
        let list = Allotment::List(vnis.to_vec());
        if !well_formed(&list) {
            return Err(PoolError::BadAllotment { job: job.clone(), vnis: list });
        }
        vnis.iter().try_for_each(|vni| match self.owners.get(vni) {
            Some(Owner::Stray) => Ok(()),
            _ => self.check_unowned(*vni),
        })
    }

    /// Those of a job's recorded VNIs that no job has in this pool; none if it has others there.
    pub(super) fn adoptable(&self, job: &JobId, vnis: &[Vni]) -> Vec<Vni> {
        if self.jobs.contains_key(job) {
            return Vec::new();
        }
        let no_job = |vni: &&Vni| !matches!(self.owners.get(vni), Some(Owner::Job(_)));
        vnis.iter().filter(no_job).copied().collect()
    }

    fn check_unowned(&self, vni: Vni) -> Result<(), PoolError> {
        match self.owners.get(&vni) {
            None | Some(Owner::Resting(_)) => Ok(()),
            Some(Owner::Stray) => Err(PoolError::NotConfirmed { vni, holder: Holder::Stray(vni) }),
            Some(Owner::Job(holder)) => Err(match self.holding(holder)?.phase {
                Phase::Reserved => PoolError::InUse { vni, holder: holder.clone() },
                Phase::Draining { .. } => {
                    PoolError::NotConfirmed { vni, holder: Holder::Job(holder.clone()) }
                }
            }),
        }
    }

    fn cancel(&mut self, job: &JobId) -> Result<(), PoolError> {
        self.check_live(job)?;
        self.take_back(job);
        Ok(())
    }

    fn confirm(&mut self, job: &JobId, node: &NodeName, at: Timestamp) -> Result<(), PoolError> {
        let (waiting, known) = self.waiting(job)?;
        if !waiting.remove(node) {
            return Err(PoolError::NotWaiting {
                job: job.clone(),
                node: node.clone(),
                nodes: known.then_some(waiting.len()),
            });
        }
        if known && waiting.is_empty() {
            self.finish(job, at);
        }
        Ok(())
    }

    /// A node shows VNIs: those without a live job cannot be assigned until it no longer shows them.
    ///
    /// Returns what is new, and, if anything has changed, the VNIs that this concerns: applied
    /// again, they have the same effect as all VNIs that the node shows.
    pub(super) fn observe(
        &mut self,
        node: &NodeName,
        seen: &IdSet,
        at: Timestamp,
    ) -> (Reconciled, Option<IdSet>) {
        let mut result = Reconciled::default();
        let (mut concerned, mut changed) = (IdSet::new(), false);
        for vni in vnis(seen) {
            let id = vni.get();
            match self.owners.get(&vni) {
                Some(Owner::Stray) => {
                    concerned.insert(id);
                    if let Some(stray) = self.strays.get_mut(&vni) {
                        changed |= stray.nodes.insert(node.clone());
                    }
                }
                Some(Owner::Job(job)) => {
                    let job = job.clone();
                    if let Ok((waiting, _)) = self.waiting(&job) {
                        concerned.insert(id);
                        if waiting.insert(node.clone()) {
                            changed = true;
                            result.waiting_again.push(job);
                        }
                    }
                }
                None | Some(Owner::Resting(_)) if self.assigns(vni) => {
                    concerned.insert(id);
                    changed = true;
                    result.strays.insert(id);
                    let nodes = BTreeSet::from([node.clone()]);
                    self.add_stray(vni, Stray { since: at, nodes });
                }
                None | Some(Owner::Resting(_)) => {
                    result.outside.insert(id);
                }
            }
        }
        let gone =
            |vni: &Vni, stray: &Stray| stray.nodes.contains(node) && !seen.contains(vni.get());
        let strays = self.strays.iter().filter(|(vni, stray)| gone(vni, stray));
        let gone: Vec<Vni> = strays.map(|(vni, _)| *vni).collect();
        for vni in gone {
            changed = true;
            if let Some(stray) = self.strays.get_mut(&vni) {
                stray.nodes.remove(node);
                if stray.nodes.is_empty() {
                    self.end_stray(vni, at);
                }
            }
        }
        (result, changed.then_some(concerned))
    }
}

pub(super) fn well_formed(vnis: &Allotment) -> bool {
    match vnis {
        Allotment::Block(_) => true,
        Allotment::Set(vnis) => !vnis.is_empty() && !vnis.contains(0),
        Allotment::List(list) => {
            let different: BTreeSet<_> = list.iter().collect();
            different.len() == list.len()
                && (1..=usize::from(MAX_VNIS_PER_JOB)).contains(&list.len())
        }
    }
}
