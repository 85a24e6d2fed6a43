//! The state of a pool: who has which VNI.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use super::{Allotment, PoolConfig, PoolConfigError, Timestamp};
use crate::{IdSet, JobId, NodeName, TenantName};
use cxi::Vni;

/// Holding of a job in a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Holding {
    /// Its VNIs.
    pub vnis: Allotment,
    /// The tenant from whose share they are.
    pub tenant: Option<TenantName>,
    /// When they were reserved.
    pub reserved_at: Timestamp,
    /// In use, or draining.
    pub phase: Phase,
}

/// Phase of a holding: the job uses its VNIs, or they drain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Phase {
    /// The job is using them.
    Reserved,
    /// The job has ended, but its services may not be destroyed everywhere.
    Draining {
        /// Since when.
        since: Timestamp,
        /// The nodes that have not confirmed.
        waiting: BTreeSet<NodeName>,
        /// `true` if `waiting` is complete; if not, only confirming all nodes at once ends the
        /// draining.
        nodes_known: bool,
    },
}

/// A VNI that a node shows although no job has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Stray {
    /// When it was first seen.
    pub since: Timestamp,
    /// The nodes that show it.
    pub nodes: BTreeSet<NodeName>,
}

/// Holder that keeps a VNI draining.
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

/// Reason for which a VNI is not free.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Owner {
    Job(JobId),
    Stray,
    Resting(Timestamp),
}

/// One share of a pool: what is free in it, and where to look next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Partition {
    /// `None` for the share of requests without a tenant.
    pub(super) tenant: Option<TenantName>,
    pub(super) vnis: IdSet,
    pub(super) free: IdSet,
    pub(super) next: u16,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct State {
    pub(super) config: PoolConfig,
    /// The common share first.
    pub(super) partitions: Vec<Partition>,
    pub(super) owners: HashMap<Vni, Owner>,
    pub(super) jobs: HashMap<JobId, Holding>,
    pub(super) strays: BTreeMap<Vni, Stray>,
    /// In the order in which they become free.
    pub(super) resting: BTreeSet<(Timestamp, Vni)>,
}

/// The VNIs in a set of ids. 0 is not one.
pub(super) fn vnis(ids: &IdSet) -> impl Iterator<Item = Vni> + '_ {
    ids.iter().filter_map(|id| Vni::new(id).ok())
}

impl Partition {
    /// The next of these free VNIs, round robin; `None` if there are fewer.
    pub(super) fn pick(&self, free: &IdSet, count: u16) -> Option<Vec<u16>> {
        let count = usize::from(count);
        if free.len() < count {
            return None;
        }
        let mut from = self.next;
        let mut picked = Vec::with_capacity(count);
        while picked.len() < count {
            let id = free.next_from(from).or_else(|| free.first())?;
            picked.push(id);
            from = id.wrapping_add(1);
        }
        Some(picked)
    }

    /// The first VNI of the next free aligned block, round robin.
    pub(super) fn pick_block(&self, free: &IdSet, size: u16) -> Option<u16> {
        free.next_block_from(self.next, size).or_else(|| free.next_block_from(0, size))
    }
}

impl State {
    pub(super) fn new(config: PoolConfig) -> Result<Self, PoolConfigError> {
        let mut state = Self {
            config: config.clone(),
            partitions: Vec::new(),
            owners: HashMap::new(),
            jobs: HashMap::new(),
            strays: BTreeMap::new(),
            resting: BTreeSet::new(),
        };
        state.configure(config)?;
        Ok(state)
    }

    /// Applies a configuration. VNIs in use stay in use, even if they belong to another share now.
    pub(super) fn configure(&mut self, config: PoolConfig) -> Result<(), PoolConfigError> {
        let owned = self.owners.keys().map(|vni| vni.get()).collect();
        let share = |(tenant, vnis): (Option<TenantName>, IdSet)| {
            let before = self.partition(tenant.as_ref());
            Partition {
                // An existing share continues its round robin; a new one starts at 0.
                next: before.map_or(0, |before| before.next),
                free: vnis.difference(&owned),
                tenant,
                vnis,
            }
        };
        self.partitions = config.partitions()?.into_iter().map(share).collect();
        self.config = config;
        Ok(())
    }

