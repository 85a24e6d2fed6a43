//! Failures of an allocation: the reasons, and the rest of the attempt.

use std::fmt;

use crate::explain::Explanation;
use crate::grant::LeftOut;
use crate::limits::{Cut, PlanError, RgidError};
use crate::node::NicProblem;
use cxi::error::Error;
use cxi::{DeviceId, ServiceId};
use cxi_ioctl::Errno;
use cxi_site::ErrorCode;
use cxi_site::durable::LockError;

/// Reason for which a job got nothing, and the rest of the attempt.
///
/// `Display` prints everything that an administrator has to know, on several lines.
#[derive(Debug)]
#[non_exhaustive]
pub enum AllocateError {
    /// Fewer NICs are usable than the job asks for. Nothing was made.
    TooFew {
        /// Number of usable NICs.
        usable: usize,
        /// Number of NICs that are needed.
        wanted: usize,
        /// The unusable ones, with the reasons.
        left_out: Vec<LeftOut>,
    },
    /// The [node's lock](crate::Node::with_lock) could not be acquired. Nothing was made.
    Locked(LockError),
    /// The allocation failed on some NICs.
    Nics {
        /// The failures, by NIC.
        failures: Vec<NicFailure>,
        /// Every service of the job that still exists or may exist.
        left: Vec<LeftBehind>,
    },
}

/// Failure of one NIC.
#[derive(Debug, thiserror::Error)]
#[error("{device}: {}", self.text())]
#[non_exhaustive]
pub struct NicFailure {
    /// The NIC.
    pub device: DeviceId,
    /// The cause, for programs.
    #[source]
    pub cause: Cause,
    /// The explanations, for people.
    pub explanations: Vec<Explanation>,
}

/// Cause of a failure on a NIC.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// The node has no such NIC.
    #[error("the node has no such NIC")]
    NotThere,
    /// The NIC cannot be used.
    #[error("{}", list(.0))]
    Unusable(Vec<NicProblem>),
    /// The job's limits do not fit what the NIC has.
    #[error(transparent)]
    Plan(PlanError),
    /// The job's processes cannot share the NIC's RGIDs.
    #[error(transparent)]
    Rgids(RgidError),
    /// The NIC could not be queried, or refused the service.
    #[error(transparent)]
    Service(Error),
}

/// A service of the job that still exists or may exist.
#[derive(Debug, thiserror::Error)]
#[error("{device}: {} {reason}", service.map_or_else(|| "a service".to_owned(), |id| format!("service {id}")))]
#[non_exhaustive]
pub struct LeftBehind {
    /// The NIC.
    pub device: DeviceId,
    /// The service; `None` if the NIC no longer answers, so that it is unknown whether there is
    /// one.
    pub service: Option<ServiceId>,
    /// The reason for which it is still there.
    pub reason: LeftBehindReason,
}

/// Reason for which a service is still there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LeftBehindReason {
    /// Destroying it failed.
    #[error("still exists: destroying it failed: {0}")]
    Stuck(Error),
    /// It was not destroyed, because this driver may do damage when it is.
    #[error("still exists: {0}")]
    Hazard(String),
    /// It was there before, made by an earlier run for the same job.
    #[error("still exists: it is from an earlier run for this job")]
    Adopted,
    /// It appeared while this job's service was made, and its owner is unknown: the driver's answer
    /// was lost before the service got its VNIs or members.
    #[error(
        "still exists, and may be this job's: it appeared in the meantime, and the driver's \
         answer was lost"
    )]
    Unclear,
    /// The driver's answer was lost, and the NIC could not be queried for what it made.
    #[error("may exist: the driver's answer was lost, and asking again failed: {0}")]
    Unknown(Error),
}

impl AllocateError {
    pub(super) fn of(failures: Vec<NicFailure>, left: Vec<LeftBehind>) -> Self {
        Self::Nics { failures, left }
    }

