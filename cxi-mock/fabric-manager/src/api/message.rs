//! HTTP requests and responses.

use serde_json::{Value, json};

/// A request.
#[derive(Clone, Debug, Default)]
#[allow(clippy::exhaustive_structs, reason = "what HTTP has")]
pub struct Request {
    /// The method, in upper case.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// The headers: names and values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Request {
    /// The value of a header, whatever the case of its name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers.find(|(there, _)| there.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The type of the body.
    pub content_type: &'static str,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    /// A JSON document. Its length is never a multiple of 4096, because libfabric would then read past its
    /// buffer.
    #[must_use]
    pub fn json(status: u16, document: &Value) -> Self {
        let mut body = document.to_string().into_bytes();
        if !body.is_empty() && body.len().is_multiple_of(4096) {
            body.push(b' ');
        }
        Self { status, content_type: "application/json", body }
    }

    /// An error for all clients: Slurm shows `detail`, libfabric `message`.
    #[must_use]
    pub fn error(status: u16, message: &str) -> Self {
        let document = json!({ "message": message, "detail": message, "statusCode": status });
        Self::json(status, &document)
    }

    /// An HTML page, as gateways send it.
    #[must_use]
    pub fn html(status: u16) -> Self {
        let body =
            format!("<html><head><title>{status}</title></head><body>{status}</body></html>");
        Self { status, content_type: "text/html", body: body.into_bytes() }
    }

    /// A status without a body.
    #[must_use]
    pub const fn empty(status: u16) -> Self {
        Self { status, content_type: "application/json", body: Vec::new() }
    }
}
