//! Refusals of a pool.

use std::fmt;

use super::{Allotment, Change, Event, Holder, Metrics, PoolConfigError, VniRequest};
use crate::{ErrorCode, IdSet, JobId, NodeName, TenantName};
use cxi::Vni;

/// Reason for which VNIs were not reserved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReserveError {
    /// Not one to four VNIs.
    #[error("a job can have 1 to 4 VNIs (one service lists no more), not {asked}")]
    Count {
        /// Number that was requested.
        asked: u8,
    },
    /// A block's size is not a power of two.
    #[error("invalid block of {size} VNIs: expected a power of two")]
    BlockSize {
        /// The requested size.
        size: u16,
    },
    /// There is no tenant of this name.
    #[error("no tenant {tenant} in the configuration of the pool (it has {})", list(known))]
    UnknownTenant {
        /// The requested name.
        tenant: TenantName,
        /// The tenants that exist.
        known: Vec<TenantName>,
    },
    /// Not enough VNIs, or no free block of that size.
    #[error(transparent)]
    Short(PoolShortage),
    /// The job already has VNIs, other than those requested.
    #[error("job {job} has {held}{}, which is not {asked}: release it first", of_tenant(tenant.as_ref()))]
    Differs {
        /// The job.
        job: JobId,
        /// The VNIs that it has.
        held: Allotment,
        /// The tenant from whose share that is.
        tenant: Option<TenantName>,
        /// The request.
        asked: Box<VniRequest>,
    },
    /// The pool has VNIs for the job that others have, as records say.
    #[error(
        "the pool has {held} for job {job}, and others have VNI {others}, as records say: end what the pool says of it, with a release"
    )]
    Others {
        /// The job.
        job: JobId,
        /// The VNIs that it has in the pool.
        held: Allotment,
        /// Those of others.
        others: IdSet,
    },
    /// The job was released, but its services are not yet destroyed everywhere.
    #[error("job {job} was released and is still draining {vnis} ({}): confirm that first, or give the new run a different ID", waiting(*nodes))]
    Draining {
        /// The job.
        job: JobId,
        /// The VNIs that are draining.
        vnis: Allotment,
        /// Number of nodes that have not confirmed; `None` if the nodes are not known.
        nodes: Option<usize>,
    },
    /// The pool's state contradicts the reservation.
    #[error(transparent)]
    Refused(#[from] PoolError),
}

impl ReserveError {
    /// Returns the kind of failure.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Count { .. } | Self::BlockSize { .. } | Self::UnknownTenant { .. } => {
                ErrorCode::BadInput
            }
            Self::Short(_) => ErrorCode::NotEnough,
            Self::Draining { .. } => ErrorCode::Busy,
            Self::Refused(error) => error.code(),
            Self::Differs { .. } | Self::Others { .. } => ErrorCode::Failed,
        }
    }
}

impl PoolError {
    /// Returns the kind of failure.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::UnknownJob { .. } | Self::NotStray { .. } => ErrorCode::NotFound,
            Self::Config(_) => ErrorCode::BadInput,
            Self::Snapshot(error) => error.code(),
            _ => ErrorCode::Failed,
        }
    }
}

/// State of a pool that could not serve a request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolShortage {
    /// The request.
    pub asked: Box<VniRequest>,
    /// State of the part of the pool from which it was requested.
    pub part: Metrics,
}

impl fmt::Display for PoolShortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (asked, part) = (&self.asked, &self.part);
        write!(f, "failed to reserve {asked}: {} available", part.free)?;
        if matches!(asked.shape, super::allotment::Shape::Block(_)) && part.free > 0 {
            f.write_str(" (no such block among them)")?;
        }
        if part.draining > 0 {
            write!(f, ", {} draining", part.draining)?;
            if let Some((holder, age)) = &part.oldest_draining {
                write!(f, " (oldest {holder}, {} s)", age.as_secs())?;
            }
        }
        if part.resting > 0 {
            write!(f, ", {} resting", part.resting)?;
        }
        if part.draining == 0 && part.resting == 0 {
            write!(f, ", {} reserved by jobs", part.reserved)?;
        }
        Ok(())
    }
}

