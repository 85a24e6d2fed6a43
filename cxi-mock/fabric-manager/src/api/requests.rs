//! The effect of each request.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{Answer, Api, Caller, Endpoint, Request, link};
use crate::model::{NicAddress, Refusal, TreeRequest};

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
                    "this request takes a token of the workload manager",
                ));
            }
        }
        let ok = |document: &Value| Ok(Answer::json(200, document));
        match endpoint {
            Endpoint::ListJobs => {
                let links: Vec<String> = self.model.jobs().map(link).collect();
                ok(&json!({ "documentLinks": links, "documentCount": links.len() }))
            }
            Endpoint::CreateJob => self.create_job(&object(request)?),
            Endpoint::PatchJob => {
                let steps = ended_steps(&object(request)?)?;
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

    fn create_job(&mut self, body: &Map<String, Value>) -> Result<Answer, Refusal> {
        let job = text(body, "jobID")?;
        let limit = body.get("mcastLimit").and_then(Value::as_i64);
        let limit = limit.ok_or_else(|| expected("mcastLimit", "an integer"))?;
        self.model.reserve(&job, limit)?;
        let created = self.model.settings().reserved_is_201;
        let status = if created { 201 } else { 200 };
        Ok(Answer::json(status, &self.document(&job)?))
    }

    /// Checks the form first, then the token, as the real one is thought to do.
    pub(super) fn create_tree(
        &mut self,
        caller: &Caller,
        request: &Request,
        now: Duration,
    ) -> Result<Answer, Refusal> {
        let tree = tree(&object(request)?)?;
        tree.check(&self.model)?;
        match caller {
            Caller::Manager => {}
            Caller::Session(job) if *job == tree.job => {}
            Caller::Session(_) | Caller::Unknown => return Err(Refusal::Unauthorized),
        }
        let id = self.model.create_tree(tree, now)?;
        let root = self.model.tree(id).map(|tree| tree.root().six_octets());
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

fn object(request: &Request) -> Result<Map<String, Value>, Refusal> {
    match serde_json::from_slice(&request.body) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err(Refusal::Malformed(
            "the body is not a JSON object".to_owned(),
        )),
        Err(error) => Err(Refusal::Malformed(format!("the body is not JSON: {error}"))),
    }
}

fn expected(member: &str, what: &str) -> Refusal {
    Refusal::Malformed(format!("{member}: expected {what}"))
}

fn text(body: &Map<String, Value>, member: &str) -> Result<String, Refusal> {
    let text = body.get(member).and_then(Value::as_str);
    text.map(str::to_owned)
        .ok_or_else(|| expected(member, "a string"))
}

fn tree(body: &Map<String, Value>) -> Result<TreeRequest, Refusal> {
    let number = |member| {
        let number = body.get(member).and_then(Value::as_u64);
        number.ok_or_else(|| expected(member, "a positive integer"))
    };
    let nic = |nic: &Value| match nic.as_str() {
        Some(nic) => nic.parse::<NicAddress>(),
        None => Err(expected("macs", "a list of strings")),
    };
    let nics = body.get("macs").and_then(Value::as_array);
    let nics = nics.ok_or_else(|| expected("macs", "a list of strings"))?;
    Ok(TreeRequest {
        job: text(body, "jobID")?,
        step: text(body, "jobStepID")?,
        nics: nics.iter().map(nic).collect::<Result<_, _>>()?,
        vni: number("vni")?,
        timeout: number("timeout")?,
    })
}

/// The steps that a patch sets to null; nothing else can be patched.
fn ended_steps(body: &Map<String, Value>) -> Result<Vec<String>, Refusal> {
    let wrong =
        || Refusal::Malformed("expected nothing but jobSteps, with steps that are null".to_owned());
    let steps = body
        .get("jobSteps")
        .and_then(Value::as_object)
        .ok_or_else(wrong)?;
    if body.len() != 1 || steps.values().any(|step| !step.is_null()) {
        return Err(wrong());
    }
    Ok(steps.keys().cloned().collect())
}