    /// Returns whether a VNI belongs to the pool.
    pub(super) fn assigns(&self, vni: Vni) -> bool {
        let mut partitions = self.partitions.iter();
        partitions.any(|partition| partition.vnis.contains(vni.get()))
    }

    /// The share that a VNI belongs to.
    pub(super) fn home(&mut self, vni: Vni) -> Option<&mut Partition> {
        let mut partitions = self.partitions.iter_mut();
        partitions.find(|partition| partition.vnis.contains(vni.get()))
    }

    pub(super) fn partition(&self, tenant: Option<&TenantName>) -> Option<&Partition> {
        let mut partitions = self.partitions.iter();
        partitions.find(|partition| partition.tenant.as_ref() == tenant)
    }

    /// The VNIs that have rested long enough at `now`.
    fn rested(&self, now: Timestamp) -> impl Iterator<Item = (Timestamp, Vni)> + '_ {
        let rest = self.config.rest_time();
        self.resting.iter().copied().take_while(move |(since, _)| now.since(*since) >= rest)
    }

    /// The VNIs of a share that can be assigned at `now`.
    pub(super) fn free_at<'a>(&self, partition: &'a Partition, now: Timestamp) -> Cow<'a, IdSet> {
        let mut free = Cow::Borrowed(&partition.free);
        for (_, vni) in self.rested(now) {
            if partition.vnis.contains(vni.get()) {
                free.to_mut().insert(vni.get());
            }
        }
        free
    }

    /// Frees the VNIs that have rested long enough.
    pub(super) fn settle(&mut self, now: Timestamp) {
        let rested: Vec<_> = self.rested(now).collect();
        for (since, vni) in rested {
            self.resting.remove(&(since, vni));
            self.set_free(vni);
        }
    }

    fn set_free(&mut self, vni: Vni) {
        self.owners.remove(&vni);
        if let Some(partition) = self.home(vni) {
            partition.free.insert(vni.get());
        }
    }

    pub(super) fn set_resting(&mut self, vni: Vni, since: Timestamp) {
        self.own(vni, Owner::Resting(since));
        self.resting.insert((since, vni));
    }

    /// Records an owner for a VNI that has none or is resting.
    fn own(&mut self, vni: Vni, owner: Owner) {
        if let Some(Owner::Resting(since)) = self.owners.insert(vni, owner) {
            self.resting.remove(&(since, vni));
        }
        if let Some(partition) = self.home(vni) {
            partition.free.remove(vni.get());
        }
    }

    /// Ends the ownership of a draining VNI.
    fn confirmed_free(&mut self, vni: Vni, at: Timestamp) {
        if self.config.rest_time().is_zero() {
            self.set_free(vni);
        } else {
            self.set_resting(vni, at);
        }
    }

    /// Assigns VNIs to a job; the caller has checked that they are available.
    pub(super) fn give(&mut self, job: &JobId, holding: Holding) {
        for vni in holding.vnis.iter() {
            self.own(vni, Owner::Job(job.clone()));
        }
        self.jobs.insert(job.clone(), holding);
    }

    /// Removes a reserved job that no node has learnt of.
    pub(super) fn take_back(&mut self, job: &JobId) {
        if let Some(held) = self.jobs.remove(job) {
            for vni in held.vnis.iter() {
                self.set_free(vni);
            }
        }
    }

    /// Moves a job from reserved to draining.
    pub(super) fn drain(&mut self, job: &JobId, nodes: &[NodeName], at: Timestamp) {
        if let Some(held) = self.jobs.get_mut(job) {
            held.phase = Phase::Draining {
                since: at,
                waiting: nodes.iter().cloned().collect(),
                nodes_known: !nodes.is_empty(),
            };
        }
    }

    /// Removes a draining job.
    pub(super) fn finish(&mut self, job: &JobId, at: Timestamp) {
        if let Some(held) = self.jobs.remove(job) {
            for vni in held.vnis.iter() {
                self.confirmed_free(vni, at);
            }
        }
    }

    pub(super) fn add_stray(&mut self, vni: Vni, stray: Stray) {
        self.own(vni, Owner::Stray);
        self.strays.insert(vni, stray);
    }

    pub(super) fn end_stray(&mut self, vni: Vni, at: Timestamp) {
        if self.strays.remove(&vni).is_some() {
            self.confirmed_free(vni, at);
        }
    }
}
