//! Changes of a pool, as plain data for a log.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{Allotment, PoolConfig, Snapshot};
use crate::{IdSet, JobId, NodeName, TenantName};
use cxi::Vni;

/// A point in time in milliseconds since 1970 (or since any start that all events of a log share).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The system's time.
    #[must_use]
    pub fn now() -> Self {
        SystemTime::now().into()
    }

    /// From milliseconds since the start.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the start.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Returns the time from `earlier` to this; zero if it is before.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl From<SystemTime> for Timestamp {
    /// Times before 1970 become 1970.
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}

impl std::ops::Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(millis))
    }
}

/// One change of a pool's state, to be kept in a log.
///
/// Every method of [`VniPool`](super::VniPool) that changes something returns one in a [`Changed`](super::Changed); the same events
/// in the same order make the same pool. They are numbered from 1 without gaps, so that a missing
/// or duplicated event is noticed. Only [`Change::Saved`] needs none before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[must_use = "a change that is not logged before it is acted on is lost in a crash"]
#[non_exhaustive]
pub struct Event {
    /// The number of this change, from 1.
    pub sequence: u64,
    /// When it happened.
    pub at: Timestamp,
    /// The change.
    pub change: Change,
}

impl Event {
    /// Makes an event from a log of another kind (Flux's job eventlog, for example).
    pub const fn new(sequence: u64, at: Timestamp, change: Change) -> Self {
        Self { sequence, at, change }
    }
}

/// Change in an [`Event`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Change {
    /// VNIs were assigned to a job.
    Reserved {
        /// The job.
        job: JobId,
        /// The tenant from whose share they came.
        tenant: Option<TenantName>,
        /// The VNIs.
        vnis: Allotment,
    },
    /// Records say that jobs have VNIs that the pool considered free, resting or stray.
    Adopted {
        /// The jobs, with those VNIs.
        jobs: BTreeMap<JobId, Vec<Vni>>,
    },
    /// The job did not start: its VNIs are free.
    Cancelled {
        /// The job.
        job: JobId,
    },
    /// The job no longer uses its VNIs, which now drain.
    Released {
        /// The job.
        job: JobId,
        /// The nodes on which its services must be destroyed first; empty if they are not known.
        nodes: Vec<NodeName>,
    },
    /// All of the job's services on one node are destroyed.
    Confirmed {
        /// The job.
        job: JobId,
        /// The node.
        node: NodeName,
    },
    /// All services of jobs are destroyed on all nodes.
    ConfirmedAll {
        /// The jobs.
        jobs: Vec<JobId>,
    },
    /// An operator declares a VNI without a job free.
    StrayReleased {
        /// The VNI.
        vni: Vni,
    },
    /// A report of all VNIs that the services on a node's NICs have.
    Observed {
        /// The node.
        node: NodeName,
        /// Those VNIs of the report that no live job was using.
        vnis: IdSet,
    },
    /// The configuration changed.
    Reconfigured {
        /// The new one.
        config: PoolConfig,
    },
    /// Nothing changed. A log may begin with this event: it stands for all before it.
    Saved {
        /// The pool after the event before.
        pool: Box<Snapshot>,
    },
}

impl Change {
    /// The configuration after this change, if a log may begin with it.
    pub(super) const fn config(&self) -> Option<&PoolConfig> {
        match self {
            Self::Reconfigured { config } => Some(config),
            Self::Saved { pool } => Some(&pool.config),
            _ => None,
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reserved { job, vnis, .. } => write!(f, "reserve {vnis} for job {job}"),
            Self::Adopted { jobs } => {
                let jobs: Vec<&str> = jobs.keys().map(JobId::as_str).collect();
                write!(f, "adopt the recorded VNIs of job {}", jobs.join(", "))
            }
            Self::Cancelled { job } => write!(f, "cancel the reservation of job {job}"),
            Self::Released { job, nodes } => {
                let noun = if nodes.len() == 1 { "node" } else { "nodes" };
                write!(f, "release job {job} on {} {noun}", nodes.len())
            }
            Self::Confirmed { job, node } => write!(f, "confirm job {job} on {node}"),
            Self::ConfirmedAll { jobs } => {
                let jobs: Vec<&str> = jobs.iter().map(JobId::as_str).collect();
                write!(f, "confirm job {} on all nodes", jobs.join(", "))
            }
            Self::StrayReleased { vni } => write!(f, "operator releases VNI {vni}"),
            Self::Observed { node, vnis } if vnis.is_empty() => {
                write!(f, "node {node} shows no stray VNIs any more")
            }
            Self::Observed { node, vnis } => write!(f, "node {node} shows VNIs {vnis}"),
            Self::Reconfigured { .. } => f.write_str("change the configuration"),
            Self::Saved { .. } => f.write_str("save the pool"),
        }
    }
}
