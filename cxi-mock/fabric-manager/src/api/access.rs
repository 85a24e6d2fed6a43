//! Authentication and authorization: tokens and passwords.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Answer, Request};
use crate::model::Model;

/// The user name of a workload manager that uses basic authentication.
const USER: &str = "cxi";

/// Accounts and tokens with which callers authenticate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Access {
    /// The password of user `cxi`.
    pub password: String,
    /// The client ID for the token endpoint.
    pub client_id: String,
    /// The client's secret.
    pub client_secret: String,
    /// Path of the token endpoint.
    pub token_path: String,
    /// Seconds that a token is valid.
    pub token_seconds: u64,
    /// The number of requests that a token is valid for, if it is limited.
    pub token_requests: Option<u32>,
    /// There is a gateway in front, which responds with 403 and an HTML page if a token is invalid.
    pub gateway: bool,
}

impl Default for Access {
    fn default() -> Self {
        Self {
            password: "mock-password".to_owned(),
            client_id: "wlm".to_owned(),
            client_secret: "mock-secret".to_owned(),
            token_path: "/token".to_owned(),
            token_seconds: 300,
            token_requests: None,
            gateway: false,
        }
    }
}

/// The caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Caller {
    /// The workload manager.
    Manager,
    /// A caller with this job's session token.
    Session(String),
    /// A caller without a valid token.
    Unknown,
}

#[derive(Clone, Debug)]
struct Bearer {
    until: Duration,
    requests: Option<u32>,
}

/// Tokens that were issued.
#[derive(Debug)]
pub(crate) struct Authenticator {
    pub(crate) access: Access,
    tokens: BTreeMap<String, Bearer>,
    issued: u64,
}

impl Authenticator {
    pub(super) const fn new(access: Access) -> Self {
        Self { access, tokens: BTreeMap::new(), issued: 0 }
    }

    /// Makes all tokens invalid.
    pub(crate) fn forget(&mut self) {
        self.tokens.clear();
    }

    /// The caller of a request. Counts the request if the number of requests of its token is limited.
    pub(super) fn caller(&mut self, request: &Request, model: &Model, now: Duration) -> Caller {
        let caller = self.identify(request, model, now);
        let used = bearer_token(request).and_then(|token| self.tokens.get_mut(token));
        if let Some(left) = used.and_then(|bearer| bearer.requests.as_mut()) {
            *left = left.saturating_sub(1);
        }
        caller
    }

    /// The caller of a request.
    pub(super) fn identify(&self, request: &Request, model: &Model, now: Duration) -> Caller {
        if let Some(token) = bearer_token(request) {
            if let Some(job) = model.session(token) {
                return Caller::Session(job.to_owned());
            }
            let known = self.tokens.get(token);
            let valid = |bearer: &Bearer| now < bearer.until && bearer.requests != Some(0);
            return known
                .filter(|bearer| valid(bearer))
                .map_or(Caller::Unknown, |_| Caller::Manager);
        }
        let pair = STANDARD.encode(format!("{USER}:{}", self.access.password));
        let given =
            request.header("authorization").and_then(|header| header.strip_prefix("Basic "));
        if given == Some(&pair) { Caller::Manager } else { Caller::Unknown }
    }

    /// Issues a token to a client that knows the secret. Slurm sends the form without the escapes that
    /// forms require; both variants are accepted.
    pub(super) fn token(&mut self, request: &Request, now: Duration) -> Answer {
        let Access { client_id, client_secret, token_seconds, token_requests, .. } = &self.access;
        let body = String::from_utf8_lossy(&request.body);
        let plain = format!(
            "grant_type=client_credentials&client_id={client_id}&client_secret={client_secret}&scope=openid"
        );
        let field = |name: &str| {
            let mut fields = body.split('&').filter_map(|field| field.split_once('='));
            let (_, value) = fields.find(|(there, _)| *there == name)?;
            Some(percent_decode_str(value).decode_utf8_lossy().into_owned())
        };
        let has = |name, value: &str| field(name).as_deref() == Some(value);
        if body != plain {
            if !has("grant_type", "client_credentials") {
                return refused(
                    400,
                    "unsupported_grant_type",
                    "expected grant_type=client_credentials",
                );
            }
            if !has("client_id", client_id) || !has("client_secret", client_secret) {
                return refused(401, "invalid_client", "unknown client, or wrong secret");
            }
        }
        self.issued += 1;
        let token = format!("token-{:08}", self.issued);
        let bearer = Bearer {
            until: now.saturating_add(Duration::from_secs(*token_seconds)),
            requests: *token_requests,
        };
        self.tokens.retain(|_, bearer| now < bearer.until);
        let document =
            json!({ "access_token": token, "expires_in": token_seconds, "token_type": "Bearer" });
        self.tokens.insert(token, bearer);
        Answer::json(200, &document)
    }

    /// The response to a caller without a valid token.
    pub(super) fn refusal(&self) -> Answer {
        if self.access.gateway { Answer::html(403) } else { Answer::error(401, "no valid token") }
    }
}

fn bearer_token(request: &Request) -> Option<&str> {
    request.header("authorization")?.strip_prefix("Bearer ")
}

fn refused(status: u16, error: &str, message: &str) -> Answer {
    let document = json!({
        "error": error, "error_description": message,
        "message": message, "detail": message, "statusCode": status,
    });
    Answer::json(status, &document)
}