impl std::error::Error for PoolShortage {}

/// Reason for which a change was refused; the pool is as it was before.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PoolError {
    /// The pool has no such job: it never reserved, or all is confirmed.
    #[error("job {job} has no VNIs in the pool")]
    UnknownJob {
        /// The job.
        job: JobId,
    },
    /// The job already has VNIs.
    #[error("job {job} has {held}")]
    AlreadyHolds {
        /// The job.
        job: JobId,
        /// The VNIs that it has.
        held: Allotment,
    },
    /// The job was not released.
    #[error("job {job} is not released: its VNIs are in use")]
    NotReleased {
        /// The job.
        job: JobId,
    },
    /// The job was released.
    #[error("job {job} is released: its VNIs are draining")]
    Released {
        /// The job.
        job: JobId,
    },
    /// The job is not waiting for this node.
    #[error("job {job} does not wait for node {node} ({})", waiting(*nodes))]
    NotWaiting {
        /// The job.
        job: JobId,
        /// The node.
        node: NodeName,
        /// Number of nodes that it is waiting for; `None` if its nodes are not known.
        nodes: Option<usize>,
    },
    /// A VNI is in use by another job.
    #[error("VNI {vni} is reserved by job {holder}")]
    InUse {
        /// The VNI.
        vni: Vni,
        /// The job that has it.
        holder: JobId,
    },
    /// A VNI's services are not destroyed everywhere.
    #[error("VNI {vni} is draining ({holder}) and not confirmed on every node")]
    NotConfirmed {
        /// The VNI.
        vni: Vni,
        /// The job or stray that still holds the VNI.
        holder: Holder,
    },
    /// A job has one to four different VNIs, or one block.
    #[error("job {job} cannot have {vnis}: 1 to 4 different VNIs or one block")]
    BadAllotment {
        /// The job.
        job: JobId,
        /// The VNIs that it would have.
        vnis: Allotment,
    },
    /// The VNI is not a stray.
    #[error("VNI {vni} is not stray: no node shows it without a job")]
    NotStray {
        /// The VNI.
        vni: Vni,
    },
    /// An event is missing or duplicated.
    #[error("expected event number {expected}, found {found}")]
    OutOfSequence {
        /// The number after that of the pool's latest event.
        expected: u64,
        /// The number of this one.
        found: u64,
    },
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] PoolConfigError),
    /// A snapshot has a version that this library does not know.
    #[error("snapshot version {found} is unknown, this library reads version {known}")]
    Version {
        /// Its version.
        found: u32,
        /// The version that is known.
        known: u32,
    },
    /// A snapshot is damaged: it has a configuration or an allotment that no pool can have.
    #[error("snapshot: {0}")]
    Snapshot(Box<PoolError>),
    /// A VNI occurs in a snapshot twice.
    #[error("snapshot: VNI {vni} occurs in it twice: a VNI is in one job, or stray, or resting")]
    Repeated {
        /// The VNI.
        vni: Vni,
    },
}

/// Reason for which a log cannot be replayed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("event {index} ({change}): {reason}")]
#[non_exhaustive]
pub struct ReplayError {
    /// Number of the event, from 0.
    pub index: usize,
    /// The event's change.
    pub change: Box<Change>,
    /// The reason for which it is impossible.
    pub reason: PoolError,
}

impl ReplayError {
    pub(super) fn new(index: usize, event: &Event, reason: PoolError) -> Self {
        Self { index, change: Box::new(event.change.clone()), reason }
    }
}

fn waiting(nodes: Option<usize>) -> String {
    match nodes {
        None => "its nodes are not known: confirm all at once".to_owned(),
        Some(1) => "1 node has not confirmed".to_owned(),
        Some(nodes) => format!("{nodes} nodes have not confirmed"),
    }
}

fn of_tenant(tenant: Option<&TenantName>) -> String {
    tenant.map_or_else(String::new, |tenant| format!(" of tenant {tenant}"))
}

fn list(known: &[TenantName]) -> String {
    if known.is_empty() {
        return "none".to_owned();
    }
    let names: Vec<&str> = known.iter().map(TenantName::as_str).collect();
    names.join(", ")
}
