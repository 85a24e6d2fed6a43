//! A handle that its `close` gives back.

use super::Error;

/// A handle that could not be closed, or a [`ScopedService`](crate::ScopedService) that could not
/// be destroyed, and why. The handle is still valid; `?` keeps only the error.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct NotClosed<T> {
    /// The handle, for another attempt.
    pub handle: T,
    /// The driver's error.
    #[source]
    pub error: Error,
}

impl<T> From<NotClosed<T>> for Error {
    /// Drops the handle.
    fn from(refused: NotClosed<T>) -> Self {
        refused.error
    }
}
