//! Kinds of failures, for programs.

use cxi::{Error, ErrorKind};
use cxi_ioctl::Errno;
use serde::{Deserialize, Serialize};

/// Kind of a failure: the reaction of a program depends on this, and not on the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorCode {
    /// A failure of another kind than those below.
    Failed,
    /// A request, a setting or a file is invalid.
    BadInput,
    /// There is no such NIC, or it cannot be used.
    NoDevice,
    /// In use; trying again may help.
    Busy,
    /// There is no such service or job.
    NotFound,
    /// The caller lacks a privilege.
    NotPermitted,
    /// There is not enough of a resource.
    NotEnough,
    /// It exists, for another user.
    OtherUser,
}

impl ErrorCode {
    /// The kind of an error of a NIC.
    #[must_use]
    pub fn of(error: &Error) -> Self {
        match error.kind() {
            ErrorKind::InvalidSpec(_) | ErrorKind::InvalidInput(_) => Self::BadInput,
            ErrorKind::NotEnough(_) => Self::NotEnough,
            ErrorKind::NotPermitted(_) => Self::NotPermitted,
            ErrorKind::NoSuchService { .. } => Self::NotFound,
            ErrorKind::Busy { .. } => Self::Busy,
            ErrorKind::Removed => Self::NoDevice,
            ErrorKind::Open { .. } => match error.errno() {
                Errno::EACCES | Errno::EPERM => Self::NotPermitted,
                _ => Self::NoDevice,
            },
            _ => Self::Failed,
        }
    }

    /// The errno of a failure that does not come with one.
    #[must_use]
    pub const fn errno(self) -> Errno {
        match self {
            Self::Failed => Errno::EIO,
            Self::BadInput => Errno::EINVAL,
            Self::NoDevice => Errno::ENODEV,
            Self::Busy => Errno::EBUSY,
            Self::NotFound => Errno::ENOENT,
            Self::NotPermitted => Errno::EPERM,
            Self::NotEnough => Errno::ENOSPC,
            Self::OtherUser => Errno::EEXIST,
        }
    }
}
