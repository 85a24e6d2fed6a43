//! The transport of requests, so that a scheduler can use its own HTTP client.

use std::fmt;
use std::time::Duration;

/// The longest answer that is read: far longer than a list of all reservations.
pub const LONGEST_ANSWER: u64 = 1 << 24;

/// Carries HTTP requests.
pub trait HttpTransport: Send + Sync + fmt::Debug {
    /// Sends a request and waits for the whole answer, whatever its status, for no longer than the
    /// timeout.
    ///
    /// Redirections are answers like others: a token must not be sent elsewhere. An answer of more
    /// than [`LONGEST_ANSWER`] bytes is [`HttpError::Broken`].
    ///
    /// # Errors
    /// [`HttpError`]: no answer was received.
    fn send(&self, request: &HttpRequest<'_>, timeout: Duration) -> Result<HttpAnswer, HttpError>;
}

/// The method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Method {
    /// GET.
    Get,
    /// POST.
    Post,
    /// PATCH.
    Patch,
    /// DELETE.
    Delete,
}

/// A request. Its `Debug` form does not show secrets.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct HttpRequest<'a> {
    /// The method.
    pub method: Method,
    /// The URL, with `http://` or `https://`.
    pub url: &'a str,
    /// The value of `Authorization`, if there is one.
    pub authorization: Option<&'a str>,
    /// The type of the body.
    pub content_type: &'a str,
    /// The body, if there is one.
    pub body: Option<&'a str>,
}

impl<'a> HttpRequest<'a> {
    /// A request that posts JSON with this authorization.
    #[must_use]
    pub const fn post(url: &'a str, authorization: Option<&'a str>, body: &'a str) -> Self {
        Self {
            method: Method::Post,
            url,
            authorization,
            content_type: "application/json",
            body: Some(body),
        }
    }
}

impl fmt::Debug for HttpRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.method, self.url)
    }
}

/// An answer. Its `Debug` form does not show the body, which may be a token.
#[derive(Clone, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "transports make it")]
pub struct HttpAnswer {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

impl fmt::Debug for HttpAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} bytes", self.status, self.body.len())
    }
}

/// Reason for which no answer was received.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// No server answers at the address.
    #[error("no connection: {0}")]
    Unreachable(String),
    /// The answer did not come in time.
    #[error("no answer in time")]
    Timeout,
    /// The answer is incomplete, or is not HTTP.
    #[error("the answer is broken: {0}")]
    Broken(String),
    /// The server's certificate cannot be verified, or a file of certificates cannot be read. Trying again does not help.
    #[error("{0}")]
    Untrusted(String),
}
