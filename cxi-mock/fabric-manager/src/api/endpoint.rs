//! The kinds of requests.

use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};

/// The prefix of the paths of reservations and trees.
const COLLECTIVES: &str = "/fabric/collectives/";

/// A kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Endpoint {
    /// List reservations.
    #[serde(rename = "jobs.list")]
    ListJobs,
    /// Read a reservation.
    #[serde(rename = "jobs.get")]
    GetJob,
    /// Create a reservation.
    #[serde(rename = "jobs.create")]
    CreateJob,
    /// End steps of a job.
    #[serde(rename = "jobs.patch")]
    PatchJob,
    /// Release a reservation.
    #[serde(rename = "jobs.delete")]
    DeleteJob,
    /// Create a tree.
    #[serde(rename = "multicasts.create")]
    CreateTree,
    /// Delete a tree.
    #[serde(rename = "multicasts.delete")]
    DeleteTree,
    /// Get a token.
    #[serde(rename = "token")]
    Token,
}

/// The link to a reservation in lists and documents, without the prefix that a gateway adds.
pub(super) fn link(job: &str) -> String {
    format!("{COLLECTIVES}jobs/{job}")
}

/// Finds the kind of a request, and the job or tree that it names.
pub(super) fn route(
    method: &str,
    path: &str,
    prefix: &str,
    token_path: &str,
) -> Option<(Endpoint, String)> {
    let path = path.split('?').next().unwrap_or_default();
    if path == token_path {
        return (method == "POST").then(|| (Endpoint::Token, String::new()));
    }
    let rest = path.strip_prefix(prefix)?.strip_prefix(COLLECTIVES)?;
    let (kind, name) = rest.split_once('/').unwrap_or((rest, ""));
    let endpoint = match (method, kind, name) {
        ("GET", "jobs", "") => Endpoint::ListJobs,
        ("POST", "jobs", "") => Endpoint::CreateJob,
        ("POST", "multicasts", "") => Endpoint::CreateTree,
        (_, _, "") | ("POST", ..) => return None,
        ("GET", "jobs", _) => Endpoint::GetJob,
        ("PATCH", "jobs", _) => Endpoint::PatchJob,
        ("DELETE", "jobs", _) => Endpoint::DeleteJob,
        ("DELETE", "multicasts", _) => Endpoint::DeleteTree,
        _ => return None,
    };
    let name = percent_decode_str(name).decode_utf8().ok()?.into_owned();
    (!name.contains('/')).then_some((endpoint, name))
}
