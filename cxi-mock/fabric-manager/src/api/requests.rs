//! The effect of each request.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Answer, Api, Caller, Endpoint, Request, link};
use crate::model::{Refusal, TreeRequest};

/// A request for a reservation.
#[derive(Deserialize)]
struct JobRequest {
    #[serde(rename = "jobID")]
    job: String,
    #[serde(rename = "mcastLimit")]
    limit: i64,
}

/// The only possible patch sets steps to null, which ends them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Patch {
    #[serde(rename = "jobSteps")]
    steps: BTreeMap<String, Value>,
}

impl Api {
    pub(super) fn jobs(
        &mut self,
        endpoint: Endpoint,
        caller: &Caller,
        job: &str,
        request: &Request,
        now: Duration,
    ) -> Result<Answer, Refusal> {
        if let Caller::Session(own) = caller {
            let own = own == job && matches!(endpoint, Endpoint::GetJob | Endpoint::PatchJob);
            if !own || !self.model.settings().session_may_end_steps {
                return Err(Refusal::Forbidden(
                    "this request requires a token of the workload manager",
                ));
            }
        }
        let ok = |document: &Value| Ok(Answer::json(200, document));
        match endpoint {
            Endpoint::ListJobs => {
                let links: Vec<String> = self.model.jobs().map(link).collect();
                ok(&json!({ "documentLinks": links, "documentCount": links.len() }))
            }
            Endpoint::CreateJob => self.create_job(&parse(request)?),
            Endpoint::PatchJob => {
                let Patch { steps } = parse(request)?;
                if steps.values().any(|step| !step.is_null()) {
                    let message = "expected only steps that are null";
                    return Err(Refusal::Malformed(message.to_owned()));
                }
                let steps: Vec<_> = steps.into_keys().collect();
                self.model.end_steps(job, &steps, now)?;
                ok(&self.document(job)?)
            }
            Endpoint::DeleteJob => {
                let document = self.document(job)?;
                self.model.release(job, now)?;
                if self.model.settings().released_is_204 {
                    Ok(Answer::empty(204))
                } else {
                    ok(&document)
                }
            }
            _ => ok(&self.document(job)?),
        }
    }

    fn create_job(&mut self, wanted: &JobRequest) -> Result<Answer, Refusal> {
        self.model.reserve(&wanted.job, wanted.limit)?;
        let created = self.model.settings().reserved_is_201;
        let status = if created { 201 } else { 200 };
        Ok(Answer::json(status, &self.document(&wanted.job)?))
    }

    /// Checks the form before the token, as the real fabric manager presumably does.
    pub(super) fn create_tree(
        &mut self,
        caller: &Caller,
        request: &Request,
        now: Duration,
    ) -> Result<Answer, Refusal> {
        let tree: TreeRequest = parse(request)?;
        tree.check(&self.model)?;
        match caller {
            Caller::Manager => {}
            Caller::Session(job) if *job == tree.job => {}
            Caller::Session(_) | Caller::Unknown => return Err(Refusal::Unauthorized),
        }
        let id = self.model.create_tree(tree, now)?;
        let root = self.model.tree(id).map(|tree| tree.root.six_octets());
        let document = json!({ "mcastID": id, "hwRoot": root });
        Ok(Answer::json(200, &document))
    }

    pub(super) fn delete_tree(
        &mut self,
        caller: &Caller,
        id: &str,
        now: Duration,
    ) -> Result<Answer, Refusal> {
        let id: u16 = id.parse().map_err(|_| {
            Refusal::Malformed(format!("invalid multicast id {id:?}: expected a number"))
        })?;
        let of = match caller {
            Caller::Session(job) => Some(job.as_str()),
            Caller::Manager | Caller::Unknown => None,
        };
        self.model.delete_tree(id, of, now)?;
        Ok(Answer::json(200, &json!({ "mcastID": id })))
    }
}

/// Parses a body. Unknown members are ignored.
fn parse<T: DeserializeOwned>(request: &Request) -> Result<T, Refusal> {
    // serde would also accept a list of the members' values.
    if request.body.trim_ascii_start().starts_with(b"[") {
        let message = "the body is not a JSON object";
        return Err(Refusal::Malformed(message.to_owned()));
    }
    let parsed = serde_json::from_slice(&request.body);
    parsed.map_err(|error| Refusal::Malformed(format!("the body: {error}")))
}
