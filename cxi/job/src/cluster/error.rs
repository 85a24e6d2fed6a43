//! Errors of a site.

use std::error::Error;
use std::time::Duration;

use cxi::DeviceId;
use cxi_ioctl::Errno;

use crate::environment::EnvironmentError;
use crate::release::ReleaseReport;
use crate::{AllocateError, InvalidJobRequest};
use cxi_site::durable::LockError;
use cxi_site::pool::{PoolError, ReserveError};
use cxi_site::settings::SettingsError;
use cxi_site::{ErrorCode, IdSet, JobId, NodeName};

use super::store::RecordError;
use cxi_site::collectives::CollectivesError;
use cxi_site::fabric::FabricError;

/// Reason for which a job cannot go on. [`code`](Self::code) says what kind of failure it is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SiteError {
    /// A setting is invalid.
    #[error(transparent)]
    Setting(#[from] SettingsError),
    /// The site has no controller: the setting `controller.records` is empty.
    #[error("no directory for the controller's decisions")]
    NoController,
    /// A lock could not be acquired.
    #[error(transparent)]
    Locked(#[from] LockError),
    /// A record cannot be used.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A job that the pool does not know has a record that cannot be read, so that its VNIs are not
    /// known: none is given to anybody.
    #[error("the VNIs of job {job} are not known: the pool does not have it, and {reason}")]
    UnknownVnis {
        /// The job.
        job: JobId,
        /// The fault of its record.
        reason: String,
    },
    /// The pool of VNIs cannot be read or written.
    #[error("{source}")]
    PoolStore {
        /// The kind of failure.
        code: ErrorCode,
        /// The failure as an errno.
        errno: Errno,
        /// The store's error.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The pool has no VNIs for the job.
    #[error(transparent)]
    Reserve(#[from] ReserveError),
    /// The pool refuses.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// The job belongs to another user, and has not ended: the scheduler may have lost its state, and
    /// use its numbers again. [`Controller::release`](super::Controller::release) ends it.
    #[error("job {job} belongs to uid {owner}, not {uid}, and has not ended here")]
    OtherUser {
        /// The job.
        job: JobId,
        /// Its user.
        owner: u32,
        /// The requested user.
        uid: u32,
    },
    /// An earlier run of the job has ended, and not all of its nodes have confirmed.
    #[error("job {0} has ended, and not all of its nodes have confirmed that yet")]
    Ending(JobId),
    /// The site's settings forbid an option.
    #[error("network option {0}: this site does not allow it")]
    NotAllowed(&'static str),
    /// The controller has not decided in time what the job gets. Its records can be read.
    #[error("job {job}: no decision of the controller within {}", humantime::format_duration(*waited))]
    Undecided {
        /// The job.
        job: JobId,
        /// Time that the node waited.
        waited: Duration,
    },
    /// No job waits for this node.
    #[error("there is no job {job} that waits for {node}")]
    NotWaiting {
        /// The job.
        job: JobId,
        /// The node.
        node: NodeName,
    },
    /// The job has no record on this node.
    #[error("job {job} has no record on this node: there is no {}", path.display())]
    NoRecord {
        /// The job.
        job: JobId,
        /// The file.
        path: std::path::PathBuf,
    },
    /// The job's prolog has not ended on this node.
    #[error("job {0} has no services on this node: its prolog has not ended")]
    Starting(JobId),
    /// An epilog ended the job while its prolog made services, which were destroyed again.
    #[error("job {0} was ended on this node while it started")]
    EndedMeanwhile(JobId),
    /// The job has services on this node for another request.
    #[error("job {job} runs on this node for another request ({has}); asked for: {asks}")]
    OtherRequest {
        /// The job.
        job: JobId,
        /// Its size, in words.
        has: String,
        /// The request, in words.
        asks: String,
    },
    /// A live job of other users has VNIs of this one on this node.
    #[error("job {job} of {members} runs on this node with VNI {vnis}")]
    SharedVnis {
        /// The VNIs.
        vnis: IdSet,
        /// The other job.
        job: JobId,
        /// Its members, in words.
        members: String,
    },
    /// A NIC did not list its services at first, so that some of them could be the job's. Nothing was
    /// made; trying again may help.
    #[error("{device}: its services could not be listed: {reason}")]
    Unanswered {
        /// The NIC.
        device: DeviceId,
        /// Its answer.
        reason: String,
    },
    /// The request is invalid.
    #[error(transparent)]
    Request(#[from] InvalidJobRequest),
    /// The NICs of the node cannot be opened.
    #[error(transparent)]
    Nics(NicsUnavailable),
    /// The node has fewer usable NICs than the setting `node.nics` says.
    #[error(
        "this node has {usable} of {expected} usable NICs{}",
        why.first().map_or_else(String::new, |why| format!(": {why}"))
    )]
    MissingNics {
        /// Number of NICs that jobs can use.
        usable: u32,
        /// Number of NICs that there should be.
        expected: u32,
        /// The faults of the others, as far as they are known.
        why: Vec<String>,
    },
    /// A NIC refuses.
    #[error(transparent)]
    Nic(#[from] cxi::Error),
    /// The job got nothing.
    #[error(transparent)]
    Allocate(#[from] AllocateError),
    /// Services of an earlier run of the job could not be destroyed.
    #[error("services of an earlier run are left:\n{0}")]
    Left(ReleaseReport),
    /// The cleanup could not find out which jobs are live; nothing was destroyed.
    #[error("{0}")]
    Live(std::io::Error),
    /// A job's environment cannot be determined.
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    /// A record contains an invalid reservation for hardware collectives.
    #[error(transparent)]
    Collectives(#[from] CollectivesError),
    /// The fabric manager could not be asked.
    #[error(transparent)]
    Fabric(#[from] FabricError),
    /// An operation failed, and could not be undone completely.
    #[error("{error}\n{left}")]
    Unfinished {
        /// The failure.
        error: Box<SiteError>,
        /// The reason for which something is left.
        left: Box<SiteError>,
    },
}

/// Reason for which the program that opens a node's NICs, or simulates them, has none, in its own
/// words.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct NicsUnavailable {
    /// Kind of failure.
    pub code: ErrorCode,
    /// The failure.
    pub message: String,
    /// Remedies, one sentence in each entry.
    pub hints: Vec<String>,
    /// The errno of a NIC or a file.
    pub errno: Option<Errno>,
}

impl SiteError {
    /// Returns the kind of failure.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Setting(_)
            | Self::NoController
            | Self::OtherRequest { .. }
            | Self::NotAllowed(_)
            | Self::Request(_)
            | Self::Collectives(_)
            | Self::Environment(EnvironmentError::RepeatedDevice { .. }) => ErrorCode::BadInput,
            Self::Locked(error) if error.is_busy() => ErrorCode::Busy,
            Self::OtherUser { .. } | Self::SharedVnis { .. } => ErrorCode::OtherUser,
            Self::Ending(_) => ErrorCode::Busy,
            Self::Record(error) => error.code(),
            Self::Reserve(error) => error.code(),
            Self::Pool(error) => error.code(),
            Self::Undecided { .. }
            | Self::NotWaiting { .. }
            | Self::NoRecord { .. }
            | Self::Starting(_)
            | Self::EndedMeanwhile(_)
            | Self::Environment(EnvironmentError::NoService) => ErrorCode::NotFound,
            Self::Nics(error) => error.code,
            Self::MissingNics { .. } => ErrorCode::NoDevice,
            Self::Nic(error) => ErrorCode::of(error),
            Self::Allocate(error) => error.code(),
            Self::Left(report) => report.code().unwrap_or(ErrorCode::Failed),
            Self::Fabric(error) => error.code(),
            Self::Unfinished { error, .. } => error.code(),
            Self::PoolStore { code, .. } => *code,
            Self::Unanswered { .. }
            | Self::Locked(_)
            | Self::UnknownVnis { .. }
            | Self::Environment(_)
            | Self::Live(_) => ErrorCode::Failed,
        }
    }

    /// The failure as an errno: that of the NIC, the lock or the store, or else the one that fits its kind.
    #[must_use]
    pub fn errno(&self) -> Errno {
        match self {
            Self::Locked(error) => error.errno(),
            Self::PoolStore { errno, .. }
            | Self::Nics(NicsUnavailable { errno: Some(errno), .. }) => *errno,
            Self::Nic(error) => error.errno(),
            Self::Allocate(error) => error.errno(),
            Self::Unfinished { error, .. } => error.errno(),
            error => error.code().errno(),
        }
    }

    /// Adds that something is left, if anything is.
    pub(super) fn and_left(self, left: Option<Self>) -> Self {
        match left {
            None => self,
            Some(left) => Self::Unfinished { error: Box::new(self), left: Box::new(left) },
        }
    }
}
