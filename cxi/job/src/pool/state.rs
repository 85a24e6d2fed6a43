//! The state of a pool: who has which VNI, indexed so that no question needs a search over all of
//! them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::time::Duration;

use super::partition::Partition;
use super::{Allotment, PoolConfig, PoolConfigError, Timestamp};
use crate::{JobId, NodeName, StepId, TenantName};
use cxi::Vni;

/// What a job has in a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Holding {
    /// Its VNIs.
    pub vnis: Allotment,
    /// The tenant from whose share they are.
    pub tenant: Option<TenantName>,
    /// When they were reserved.
    pub reserved_at: Timestamp,
    /// The nodes on which its services must be destroyed first, as far as known.
    pub nodes: BTreeSet<NodeName>,
    /// In use, or draining.
    pub phase: Phase,
}

/// Whether a job is using its VNIs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Phase {
    /// The job or its steps are using them.
    Reserved {
        /// The job itself holds them: they stay when the last step leaves.
        by_job: bool,
        /// The steps that share them.
        steps: BTreeSet<StepId>,
    },
    /// The job has ended, but its services may not be destroyed everywhere.
    Draining {
        /// Since when.
        since: Timestamp,
        /// The nodes that have not confirmed.
        waiting: BTreeSet<NodeName>,
        /// Whether `waiting` is complete; if not, only confirming all nodes at once ends the
        /// draining.
        nodes_known: bool,
    },
}

/// A VNI that a node shows although no job has it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Stray {
    /// When it was first seen.
    pub since: Timestamp,
    /// The nodes that show it.
    pub nodes: BTreeSet<NodeName>,
}

/// What keeps a VNI draining.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Holder {
    /// A job that was released.
    Job(JobId),
    /// A VNI that a node shows although no job has it.
    Stray(Vni),
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job(job) => write!(f, "job {job}"),
            Self::Stray(vni) => write!(f, "VNI {vni} of no known job"),
        }
    }
}

/// Why a VNI is not free.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Owner {
    Job(JobId),
    Stray,
    Resting(Timestamp),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct State {
    pub(super) config: PoolConfig,
    pub(super) partitions: Vec<Partition>,
    /// Which share a VNI belongs to.
    home: BTreeMap<u16, (u16, usize)>,
    pub(super) owners: HashMap<u16, Owner>,
    pub(super) jobs: HashMap<JobId, Holding>,
    pub(super) strays: BTreeMap<u16, Stray>,
    /// In the order in which they become free.
    pub(super) resting: BTreeSet<(Timestamp, u16)>,
    /// In the order in which they began to drain.
    pub(super) drains: BTreeSet<(Timestamp, Holder)>,
}

#[derive(Clone, Copy)]
enum Count {
    Reserved,
    Draining,
}

impl State {
    pub(super) fn new(config: PoolConfig) -> Result<Self, PoolConfigError> {
        let mut state = Self {
            config: config.clone(),
            partitions: Vec::new(),
            home: BTreeMap::new(),
            owners: HashMap::new(),
            jobs: HashMap::new(),
            strays: BTreeMap::new(),
            resting: BTreeSet::new(),
            drains: BTreeSet::new(),
        };
        state.configure(config)?;
        Ok(state)
    }

    /// Applies a configuration; what is in use stays in use, wherever it belongs.
    pub(super) fn configure(&mut self, config: PoolConfig) -> Result<(), PoolConfigError> {
        let parts = config.partitions()?;
        let owned = self.owners.keys().copied().collect();
        let before = std::mem::take(&mut self.partitions);
        self.home.clear();
        for (index, (tenant, vnis)) in parts.into_iter().enumerate() {
            for range in vnis.ranges() {
                self.home.insert(*range.start(), (*range.end(), index));
            }
            let free = vnis.difference(&owned);
            let mut partition = Partition::new(tenant, vnis, free);
            if let Some(old) = before.iter().find(|old| old.tenant == partition.tenant) {
                partition.next = old.next;
            }
            self.partitions.push(partition);
        }
        self.config = config;
        self.count_again();
        Ok(())
    }

    fn count_again(&mut self) {
        let owned: Vec<(u16, Count)> = self
            .owners
            .iter()
            .filter_map(|(id, owner)| Some((*id, self.kind(owner)?)))
            .collect();
        for (id, kind) in owned {
            self.count(id, kind, 1);
        }
    }

    fn kind(&self, owner: &Owner) -> Option<Count> {
        match owner {
            Owner::Stray => Some(Count::Draining),
            Owner::Resting(_) => None,
            Owner::Job(job) => Some(match self.jobs.get(job)?.phase {
                Phase::Reserved { .. } => Count::Reserved,
                Phase::Draining { .. } => Count::Draining,
            }),
        }
    }

    fn count(&mut self, id: u16, kind: Count, change: isize) {
        if let Some(partition) = self.home_mut(id) {
            let counter = match kind {
                Count::Reserved => &mut partition.reserved,
                Count::Draining => &mut partition.draining,
            };
            *counter = counter.saturating_add_signed(change);
        }
    }

    pub(super) fn home(&self, id: u16) -> Option<&Partition> {
        self.partitions.get(self.home_index(id)?)
    }

    fn home_mut(&mut self, id: u16) -> Option<&mut Partition> {
        let index = self.home_index(id)?;
        self.partitions.get_mut(index)
    }

    fn home_index(&self, id: u16) -> Option<usize> {
        let (_, (last, index)) = self.home.range(..=id).next_back()?;
        (id <= *last).then_some(*index)
    }

