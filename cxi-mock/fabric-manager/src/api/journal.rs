//! The journal of requests, without secrets.

use std::time::Duration;

use serde::Serialize;

use super::{Endpoint, Request};

/// Longest body that is kept.
const LONGEST_BODY: usize = 4096;
/// Most requests that are kept: the last ones.
const MOST: usize = 100_000;

/// A request that was received.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct JournalEntry {
    /// When, in milliseconds since the start.
    pub at_ms: u64,
    /// The method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Its kind, if that is known.
    pub endpoint: Option<Endpoint>,
    /// Headers; of `Authorization` the scheme only.
    pub headers: Vec<(String, String)>,
    /// The body; of a token request nothing.
    pub body: String,
    /// The status of the answer.
    pub status: u16,
    /// Whether a fault applied.
    pub fault: bool,
}

/// The requests so far.
#[derive(Debug, Default)]
pub(super) struct Journal {
    entries: std::collections::VecDeque<JournalEntry>,
}

impl Journal {
    pub(super) fn entries(&self) -> Vec<JournalEntry> {
        self.entries.iter().cloned().collect()
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }

    pub(super) fn note(
        &mut self,
        request: &Request,
        endpoint: Option<Endpoint>,
        now: Duration,
        status: u16,
        fault: bool,
    ) {
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
        if self.entries.len() == MOST {
            self.entries.pop_front();
        }
        self.entries.push_back(JournalEntry {
            at_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
            method: request.method.clone(),
            path: request.path.clone(),
            endpoint,
            headers: headers.collect(),
            body,
            status,
            fault,
        });
    }
}
