//! The part of etcd's JSON gateway that a log needs. Keys and values are base64, numbers are
//! strings, and a field with the value zero is left out.
//!
//! As an empty list looks like a list that was lost, every answer has to agree with itself: it has a
//! header, and the numbers in it fit.

use std::fmt;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cxi_site::fabric::{HttpAnswer, HttpError, HttpRequest, HttpTransport, Patience, is_clear};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Bytes as the gateway represents them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl Bytes {
    pub(crate) fn of(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl Serialize for Bytes {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let bytes = STANDARD.decode(text).map_err(serde::de::Error::custom)?;
        Ok(Self(bytes))
    }
}

/// A condition of a transaction.
pub(crate) type Compare = serde_json::Value;

pub(crate) fn is_there(key: &Bytes) -> Compare {
    created("GREATER", key)
}

pub(crate) fn is_absent(key: &Bytes) -> Compare {
    created("EQUAL", key)
}

/// A creation revision of 0 means that the key does not exist.
fn created(result: &str, key: &Bytes) -> Compare {
    json!({"target": "CREATE", "key": key, "result": result, "create_revision": "0"})
}

/// Returns whether the value comes before another one; false if the key does not exist.
pub(crate) fn is_less(key: &Bytes, value: &Bytes) -> Compare {
    json!({"target": "VALUE", "key": key, "result": "LESS", "value": value})
}

/// A number, which is a string of digits.
fn number<'de, D: serde::Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let text = String::deserialize(from)?;
    text.parse().map_err(|_| serde::de::Error::custom(format!("invalid number {text:?}")))
}

/// Head of every answer to a request for keys.
#[derive(Debug, Deserialize)]
struct Header {
    #[serde(deserialize_with = "number")]
    cluster_id: u64,
    #[serde(deserialize_with = "number")]
    revision: u64,
}

/// A key and its value. None of ours is empty, so that nothing is left out.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct KeyValue {
    pub(crate) key: Bytes,
    pub(crate) value: Bytes,
    #[serde(deserialize_with = "number")]
    create_revision: u64,
    #[serde(deserialize_with = "number")]
    mod_revision: u64,
}

/// Keys and values of a range.
#[derive(Debug, Deserialize)]
pub(crate) struct Range {
    header: Header,
    #[serde(default)]
    pub(crate) kvs: Vec<KeyValue>,
    #[serde(default)]
    pub(crate) more: bool,
    /// Number of keys, of which an answer may contain the first ones.
    #[serde(default, deserialize_with = "number")]
    count: u64,
}

impl Range {
    /// Returns whether this answers a request for the first `limit` keys from `from` up to `to`.
    fn check(&self, from: &Bytes, to: &Bytes, limit: u32) -> Result<(), String> {
        let found = self.kvs.len() as u64;
        if found > self.count || self.more != (self.count > found) || found > u64::from(limit) {
            let (count, more) = (self.count, self.more);
            return Err(format!("{found} of {count} keys, at most {limit}, with more: {more}"));
        }
        let mut after: Option<&[u8]> = None;
        for KeyValue { key, create_revision, mod_revision, .. } in &self.kvs {
            let name = String::from_utf8_lossy(&key.0);
            if key.0 < from.0
                || key.0 >= to.0
                || after.is_some_and(|after| key.0.as_slice() <= after)
            {
                return Err(format!(
                    "the key {name} is not one that was asked for, or not in order"
                ));
            }
            let revision = self.header.revision;
            if *create_revision == 0 || create_revision > mod_revision || *mod_revision > revision {
                return Err(format!(
                    "the key {name} is of revision {create_revision} to {mod_revision}, and the answer \
                     of {revision}"
                ));
            }
            after = Some(key.0.as_slice());
        }
        Ok(())
    }
}

/// Response to a transaction.
#[derive(Debug, Deserialize)]
struct Outcome {
    header: Header,
    #[serde(default)]
    succeeded: bool,
    #[serde(default)]
    responses: Vec<serde_json::Value>,
}