    pub(super) fn partition(&self, tenant: Option<&TenantName>) -> Option<&Partition> {
        match tenant {
            None => self.partitions.first(),
            Some(_) => self
                .partitions
                .iter()
                .find(|partition| partition.tenant.as_ref() == tenant),
        }
    }

    /// How many VNIs of a share have rested long enough, and how many have not, at `now`.
    pub(super) fn resting_in(&self, partition: &Partition, now: Timestamp) -> (usize, usize) {
        let (mut ready, mut resting) = (0, 0);
        for (since, id) in &self.resting {
            if partition.vnis.contains(*id) {
                if now.since(*since) >= self.config.rest_time() {
                    ready += 1;
                } else {
                    resting += 1;
                }
            }
        }
        (ready, resting)
    }

    pub(super) fn oldest_drain(
        &self,
        partition: Option<&Partition>,
        now: Timestamp,
    ) -> Option<(Holder, Duration)> {
        let concerns = |holder: &Holder| {
            partition.is_none_or(|partition| match holder {
                Holder::Stray(vni) => partition.vnis.contains(vni.get()),
                Holder::Job(job) => self
                    .jobs
                    .get(job)
                    .is_some_and(|held| held.vnis.ids().any(|id| partition.vnis.contains(id))),
            })
        };
        self.drains
            .iter()
            .find(|(_, holder)| concerns(holder))
            .map(|(since, holder)| (holder.clone(), now.since(*since)))
    }

    /// Frees what has rested long enough; returns it, so that this can be undone.
    pub(super) fn settle(&mut self, now: Timestamp) -> Vec<(Timestamp, u16)> {
        let rest = self.config.rest_time();
        let mut settled = Vec::new();
        while let Some((since, id)) = self.resting.first().copied() {
            if now.since(since) < rest {
                break;
            }
            self.resting.remove(&(since, id));
            self.owners.remove(&id);
            self.set_free(id);
            settled.push((since, id));
        }
        settled
    }

    pub(super) fn unsettle(&mut self, settled: Vec<(Timestamp, u16)>) {
        for (since, id) in settled {
            self.set_resting(id, since);
        }
    }

    fn set_free(&mut self, id: u16) {
        if let Some(partition) = self.home_mut(id) {
            partition.free.insert(id);
        }
    }

    pub(super) fn set_resting(&mut self, id: u16, since: Timestamp) {
        self.own(id, Owner::Resting(since));
        self.resting.insert((since, id));
    }

    /// Records an owner for a VNI that has none or is resting.
    pub(super) fn own(&mut self, id: u16, owner: Owner) {
        if let Some(Owner::Resting(since)) = self.owners.get(&id) {
            self.resting.remove(&(*since, id));
        }
        if let Some(partition) = self.home_mut(id) {
            partition.free.remove(id);
        }
        if let Some(kind) = self.kind(&owner) {
            self.count(id, kind, 1);
        }
        self.owners.insert(id, owner);
    }

    /// Ends the ownership of a draining VNI.
    pub(super) fn confirmed_free(&mut self, id: u16, at: Timestamp) {
        self.owners.remove(&id);
        self.count(id, Count::Draining, -1);
        if self.config.rest_time().is_zero() {
            self.set_free(id);
        } else {
            self.set_resting(id, at);
        }
    }

    /// Assigns VNIs to a job; the caller has checked that they are available.
    pub(super) fn give(&mut self, job: &JobId, holding: Holding) {
        let ids: Vec<u16> = holding.vnis.ids().collect();
        if let Phase::Draining { since, .. } = holding.phase {
            self.drains.insert((since, Holder::Job(job.clone())));
        }
        self.jobs.insert(job.clone(), holding);
        for id in ids {
            self.own(id, Owner::Job(job.clone()));
        }
    }

    /// Removes a reserved job that no node has learnt of.
    pub(super) fn take_back(&mut self, job: &JobId) {
        for id in self
            .jobs
            .remove(job)
            .iter()
            .flat_map(|held| held.vnis.ids())
        {
            self.owners.remove(&id);
            self.count(id, Count::Reserved, -1);
            self.set_free(id);
        }
    }

    /// Moves a job from reserved to draining.
    pub(super) fn drain(&mut self, job: &JobId, nodes: &[NodeName], at: Timestamp) {
        let Some(held) = self.jobs.get_mut(job) else {
            return;
        };
        held.nodes.extend(nodes.iter().cloned());
        held.phase = Phase::Draining {
            since: at,
            waiting: held.nodes.clone(),
            nodes_known: !held.nodes.is_empty(),
        };
        let ids: Vec<u16> = held.vnis.ids().collect();
        self.drains.insert((at, Holder::Job(job.clone())));
        for id in ids {
            self.count(id, Count::Reserved, -1);
            self.count(id, Count::Draining, 1);
        }
    }

    /// Removes a draining job.
    pub(super) fn finish(&mut self, job: &JobId, at: Timestamp) {
        let Some(held) = self.jobs.remove(job) else {
            return;
        };
        if let Phase::Draining { since, .. } = held.phase {
            self.drains.remove(&(since, Holder::Job(job.clone())));
        }
        for id in held.vnis.ids() {
            self.confirmed_free(id, at);
        }
    }

    pub(super) fn add_stray(&mut self, vni: Vni, stray: Stray) {
        self.drains.insert((stray.since, Holder::Stray(vni)));
        self.own(vni.get(), Owner::Stray);
        self.strays.insert(vni.get(), stray);
    }

    pub(super) fn end_stray(&mut self, vni: Vni, at: Timestamp) {
        if let Some(stray) = self.strays.remove(&vni.get()) {
            self.drains.remove(&(stray.since, Holder::Stray(vni)));
            self.confirmed_free(vni.get(), at);
        }
    }
}
