//! The part of etcd's JSON gateway that a log needs. Keys and values are base64, numbers are
//! strings.

use std::io;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;
use ureq::Agent;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long it may be: far more than a page of the longest records that etcd takes.
const LONGEST: u64 = 256 << 20;

/// Bytes as the gateway represents them.
#[derive(Debug, Clone, PartialEq, Eq)]
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
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "target", rename_all = "UPPERCASE")]
pub(crate) enum Compare {
    /// Whether the key exists: a creation revision of 0 means that it does not.
    Create {
        key: Bytes,
        result: &'static str,
        create_revision: String,
    },
    /// Whether its value comes before another one; false if the key does not exist.
    Value {
        key: Bytes,
        result: &'static str,
        value: Bytes,
    },
}

impl Compare {
    pub(crate) fn is_there(key: Bytes) -> Self {
        Self::created("GREATER", key)
    }

    pub(crate) fn is_absent(key: Bytes) -> Self {
        Self::created("EQUAL", key)
    }

    fn created(result: &'static str, key: Bytes) -> Self {
        Self::Create {
            key,
            result,
            create_revision: "0".to_owned(),
        }
    }

    pub(crate) fn is_less(key: Bytes, value: Bytes) -> Self {
        let result = "LESS";
        Self::Value { key, result, value }
    }
}

/// A key and its value.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct KeyValue {
    #[serde(default = "empty")]
    pub(crate) value: Bytes,
}

fn empty() -> Bytes {
    Bytes(Vec::new())
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
    /// The request has certainly not been executed.
    #[error("etcd at {url} refused: {source}")]
    Refused { url: String, source: ureq::Error },
    /// A URL of another kind.
    #[error("etcd at {url} cannot be reached: expected a URL that begins with http://")]
    Url { url: String },
    /// The request may have been executed.
    #[error("etcd at {url} did not answer: {source}")]
    Lost { url: String, source: ureq::Error },
}

/// An etcd server.
#[derive(Debug)]
pub(crate) struct Gateway {
    agent: Agent,
    url: String,
}

impl Gateway {
    pub(crate) fn new(url: &str) -> Self {
        let config = Agent::config_builder().timeout_global(Some(PATIENCE));
        Self {
            agent: config.build().into(),
            url: url.trim_end_matches('/').to_owned(),
        }
    }

    /// Values of the keys from `from` up to but not including `to`, in order: one page of them.
    pub(crate) fn range(
        &self,
        from: &Bytes,
        to: &Bytes,
        limit: u32,
    ) -> Result<Range, GatewayError> {
        let limit = limit.to_string();
        self.post(
            "range",
            &json!({"key": from, "range_end": to, "limit": limit}),
        )
    }

    /// Puts all keys if all conditions hold; returns whether they did.
    pub(crate) fn put_if(
        &self,
        compare: &[Compare],
        puts: &[(Bytes, Bytes)],
    ) -> Result<bool, GatewayError> {
        let puts: Vec<_> = puts
            .iter()
            .map(|(key, value)| json!({"requestPut": {"key": key, "value": value}}))
            .collect();
        let outcome: Outcome = self.post("txn", &json!({"compare": compare, "success": puts}))?;
        Ok(outcome.succeeded)
    }

    fn post<T: DeserializeOwned>(
        &self,
        what: &str,
        body: &serde_json::Value,
    ) -> Result<T, GatewayError> {
        let url = || self.url.clone();
        if !self.url.starts_with("http://") {
            return Err(GatewayError::Url { url: url() });
        }
        let sent = self.agent.post(format!("{}/v3/kv/{what}", self.url));
        let answer = sent
            .send(&body.to_string())
            .map_err(|source| match source {
                ureq::Error::Io(ref error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    GatewayError::Refused { url: url(), source }
                }
                ureq::Error::StatusCode(400..500) | ureq::Error::BadUri(_) => {
                    GatewayError::Refused { url: url(), source }
                }
                source => GatewayError::Lost { url: url(), source },
            })?;
        let lost = |source| GatewayError::Lost { url: url(), source };
        let body = answer.into_body().into_with_config().limit(LONGEST);
        let text = body.read_to_string().map_err(lost)?;
        serde_json::from_str(&text).map_err(|error| lost(io::Error::from(error).into()))
    }
}
