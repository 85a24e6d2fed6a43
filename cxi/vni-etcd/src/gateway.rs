//! The part of etcd's JSON gateway that a log needs. Keys and values are base64, numbers are
//! strings.

use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cxi_job::fabric::{HttpAnswer, HttpError, HttpRequest, HttpTransport, Patience};
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

/// Whether the value comes before another one; false if the key does not exist.
pub(crate) fn is_less(key: &Bytes, value: &Bytes) -> Compare {
    json!({"target": "VALUE", "key": key, "result": "LESS", "value": value})
}

/// A key and its value.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct KeyValue {
    #[serde(default)]
    pub(crate) value: Bytes,
}

/// Keys and values of a range.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Range {
    #[serde(default)]
    pub(crate) kvs: Vec<KeyValue>,
    #[serde(default)]
    pub(crate) more: bool,
}

/// What became of a transaction.
#[derive(Debug, Deserialize)]
struct Outcome {
    #[serde(default)]
    succeeded: bool,
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GatewayError {
    /// The request was certainly not carried out.
    #[error("etcd at {url} refused: {reason}")]
    Refused { url: String, reason: String },
    /// The URL is of another kind than `http` and `https`.
    #[error("etcd at {url} cannot be reached: expected a URL that begins with http:// or https://")]
    Url { url: String },
    /// It may have been carried out.
    #[error("etcd at {url} did not answer: {reason}")]
    Lost { url: String, reason: String },
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
    /// How often a member has not answered, which selects the one to ask.
    failed: usize,
    /// Name and password.
    user: Option<(String, String)>,
    token: Option<String>,
    pub(crate) patience: Patience,
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
            token: None,
            patience: Patience::default(),
        }
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
        let is_lost = |error: &GatewayError| matches!(error, GatewayError::Lost { .. });
        let patience = self.patience;
        patience.retry(is_lost, |timeout| {
            let body = json!({"key": from, "range_end": to, "limit": limit.to_string()});
            let page = self.ask("kv/range", &body, timeout);
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
        Ok(outcome.succeeded)
    }

    /// The member that is asked now.
    fn url(&self) -> String {
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
                let user = json!({"name": name, "password": password});
                let answer = self.post("auth/authenticate", &user, timeout)?;
                self.token = Some(self.read::<Token>("auth/authenticate", &answer)?.token);
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
            return serde_json::from_slice(&of.body).map_err(|error| {
                let reason = error.to_string();
                GatewayError::Lost { url, reason }
            });
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
}
