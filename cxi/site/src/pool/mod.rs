//! Assignments of a cluster's VNIs to jobs, and the times at which each may be assigned again.
//!
//! If a VNI goes to a new job while a service of an old job still has it, the two jobs can
//! communicate. A VNI is therefore not free when its job ends, but when every node has confirmed
//! that the job's services are destroyed:
//!
//! ```text
//!          reserve               release                              confirm on every node
//!   free ----------> reserved -----------------------------> draining ---------------------> resting --> free
//!     ^--- cancel ------'                                      ^  ^-- a node shows it again
//!     '------------- a node shows it although no job has it ---'
//! ```
//!
//! A controller uses a [`SharedPool`](log::SharedPool), which logs each change before it returns the
//! result. [`VniPool`] is the pool below it: it does no I/O and has no clock. The caller passes in the
//! time, and every change returns a [`Changed`], whose [`Event`] must be logged before its result is
//! used. A pool is rebuilt from that log ([`VniPool::replay`]) or from a [`Snapshot`], and compared
//! with what the NICs show by [`VniPool::reconcile`].
//!
//! ```
//! use cxi_site::pool::{PoolConfig, Timestamp, VniPool, VniRequest};
//! use cxi_site::{JobId, NodeName};
//!
//! let config = PoolConfig::new("1024-65535".parse()?);
//! let mut pool = VniPool::new(config.clone())?;
//! let mut log = Vec::new();
//! let at = Timestamp::from_millis;
//!
//! // The job starts.
//! let job = JobId::new("ƒ3WqKLhmP")?;
//! let reserved = pool.reserve(&job, &VniRequest::vnis(1), at(0))?;
//! assert_eq!(reserved.result.to_string(), "VNI 1024");
//! log.extend(reserved.event);
//!
//! // The job ends; its nodes destroy the services.
//! let nodes = [NodeName::new("node1")?, NodeName::new("node2")?];
//! log.extend(pool.release(&job, &nodes, at(60_000))?.event);
//! log.extend(pool.confirm(&job, &nodes[0], at(60_020))?.event);
//! assert_eq!(pool.metrics(at(60_020)).draining, 1);
//!
//! // The scheduler restarts: the same pool again.
//! let mut again = VniPool::replay(config, &log)?;
//! assert_eq!(again, pool);
//! log.extend(again.confirm(&job, &nodes[1], at(61_000))?.event);
//! assert_eq!(again.metrics(at(61_000)).draining, 0);
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

mod allotment;
mod apply;
mod config;
mod error;
mod event;
pub mod log;
mod metrics;
mod reconcile;
mod reserve;
mod snapshot;
mod state;

use allotment::MAX_VNIS_PER_JOB;
pub use allotment::{Allotment, VniRequest};
pub use config::{DEFAULT_VNIS, PoolConfig, PoolConfigError};
pub use error::{PoolError, PoolShortage, ReplayError, ReserveError};
pub use event::{Change, Event, Timestamp};
pub use metrics::Metrics;
pub use reconcile::Reconciled;
pub use snapshot::{Cursor, Snapshot};
pub use state::{Holder, Holding, Phase, Stray};

use std::collections::{BTreeMap, BTreeSet};

use state::State;

use crate::{JobId, NodeName};
use cxi::Vni;

/// The VNIs of a cluster: see the [module](self).
///
/// A pool has no clock: each change takes the time from the caller, usually [`Timestamp::now`].
///
/// Equal pools have the same VNIs in the same states, and will assign the same ones next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VniPool {
    state: State,
    /// Number of events that have been applied.
    sequence: u64,
}

/// The result of a change of a pool, and the event that records it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a change that is not logged before it is acted on is lost in a crash"]
#[allow(clippy::exhaustive_structs, reason = "callers make it for SharedPool::change")]
pub struct Changed<T = ()> {
    /// Result of the change.
    pub result: T,
    /// The event to log; `None` if nothing has changed.
    pub event: Option<Event>,
}

impl Changed {
    /// Nothing had to be changed.
    pub const fn nothing() -> Self {
        Self { result: (), event: None }
    }
}

impl VniPool {
    /// Creates a pool with all VNIs free.
    ///
    /// # Errors
    /// [`PoolError::Config`]: nothing to assign, or a tenant's share outside the pool or overlapping
    /// another tenant's.
    pub fn new(config: PoolConfig) -> Result<Self, PoolError> {
        let state = State::new(config)?;
        Ok(Self { state, sequence: 0 })
    }

