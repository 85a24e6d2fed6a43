//! Errors of a fabric manager.

use std::time::Duration;

use super::HttpError;
use crate::ErrorCode;
use crate::collectives::CollectivesError;

/// A request to the fabric manager that failed: what it was for, and why it failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot {action}: {problem}")]
pub struct FabricError {
    action: String,
    problem: Problem,
}

/// Reason for which a request failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// No answer was received.
    #[error(transparent)]
    Transport(#[from] HttpError),
    /// The fabric manager refuses.
    #[error("the answer is {status}{}", said(.message.as_deref()))]
    Refused {
        /// The HTTP status.
        status: u16,
        /// Its message.
        message: Option<String>,
    },
    /// The answer is not the expected one.
    #[error("the answer {0}")]
    Answer(String),
    /// It failed until the deadline.
    #[error("gave up after {after:?}: {last}")]
    Deadline {
        /// For how long.
        after: Duration,
        /// The failure of the last attempt.
        last: Box<Problem>,
    },
    /// No token was issued.
    #[error("no token of {endpoint}: {problem}")]
    Token {
        /// The token endpoint.
        endpoint: String,
        /// The reason.
        problem: Box<Problem>,
    },
    /// A file with credentials is missing or invalid.
    #[error("{0}")]
    Credentials(String),
    /// The password or the token would go over the network in clear.
    #[error(
        "the password or token would be sent in clear to {url}: expected https://, or the setting \
         fabric-manager.allow-clear-secrets"
    )]
    Clear {
        /// The address.
        url: String,
    },
    /// A name or address cannot be used.
    #[error("{0}")]
    Name(String),
    /// libfabric cannot use the reservation.
    #[error(transparent)]
    Reservation(#[from] CollectivesError),
}

impl Problem {
    /// Returns whether the same request may succeed a moment later.
    pub(super) fn is_temporary(&self) -> bool {
        match self {
            Self::Transport(error) => !matches!(error, HttpError::Untrusted(_)),
            Self::Refused { status, .. } => {
                matches!(status, 408 | 409 | 425 | 429 | 500 | 502..=504)
            }
            Self::Token { problem, .. } => problem.is_temporary(),
            _ => false,
        }
    }
}

fn said(message: Option<&str>) -> String {
    message.map_or_else(String::new, |message| format!(": {message}"))
}

impl FabricError {
    /// An attempt, as in "release a reservation", and its problem.
    pub fn new(action: &str, problem: impl Into<Problem>) -> Self {
        Self { action: action.to_owned(), problem: problem.into() }
    }

    /// Returns the reason for which it failed.
    #[must_use]
    pub const fn problem(&self) -> &Problem {
        &self.problem
    }

    /// Returns the kind of failure.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match &self.problem {
            Problem::Deadline { .. } => ErrorCode::Busy,
            Problem::Refused { status: 401 | 403, .. } => ErrorCode::NotPermitted,
            Problem::Refused { status: 507, .. } => ErrorCode::NotEnough,
            Problem::Credentials(_) | Problem::Name(_) => ErrorCode::BadInput,
            Problem::Token { problem, .. } if matches!(**problem, Problem::Refused { .. }) => {
                ErrorCode::NotPermitted
            }
            _ => ErrorCode::Failed,
        }
    }
}
