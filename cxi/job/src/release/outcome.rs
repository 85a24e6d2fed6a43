//! Results of a release, for each service.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

use cxi::{DeviceId, Errno, Members, Service, ServiceId, VniAccess};
use cxi_site::ErrorCode;
use cxi_site::proc::Users;

/// Results of a release.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReleaseReport {
    /// Every service that was selected, by NIC and id.
    pub services: Vec<Released>,
    /// NICs that could not be queried for services.
    pub nics: Vec<FailedNic>,
    /// `true` if another job has one of the VNIs, which is not free then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
}

/// A NIC that could not be queried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FailedNic {
    /// The NIC.
    pub device: DeviceId,
    /// The reason.
    pub reason: String,
}

/// Result of the release of one service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Released {
    /// The NIC.
    pub device: DeviceId,
    /// The service. Once it is destroyed, another one may get its id.
    pub service: ServiceId,
    /// Its members; `None` for everyone.
    pub members: Option<Members>,
    /// Its VNIs.
    pub vnis: VniAccess,
    /// Result for the service.
    pub outcome: Outcome,
}

/// Result for a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Outcome {
    /// It is destroyed: its VNIs are free on this NIC.
    Destroyed,
    /// Another process destroyed it first: its VNIs are free on this NIC.
    AlreadyGone,
    /// It was kept: a live job has had one of its VNIs since.
    Kept,
    /// It has one of the job's VNIs, and the job did not make it, as far as records say. It is left, and
    /// this VNI must not be given to another job.
    Foreign {
        /// The maker, if a record names it, in words.
        reason: String,
    },
    /// It is still in use. Its VNIs must not be given to another job.
    StillBusy {
        /// Time for which the release tried.
        waited: Duration,
        /// Number of attempts that it made.
        attempts: u32,
        /// The processes that have the NIC open; only those of members, if there are any.
        users: Users,
    },
    /// It could not be destroyed. Its VNIs must not be given to another job.
    Failed {
        /// The reason.
        reason: String,
        /// The driver's error number.
        errno: i32,
    },
}

impl Outcome {
    pub(super) fn failed(reason: &dyn fmt::Display, errno: Errno) -> Self {
        Self::Failed { reason: reason.to_string(), errno: errno.raw() }
    }
}

/// The overall result of a release, for the exit code of an epilog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ReleaseStatus {
    /// No service was selected, and every NIC was queried.
    NothingToDo,
    /// Every selected service is gone: the job's VNIs are free on this node.
    Done,
    /// At least one is still in use: try again later.
    StillBusy,
    /// At least one could not be destroyed, or a NIC could not be queried.
    Failed,
}

impl ReleaseReport {
    /// The overall result: the worst outcome of any service.
    #[must_use]
    pub fn status(&self) -> ReleaseStatus {
        let services = self.services.iter().map(|released| match released.outcome {
            Outcome::Destroyed | Outcome::AlreadyGone | Outcome::Kept => ReleaseStatus::Done,
            Outcome::Foreign { .. } => ReleaseStatus::NothingToDo,
            Outcome::StillBusy { .. } => ReleaseStatus::StillBusy,
            Outcome::Failed { .. } => ReleaseStatus::Failed,
        });
        let nics = self.nics.iter().map(|_| ReleaseStatus::Failed);
        services.chain(nics).max().unwrap_or(ReleaseStatus::NothingToDo)
    }

    /// Returns the kind of failure; `None` if nothing is left.
    #[must_use]
    pub fn code(&self) -> Option<ErrorCode> {
        match self.status() {
            ReleaseStatus::NothingToDo | ReleaseStatus::Done => None,
            ReleaseStatus::StillBusy => Some(ErrorCode::Busy),
            ReleaseStatus::Failed => Some(ErrorCode::Failed),
        }
    }

    /// The services that should be gone but still exist.
    pub fn left(&self) -> impl Iterator<Item = &Released> {
        self.services.iter().filter(|released| {
            matches!(released.outcome, Outcome::StillBusy { .. } | Outcome::Failed { .. })
        })
    }

    /// The services with VNIs of the job that are not the job's: these VNIs are not free.
    pub fn foreign(&self) -> impl Iterator<Item = &Released> {
        self.services.iter().filter(|released| matches!(released.outcome, Outcome::Foreign { .. }))
    }
}

impl Released {
    pub(crate) fn new(device: DeviceId, service: &Service, outcome: Outcome) -> Self {
        Self {
            device,
            service: service.id(),
            members: service.members(),
            vnis: service.vnis(),
            outcome,
        }
    }

    /// That a job which starts shares VNIs with a service of others.
    pub(crate) fn shares(&self) -> String {
        let name = super::name(self.members.as_ref(), self.vnis);
        let reason = match &self.outcome {
            Outcome::Foreign { reason } => reason.clone(),
            outcome => outcome.to_string(),
        };
        format!(
            "{}: service {} ({name}) has a VNI of the job: its processes can communicate with the \
             job's; {reason}",
            self.device, self.service
        )
    }

    /// Returns whether it no longer exists.
    #[must_use]
    pub const fn is_gone(&self) -> bool {
        matches!(self.outcome, Outcome::Destroyed | Outcome::AlreadyGone)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Destroyed => f.write_str("destroyed"),
            Self::AlreadyGone => f.write_str("already gone"),
            Self::Kept => f.write_str("kept: it belongs to a live job"),
            Self::Foreign { reason } => write!(f, "left: {reason}"),
            Self::StillBusy { waited, attempts, users } => {
                f.write_str("still in use")?;
                if *attempts > 1 {
                    let waited = waited.as_secs_f64();
                    write!(f, " after {waited:.1} s and {attempts} attempts")?;
                }
                write!(f, "; {users}")
            }
            Self::Failed { reason, .. } => write!(f, "not destroyed: {reason}"),
        }
    }
}

impl fmt::Display for Released {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: service {} ({}): {}",
            self.device,
            self.service,
            super::name(self.members.as_ref(), self.vnis),
            self.outcome
        )
    }
}

impl fmt::Display for ReleaseReport {
    /// One line for each service and each NIC that failed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let services = self.services.iter().map(Released::to_string);
        let nics = self.nics.iter().map(|nic| nic.reason.clone());
        let lines: Vec<String> = services.chain(nics).collect();
        f.write_str(&lines.join("\n"))
    }
}