    /// Rebuilds a pool from all events of a log, in time linear in their number.
    ///
    /// `config` is the configuration before the first event. That event may have any number, in
    /// case the beginning of the log is lost. A VNI that the log assigns although the configuration
    /// does not contain it is kept until it is confirmed, and not assigned again: the log may be
    /// older than the configuration.
    ///
    /// # Errors
    /// [`ReplayError`] names the first event that contradicts the ones before it, and why; the
    /// events before it do make a pool. An unusable configuration is reported with the event that
    /// introduced it, and `config` itself as event 0.
    pub fn replay<'a>(
        config: PoolConfig,
        events: impl IntoIterator<Item = &'a Event>,
    ) -> Result<Self, ReplayError> {
        let mut pool = match Self::new(config.clone()) {
            Ok(pool) => pool,
            Err(error) => {
                let change = Change::Reconfigured { config };
                let event = Event::new(0, Timestamp::default(), change);
                return Err(ReplayError::new(0, &event, error));
            }
        };
        let mut events = events.into_iter().peekable();
        if let Some(first) = events.peek() {
            pool.sequence = first.sequence.saturating_sub(1);
        }
        pool.take_over(events.enumerate())?;
        Ok(pool)
    }

    /// Applies those events of a log that are newer than the pool; returns how many there were.
    ///
    /// A pool that is stored in addition to its log is one event behind if the process was killed
    /// between the two writes.
    ///
    /// # Errors
    /// [`ReplayError`], as of [`VniPool::replay`].
    pub fn catch_up<'a>(
        &mut self,
        events: impl IntoIterator<Item = &'a Event>,
    ) -> Result<usize, ReplayError> {
        let before = self.sequence;
        let newer = |(_, event): &(usize, &Event)| event.sequence > before;
        self.take_over(events.into_iter().enumerate().filter(newer))
    }

    fn take_over<'a>(
        &mut self,
        events: impl Iterator<Item = (usize, &'a Event)>,
    ) -> Result<usize, ReplayError> {
        let mut taken = 0;
        for (index, event) in events {
            self.apply(event).map_err(|reason| ReplayError::new(index, event, reason))?;
            taken += 1;
        }
        Ok(taken)
    }

    /// Applies one event of a log: the next one, or a later one that has saved the pool.
    ///
    /// # Errors
    /// [`PoolError`]: the event contradicts the state, which is left unchanged.
    pub fn apply(&mut self, event: &Event) -> Result<(), PoolError> {
        let found = event.sequence;
        let next = self.sequence.saturating_add(1);
        let expected = match &event.change {
            Change::Saved { pool } if found == pool.sequence.saturating_add(1) => found.max(next),
            Change::Saved { pool } => pool.sequence.saturating_add(1),
            _ => next,
        };
        if found != expected {
            return Err(PoolError::OutOfSequence { expected, found });
        }
        self.state.apply(event)?;
        self.sequence = expected;
        Ok(())
    }

    /// Returns the number of events that have been applied: the number of the latest one.
    #[must_use]
    pub const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The current configuration.
    #[must_use]
    pub const fn config(&self) -> &PoolConfig {
        &self.state.config
    }

    /// Returns whether a VNI may be assigned, now or later: it is in the configuration, and not
    /// excluded.
    #[must_use]
    pub fn assigns(&self, vni: Vni) -> bool {
        self.state.assigns(vni)
    }

    /// Returns the holding of a job; `None` if it never reserved or all is confirmed.
    #[must_use]
    pub fn job(&self, job: &JobId) -> Option<&Holding> {
        self.state.jobs.get(job)
    }

    /// All jobs with VNIs, live or draining, in no particular order.
    pub fn jobs(&self) -> impl Iterator<Item = (&JobId, &Holding)> {
        self.state.jobs.iter()
    }

    /// The VNIs that nodes show although no job has them.
    pub fn strays(&self) -> impl Iterator<Item = (Vni, &Stray)> {
        self.state.strays.iter().map(|(vni, stray)| (*vni, stray))
    }

    /// Adds the VNIs that records say jobs have, as far as no job has them in this pool: after an older
    /// copy of the pool was restored, or a new one was configured. Returns the jobs that now have
    /// VNIs. Jobs that the pool knows keep what they have there.
    ///
    /// # Errors
    /// [`PoolError::BadAllotment`]: a record with more VNIs than a job can have, or with one twice.
    pub fn adopt(
        &mut self,
        recorded: &BTreeMap<JobId, Vec<Vni>>,
        now: Timestamp,
    ) -> Result<Changed<Vec<JobId>>, PoolError> {
        let (mut jobs, mut taken) = (BTreeMap::new(), BTreeSet::new());
        for (job, vnis) in recorded {
            let mut vnis = self.state.adoptable(job, vnis);
            vnis.retain(|vni| taken.insert(*vni));
            if !vnis.is_empty() {
                jobs.insert(job.clone(), vnis);
            }
        }
        let result: Vec<JobId> = jobs.keys().cloned().collect();
        if jobs.is_empty() {
            return Ok(Changed { result, event: None });
        }
        Ok(Changed { result, event: self.commit(Change::Adopted { jobs }, now)?.event })
    }

    /// Takes back a job's reservation: its VNIs are free at once, without
    /// a rest. Only for a job that no node has learnt of, because it did not start; if a node may
    /// have made a service, [`release`](Self::release) the job.
    ///
    /// # Errors
    /// [`PoolError`]: unknown job, or released.
    pub fn cancel(&mut self, job: &JobId, now: Timestamp) -> Result<Changed, PoolError> {
        self.commit(Change::Cancelled { job: job.clone() }, now)
    }

    /// Ends a job's use of its VNIs. They are not free yet: they drain until each of `nodes`
    /// [confirms](Self::confirm). Without any node, they drain until [`VniPool::confirm_all`]. A
    /// repeated call returns no event.
    ///
    /// # Errors
    /// [`PoolError::UnknownJob`].
    pub fn release(
        &mut self,
        job: &JobId,
        nodes: &[NodeName],
        now: Timestamp,
    ) -> Result<Changed, PoolError> {
        if let Phase::Draining { .. } = self.state.holding(job)?.phase {
            return Ok(Changed::nothing());
        }
        let (job, nodes) = (job.clone(), nodes.to_vec());
        self.commit(Change::Released { job, nodes }, now)
    }

    /// Records that a node has destroyed all of the job's services. After the last node the VNIs
    /// rest or are free.
    ///
    /// # Errors
    /// [`PoolError`]: unknown job, not released, or not waiting for this node.
    pub fn confirm(
        &mut self,
        job: &JobId,
        node: &NodeName,
        now: Timestamp,
    ) -> Result<Changed, PoolError> {
        let (job, node) = (job.clone(), node.clone());
        self.commit(Change::Confirmed { job, node }, now)
    }

    /// Records that all nodes have destroyed all services of these jobs, or that an operator knows
    /// that none is left, for example because a node was replaced. Without a job, returns no event.
    ///
    /// # Errors
    /// [`PoolError`]: an unknown job, or one that is not released.
    pub fn confirm_all(&mut self, jobs: &[JobId], now: Timestamp) -> Result<Changed, PoolError> {
        if jobs.is_empty() {
            return Ok(Changed::nothing());
        }
        let jobs = jobs.to_vec();
        self.commit(Change::ConfirmedAll { jobs }, now)
    }

    /// Records an operator's statement that no service with a stray VNI is left.
    ///
    /// # Errors
    /// [`PoolError::NotStray`].
    pub fn operator_release_stray(
        &mut self,
        vni: Vni,
        now: Timestamp,
    ) -> Result<Changed, PoolError> {
        self.commit(Change::StrayReleased { vni }, now)
    }

    /// Changes the configuration. VNIs in use that it no longer contains stay with their jobs and
    /// are not assigned again.
    ///
    /// # Errors
    /// [`PoolError::Config`]; the old configuration stays in force.
    pub fn reconfigure(
        &mut self,
        config: PoolConfig,
        now: Timestamp,
    ) -> Result<Changed, PoolError> {
        if config == self.state.config {
            return Ok(Changed::nothing());
        }
        self.commit(Change::Reconfigured { config }, now)
    }

    /// Returns the current configuration as an event, with which the log of a new pool begins.
    ///
    /// # Errors
    /// None for a pool made by this library.
    pub fn record_config(&mut self, now: Timestamp) -> Result<Changed, PoolError> {
        let config = self.state.config.clone();
        self.commit(Change::Reconfigured { config }, now)
    }

    /// Returns the pool as an event, with which its log may begin from now on.
    ///
    /// # Errors
    /// None for a pool made by this library.
    pub fn save(&mut self, now: Timestamp) -> Result<Changed, PoolError> {
        let pool = Box::new(self.snapshot());
        self.commit(Change::Saved { pool }, now)
    }

    fn commit(&mut self, change: Change, at: Timestamp) -> Result<Changed, PoolError> {
        let event = Event::new(self.sequence.saturating_add(1), at, change);
        self.apply(&event)?;
        Ok(Changed { result: (), event: Some(event) })
    }
}
