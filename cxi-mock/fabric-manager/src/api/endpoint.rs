//! The kinds of requests.

use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};

const JOBS: &str = "/fabric/collectives/jobs";
const MULTICASTS: &str = "/fabric/collectives/multicasts";

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
    /// Make a reservation.
    #[serde(rename = "jobs.create")]
    CreateJob,
    /// End steps of a job.
    #[serde(rename = "jobs.patch")]
    PatchJob,
    /// Release a reservation.
    #[serde(rename = "jobs.delete")]
    DeleteJob,
    /// Make a tree.
    #[serde(rename = "multicasts.create")]
    CreateTree,
    /// Delete a tree.
    #[serde(rename = "multicasts.delete")]
    DeleteTree,
    /// Get a token.
    #[serde(rename = "token")]
    Token,
}

/// The link by which a list and a document name a reservation, whatever prefix a gateway adds.
pub(super) fn link(job: &str) -> String {
    format!("{JOBS}/{job}")
}

/// A known request, and the job or tree that it names.
pub(super) struct Route {
    pub(super) endpoint: Endpoint,
    pub(super) name: String,
}

/// Finds the kind of a request.
pub(super) fn route(method: &str, path: &str, prefix: &str, token_path: &str) -> Option<Route> {
    let path = path.split('?').next().unwrap_or_default();
    let named = |endpoint, name: &str| {
        let name = percent_decode_str(name).decode_utf8().ok()?;
        (!name.is_empty() && !name.contains('/')).then(|| Route {
            endpoint,
            name: name.into_owned(),
        })
    };
    let unnamed = |endpoint| {
        let name = String::new();
        Some(Route { endpoint, name })
    };
    if path == token_path {
        return (method == "POST")
            .then_some(Endpoint::Token)
            .and_then(unnamed);
    }
    let path = path.strip_prefix(prefix)?;
    let below = |root: &str| {
        let rest = path.strip_prefix(root)?;
        rest.strip_prefix('/').or(rest.is_empty().then_some(""))
    };
    if let Some(job) = below(JOBS) {
        return match (method, job) {
            ("GET", "") => unnamed(Endpoint::ListJobs),
            ("POST", "") => unnamed(Endpoint::CreateJob),
            ("GET", job) => named(Endpoint::GetJob, job),
            ("PATCH", job) => named(Endpoint::PatchJob, job),
            ("DELETE", job) => named(Endpoint::DeleteJob, job),
            _ => None,
        };
    }
    match (method, below(MULTICASTS)?) {
        ("POST", "") => unnamed(Endpoint::CreateTree),
        ("DELETE", tree) => named(Endpoint::DeleteTree, tree),
        _ => None,
    }
}
