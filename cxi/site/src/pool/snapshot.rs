//! Storing and restoring the state of a pool.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use super::apply::well_formed;
use super::state::State;
use super::{Holding, PoolConfig, PoolError, Stray, Timestamp, VniPool};
use crate::{JobId, TenantName};
use cxi::Vni;

/// Everything a pool knows, in a form to store across restarts (for example as JSON, with the
/// `serde` feature).
///
/// To start a pool with another configuration than the stored one, call [`VniPool::reconfigure`]
/// after [`VniPool::restore`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Snapshot {
    /// The version of this data: [`Snapshot::VERSION`].
    pub version: u32,
    /// The number of the latest event included; see [`VniPool::catch_up`].
    pub sequence: u64,
    /// The configuration.
    pub config: PoolConfig,
    /// Positions at which the round robin continues.
    pub cursors: Vec<Cursor>,
    /// Holdings of the jobs.
    pub jobs: BTreeMap<JobId, Holding>,
    /// VNIs that nodes show although no job has them.
    pub strays: Vec<(Vni, Stray)>,
    /// VNIs that are resting, and since when.
    pub resting: Vec<(Vni, Timestamp)>,
}

/// Position at which the round robin continues in one share of the pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Cursor {
    /// The tenant; `None` for the common share.
    pub tenant: Option<TenantName>,
    /// The number to try first.
    pub next: u16,
}

impl Snapshot {
    /// The version that this library writes and reads.
    pub const VERSION: u32 = 1;
}

impl VniPool {
    /// Returns the state as data to store.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let State { config, partitions, jobs, strays, resting, .. } = &self.state;
        Snapshot {
            version: Snapshot::VERSION,
            sequence: self.sequence,
            config: config.clone(),
            cursors: partitions
                .iter()
                .map(|partition| Cursor { tenant: partition.tenant.clone(), next: partition.next })
                .collect(),
            jobs: jobs.clone().into_iter().collect(),
            strays: strays.clone().into_iter().collect(),
            resting: resting.iter().map(|(since, vni)| (*vni, *since)).collect(),
        }
    }

    /// Restores the pool from which a snapshot was taken.
    ///
    /// # Errors
    /// [`PoolError`]: the snapshot has an unknown version, it is damaged, or a VNI occurs in it twice.
    pub fn restore(snapshot: Snapshot) -> Result<Self, PoolError> {
        let sequence = snapshot.sequence;
        let state = State::restore(snapshot)?;
        Ok(Self { state, sequence })
    }
}

impl State {
    /// The state in a snapshot.
    pub(super) fn restore(snapshot: Snapshot) -> Result<Self, PoolError> {
        if snapshot.version != Snapshot::VERSION {
            return Err(PoolError::Version { found: snapshot.version, known: Snapshot::VERSION });
        }
        let damaged = |error: PoolError| PoolError::Snapshot(Box::new(error));
        let state = Self::new(snapshot.config);
        let mut state = state.map_err(|error| damaged(error.into()))?;
        for cursor in snapshot.cursors {
            if let Some(partition) =
                state.partitions.iter_mut().find(|partition| partition.tenant == cursor.tenant)
            {
                partition.next = cursor.next;
            }
        }
        let vacant = |state: &Self, vni: Vni| match state.owners.get(&vni) {
            None => Ok(()),
            Some(_) => Err(PoolError::Repeated { vni }),
        };
        for (job, holding) in snapshot.jobs {
            if !well_formed(&holding.vnis) {
                let vnis = holding.vnis;
                return Err(damaged(PoolError::BadAllotment { job, vnis }));
            }
            holding.vnis.iter().try_for_each(|vni| vacant(&state, vni))?;
            state.give(&job, holding);
        }
        for (vni, stray) in snapshot.strays {
            vacant(&state, vni)?;
            state.add_stray(vni, stray);
        }
        for (vni, since) in snapshot.resting {
            vacant(&state, vni)?;
            state.set_resting(vni, since);
        }
        Ok(state)
    }
}