/// Reason for which a request failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GatewayError {
    /// The request was certainly not carried out.
    #[error("etcd at {url} refused: {reason}")]
    Refused { url: String, reason: String },
    /// The URL is of another kind than `http` and `https`.
    #[error("etcd at {url} cannot be reached: expected a URL that begins with http:// or https://")]
    Url { url: String },
    /// The password would go over the network in clear.
    #[error("etcd at {url}: the password would be sent in clear: expected https://")]
    Clear { url: String },
    /// There was no time left to send the request.
    #[error("etcd at {url} was not asked: no time was left")]
    Late { url: String },
    /// It may have been carried out.
    #[error("etcd at {url} did not answer: {reason}")]
    Lost { url: String, reason: String },
    /// It may have been carried out: the answer says nothing that can be relied on.
    #[error("etcd at {url} gave an invalid answer: {reason}")]
    Invalid { url: String, reason: String },
}

impl GatewayError {
    /// Returns whether the request may have been carried out, and another member may answer it.
    pub(crate) const fn is_open(&self) -> bool {
        matches!(self, Self::Lost { .. } | Self::Invalid { .. })
    }
}

/// The token that etcd returned for a password.
#[derive(Deserialize)]
struct Token {
    token: String,
}

/// The members of etcd. One of them is asked until it no longer answers.
pub(crate) struct Gateway {
    transport: Box<dyn HttpTransport>,
    urls: Vec<String>,
    /// Number of times that a member has not answered, which selects the one to ask.
    failed: usize,
    /// Name and password.
    user: Option<(String, String)>,
    /// `true` if the password may go over the network in clear.
    pub(crate) allow_clear: bool,
    token: Option<String>,
    pub(crate) patience: Patience,
    /// When all requests have to be over.
    deadline: Option<Instant>,
    /// The cluster that answered first, and the latest revision of its keys.
    cluster: Option<u64>,
    revision: u64,
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").field("urls", &self.urls).finish_non_exhaustive()
    }
}

impl Gateway {
    pub(crate) fn new(transport: impl HttpTransport + 'static, urls: &[impl AsRef<str>]) -> Self {
        let urls = urls.iter().map(|url| url.as_ref().trim_end_matches('/'));
        Self {
            transport: Box::new(transport),
            urls: urls.map(str::to_owned).collect(),
            failed: 0,
            user: None,
            allow_clear: false,
            token: None,
            patience: Patience::default(),
            deadline: None,
            cluster: None,
            revision: 0,
        }
    }

    /// Sets how long all requests from now on may take together.
    pub(crate) fn within(&mut self, time: Duration) {
        self.deadline = Instant::now().checked_add(time);
    }

    fn left(&self) -> Duration {
        let left = |deadline: Instant| deadline.saturating_duration_since(Instant::now());
        self.deadline.map_or(Duration::MAX, left)
    }

    pub(crate) fn log_in_as(&mut self, name: &str, password: &str) {
        self.user = Some((name.to_owned(), password.to_owned()));
    }

    /// The first values of the keys from `from` up to, but not including, `to`, in order. If the
    /// answer is lost, asks again for half as many, because a connection may break under a long
    /// answer.
    pub(crate) fn range(
        &mut self,
        from: &Bytes,
        to: &Bytes,
        limit: &mut u32,
    ) -> Result<Range, GatewayError> {
        let mut patience = self.patience;
        patience.deadline = patience.deadline.min(self.left());
        patience.retry(GatewayError::is_open, |timeout| {
            let body = json!({"key": from, "range_end": to, "limit": limit.to_string()});
            let page = self.ask("kv/range", &body, timeout).and_then(|page: Range| {
                let fits = page.check(from, to, *limit);
                self.verify(&page.header, fits)?;
                Ok(page)
            });
            if page.is_err() {
                *limit = (*limit / 2).max(1);
            }
            page
        })
    }

    /// Puts all keys, and removes those from one up to, but not including, another, if all
    /// conditions hold. Returns whether they did.
    pub(crate) fn write_if(
        &mut self,
        compare: &[Compare],
        puts: &[(Bytes, Bytes)],
        removed: Option<&(Bytes, Bytes)>,
    ) -> Result<bool, GatewayError> {
        let puts =
            puts.iter().map(|(key, value)| json!({"requestPut": {"key": key, "value": value}}));
        let removed =
            removed.map(|(from, to)| json!({"requestDeleteRange": {"key": from, "range_end": to}}));
        let all: Vec<_> = puts.chain(removed).collect();
        let body = json!({"compare": compare, "success": all});
        let outcome: Outcome = self.ask("kv/txn", &body, self.patience.attempt)?;
        let (wanted, done) = if outcome.succeeded { (all.len(), "done") } else { (0, "refused") };
        let found = outcome.responses.len();
        let fits = if found == wanted {
            Ok(())
        } else {
            Err(format!("a transaction that was {done} has {found} responses, expected {wanted}"))
        };
        self.verify(&outcome.header, fits)?;
        Ok(outcome.succeeded)
    }