    /// Returns the failures, by NIC.
    #[must_use]
    pub fn failures(&self) -> &[NicFailure] {
        match self {
            Self::TooFew { .. } | Self::Locked(_) => &[],
            Self::Nics { failures, .. } => failures,
        }
    }

    /// Returns the kind of failure; of several NICs, the first one's.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::TooFew { .. } => ErrorCode::NoDevice,
            Self::Locked(error) if error.is_busy() => ErrorCode::Busy,
            Self::Locked(_) => ErrorCode::Failed,
            Self::Nics { failures, .. } => match failures.first().map(|failure| &failure.cause) {
                Some(Cause::Plan(_) | Cause::Rgids(_)) => ErrorCode::NotEnough,
                Some(Cause::Service(error)) => ErrorCode::of(error),
                Some(Cause::NotThere | Cause::Unusable(_)) | None => ErrorCode::NoDevice,
            },
        }
    }

    /// The errno: the driver's, if it refused; else that of the [`code`](Self::code).
    #[must_use]
    pub fn errno(&self) -> Errno {
        match (self, self.failures().first().map(|failure| &failure.cause)) {
            (Self::Locked(error), _) => error.errno(),
            (_, Some(Cause::Service(error))) => error.errno(),
            _ => self.code().errno(),
        }
    }

    /// Every service of the job that still exists or may exist. Empty if nothing is left.
    #[must_use]
    pub fn left(&self) -> &[LeftBehind] {
        match self {
            Self::TooFew { .. } | Self::Locked(_) => &[],
            Self::Nics { left, .. } => left,
        }
    }

    /// Returns whether this attempt itself left something, or may have.
    pub(crate) fn left_something(&self) -> bool {
        self.left().iter().any(|left| !matches!(left.reason, LeftBehindReason::Adopted))
    }

    /// Returns the rest of the job on this node, in words: nothing, or one line for each service.
    #[must_use]
    pub fn remains(&self) -> String {
        let left: Vec<String> = self.left().iter().map(ToString::to_string).collect();
        if left.is_empty() {
            return "The job has no service on any NIC.".to_owned();
        }
        format!("Left behind:\n  {}", left.join("\n  "))
    }
}

impl NicFailure {
    pub(super) fn new(device: DeviceId, cause: Cause) -> Self {
        Self { device, cause, explanations: Vec::new() }
    }

    pub(super) fn explained(mut self, explanations: Vec<Explanation>) -> Self {
        self.explanations = explanations;
        self
    }

    /// Returns the failure without the NIC's name: several NICs often say the same.
    #[must_use]
    pub fn text(&self) -> String {
        if !self.explanations.is_empty() {
            let texts: Vec<String> = self.explanations.iter().map(Explanation::text).collect();
            return texts.join("\n");
        }
        match &self.cause {
            Cause::Plan(error) => {
                let texts: Vec<String> = error.short.iter().map(Cut::text).collect();
                texts.join("; ")
            }
            Cause::Service(error) => error.clone().without_device().to_string(),
            cause => cause.to_string(),
        }
    }
}

fn list<T: ToString>(items: &[T]) -> String {
    let items: Vec<String> = items.iter().map(T::to_string).collect();
    items.join("; ")
}

impl fmt::Display for AllocateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFew { usable, wanted, left_out } => {
                write!(f, "{wanted} usable NICs wanted, {usable} found")?;
                for nic in left_out {
                    write!(f, "\n  {}: {}", nic.device, list(&nic.problems))?;
                }
                Ok(())
            }
            Self::Locked(error) => error.fmt(f),
            Self::Nics { failures, .. } => {
                let failures: Vec<String> = failures.iter().map(ToString::to_string).collect();
                f.write_str(&failures.join("\n"))?;
                f.write_str("\n")?;
                f.write_str(&self.remains())
            }
        }
    }
}

impl std::error::Error for AllocateError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::TooFew { .. } => None,
            Self::Locked(error) => Some(error),
            Self::Nics { failures, .. } => Some(&failures.first()?.cause),
        }
    }
}
