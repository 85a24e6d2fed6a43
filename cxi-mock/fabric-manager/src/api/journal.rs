//! The journal of requests, without secrets.

use std::time::Duration;

use serde::Serialize;

use super::{Endpoint, Request};

/// The maximum length of a recorded body.
const LONGEST_BODY: usize = 4096;
/// Number of requests that are kept; older ones are dropped.
pub(super) const MOST: usize = 100_000;

/// A request that was received.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct JournalEntry {
    /// The time of arrival, in milliseconds since the start.
    pub at_ms: u64,
    /// The method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Its kind, if the path and method are known.
    pub endpoint: Option<Endpoint>,
    /// The headers; for `Authorization`, only the scheme.
    pub headers: Vec<(String, String)>,
    /// The body, except that of a token request.
    pub body: String,
    /// The status of the response.
    pub status: u16,
    /// `true` if a fault applied.
    pub fault: bool,
}

impl JournalEntry {
    pub(super) fn new(
        request: &Request,
        endpoint: Option<Endpoint>,
        now: Duration,
        status: u16,
        fault: bool,
    ) -> Self {
        let headers = request.headers.iter().map(|(name, value)| {
            let value = if name.eq_ignore_ascii_case("authorization") {
                let scheme = value.split(' ').next().unwrap_or_default();
                format!("{scheme} ***")
            } else {
                value.clone()
            };
            (name.clone(), value)
        });
        let body = if endpoint == Some(Endpoint::Token) {
            "***".to_owned()
        } else {
            let kept = request.body.len().min(LONGEST_BODY);
            String::from_utf8_lossy(&request.body[..kept]).into_owned()
        };
        Self {
            at_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
            method: request.method.clone(),
            path: request.path.clone(),
            endpoint,
            headers: headers.collect(),
            body,
            status,
            fault,
        }
    }
}