    /// Checks that an answer fits itself, and that it is of the same cluster as the ones before, and no
    /// older. Otherwise the next member is asked.
    fn verify(&mut self, header: &Header, fits: Result<(), String>) -> Result<(), GatewayError> {
        let (id, revision, before) = (header.cluster_id, header.revision, self.revision);
        let cluster = *self.cluster.get_or_insert(id);
        let checked = match fits {
            Err(reason) => Err(reason),
            Ok(()) if id == 0 || revision == 0 => {
                Err(format!("cluster {id}, revision {revision}: expected 1 or more"))
            }
            Ok(()) if id != cluster => Err(format!(
                "it is of cluster {id:x}, and an earlier answer was of cluster {cluster:x}"
            )),
            Ok(()) if revision < before => {
                Err(format!("it is of revision {revision}, and an earlier answer was of {before}"))
            }
            Ok(()) => {
                self.revision = revision;
                return Ok(());
            }
        };
        if self.revision == 0 {
            // Nothing is known of a cluster that has not given a valid answer.
            self.cluster = None;
        }
        checked.map_err(|reason| self.invalid(reason))
    }

    /// The member that is asked now.
    pub(crate) fn url(&self) -> String {
        self.urls.get(self.failed % self.urls.len().max(1)).cloned().unwrap_or_default()
    }

    /// Sends a request as the user, with a new token if the current one has expired.
    fn ask<T: DeserializeOwned>(
        &mut self,
        what: &str,
        body: &serde_json::Value,
        timeout: Duration,
    ) -> Result<T, GatewayError> {
        let mut fresh = false;
        loop {
            if self.token.is_none()
                && let Some((name, password)) = &self.user
            {
                let url = self.url();
                if !self.allow_clear && is_clear(&url) {
                    return Err(GatewayError::Clear { url });
                }
                let user = json!({"name": name, "password": password});
                let answer = self.post("auth/authenticate", &user, timeout)?;
                let token = self.read::<Token>("auth/authenticate", &answer)?.token;
                if token.is_empty() {
                    return Err(self.invalid("the token is empty".to_owned()));
                }
                self.token = Some(token);
                fresh = true;
            }
            let answer = self.post(what, body, timeout)?;
            if answer.status == 401 && self.token.take().is_some() && !fresh {
                continue;
            }
            return self.read(what, &answer);
        }
    }

    fn post(
        &mut self,
        what: &str,
        body: &serde_json::Value,
        timeout: Duration,
    ) -> Result<HttpAnswer, GatewayError> {
        let url = self.url();
        if !["http://", "https://"].iter().any(|scheme| url.starts_with(scheme)) {
            return Err(GatewayError::Url { url });
        }
        let timeout = timeout.min(self.left());
        if timeout.is_zero() {
            return Err(GatewayError::Late { url });
        }
        let (place, body) = (format!("{url}/v3/{what}"), body.to_string());
        let request = HttpRequest::post(&place, self.token.as_deref(), &body);
        self.transport.send(&request, timeout).map_err(|error| {
            self.failed += 1;
            let reason = error.to_string();
            match error {
                HttpError::Untrusted(_) => GatewayError::Refused { url, reason },
                _ => GatewayError::Lost { url, reason },
            }
        })
    }

    fn read<T: DeserializeOwned>(
        &mut self,
        what: &str,
        of: &HttpAnswer,
    ) -> Result<T, GatewayError> {
        let url = self.url();
        if of.status == 200 {
            return serde_json::from_slice(&of.body)
                .map_err(|error| self.invalid(error.to_string()));
        }
        let said: Option<serde_json::Value> = serde_json::from_slice(&of.body).ok();
        let said = said.as_ref().and_then(|it| it.get("error")?.as_str());
        let status = of.status;
        let reason = format!("{what}: status {status}: {}", said.unwrap_or("no reason"));
        if (400..500).contains(&status) {
            return Err(GatewayError::Refused { url, reason });
        }
        // The member may have lost the others, for example.
        self.failed += 1;
        Err(GatewayError::Lost { url, reason })
    }

    /// An answer that says nothing. Another member may give a better one.
    fn invalid(&mut self, reason: String) -> GatewayError {
        let url = self.url();
        self.failed += 1;
        GatewayError::Invalid { url, reason }
    }
}
