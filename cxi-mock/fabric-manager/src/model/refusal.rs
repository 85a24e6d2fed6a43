//! The reasons why the fabric manager refuses requests, and the status of each.

use super::Settings;

/// Reason for which a request is refused. With status 507, libfabric reads the two digits before
/// the first colon.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The request is malformed.
    #[error("{0}")]
    Malformed(String),
    /// The token or password is missing or invalid.
    #[error("no valid token")]
    Unauthorized,
    /// The caller may not do this.
    #[error("{0}")]
    Forbidden(&'static str),
    /// No such job has a reservation.
    #[error("job {0} has no reservation")]
    NoSuchJob(String),
    /// The tree does not exist.
    #[error("there is no multicast tree {0}")]
    NoSuchTree(u16),
    /// There is nothing at this path.
    #[error("there is nothing at {0}")]
    NoSuchPath(String),
    /// The job already has a reservation.
    #[error("job {0} already has a reservation")]
    Exists(String),
    /// The tree is being created or deleted; try again.
    #[error("the multicast tree is being {0}")]
    Busy(&'static str),
    /// The reservations together would have more trees than there are IDs.
    #[error("02: {0} multicast ids are left for reservations")]
    Overcommitted(u64),
    /// The job has as many trees as it reserved.
    #[error("01: the job has all {0} multicast trees that it reserved")]
    Quota(u32),
    /// No ID is free.
    #[error("02: no multicast id is free")]
    NoAddress,
    /// All NICs are roots.
    #[error("03: each of the NICs is the root of another multicast tree")]
    NoRoot,
}

impl Refusal {
    /// The HTTP status.
    #[must_use]
    pub const fn status(&self, settings: &Settings) -> u16 {
        match self {
            Self::Malformed(_) => 400,
            Self::Unauthorized => 401,
            Self::Forbidden(_) => 403,
            Self::NoSuchJob(_) | Self::NoSuchTree(_) | Self::NoSuchPath(_) => 404,
            Self::Exists(_) | Self::Busy(_) => 409,
            Self::NoRoot if settings.no_root_is_400 => 400,
            Self::Overcommitted(_) | Self::Quota(_) | Self::NoAddress | Self::NoRoot => 507,
        }
    }
}
