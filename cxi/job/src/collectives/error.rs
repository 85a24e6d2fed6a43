//! What is of no use to libfabric.

use crate::{JobId, NameError};

/// Why libfabric could not use a reservation or variables.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CollectivesError {
    /// The reservation's id would change the path of a request to the fabric manager.
    #[error(
        "{id} cannot name a reservation: '/' and '#' would change the path of requests to the fabric manager"
    )]
    Id {
        /// The id.
        id: JobId,
    },
    /// The token contains a character that no HTTP header may have. The token itself is not shown.
    #[error(
        "the session token is {0}: expected printable ASCII without blanks, quotes and backslashes"
    )]
    Token(&'static str),
    /// The address is not an HTTP URL.
    #[error(
        "fabric manager address {url:?}: expected http:// or https:// and a host, without blanks, quotes and backslashes"
    )]
    Url {
        /// The address.
        url: String,
    },
    /// The certificate path is not absolute.
    #[error("certificate path {path:?}: expected an absolute path")]
    CertificatePath {
        /// The path.
        path: String,
    },
    /// A variable is not set, but others are.
    #[error("{name} is not set, but {present} is")]
    Missing {
        /// What is not set.
        name: &'static str,
        /// What is set.
        present: &'static str,
    },
    /// A variable is not UTF-8 text.
    #[error("{name} is not UTF-8 text")]
    NotText {
        /// The variable.
        name: &'static str,
    },
    /// A variable is not a number.
    #[error("{name} is {value:?}: expected a number")]
    Number {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
    },
    /// A variable is not a valid id.
    #[error("{name}: {reason}")]
    Name {
        /// The variable.
        name: &'static str,
        /// What is wrong.
        reason: NameError,
    },
}
