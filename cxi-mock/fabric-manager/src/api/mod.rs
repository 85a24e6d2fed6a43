//! From a request to its response: routes, tokens, faults and journal, without I/O or a clock.

mod access;
mod endpoint;
mod fault;
mod journal;
mod message;
mod requests;

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use access::Access;
use access::{Authenticator, Caller};
pub use endpoint::Endpoint;
use endpoint::{link, route};
pub use fault::{Body, Delivery, Effect, Fault};
pub use journal::JournalEntry;
pub use message::{Answer, Request};

use crate::model::{Forget, Model, Refusal, Settings};

/// A fabric manager's configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Config {
    /// The prefix that a gateway adds to paths, such as `/apis/fabric-manager`.
    pub prefix: String,
    /// Accounts and tokens with which callers authenticate.
    pub access: Access,
    /// Sizes, times and choices.
    pub settings: Settings,
}

/// A fabric manager without a network.
#[derive(Debug)]
pub struct Api {
    pub(crate) prefix: String,
    model: Model,
    pub(crate) authenticator: Authenticator,
    pub(crate) faults: Vec<Fault>,
    /// The requests so far, at most the last 100,000.
    pub(crate) journal: VecDeque<JournalEntry>,
}

impl Api {
    /// A fabric manager without reservations.
    ///
    /// # Errors
    /// [`Refusal::Malformed`], as in [`Model::new`].
    pub fn new(config: Config) -> Result<Self, Refusal> {
        Ok(Self {
            prefix: config.prefix.trim_end_matches('/').to_owned(),
            model: Model::new(config.settings)?,
            authenticator: Authenticator::new(config.access),
            faults: Vec::new(),
            journal: VecDeque::new(),
        })
    }

    /// The state.
    #[must_use]
    pub const fn model(&self) -> &Model {
        &self.model
    }

    /// The state, to change it without a request.
    pub const fn model_mut(&mut self) -> &mut Model {
        &mut self.model
    }

    /// Restarts the fabric manager.
    pub fn restart(&mut self, forget: Forget) {
        if forget != Forget::Nothing {
            self.authenticator.forget();
        }
        self.model.restart(forget);
    }

    /// Returns whether the sender of a request with this head has a valid token or password.
    pub(crate) fn knows(&self, head: &Request, now: Duration) -> bool {
        self.authenticator.identify(head, &self.model, now) != Caller::Unknown
    }

    /// Handles a request.
    pub fn handle(&mut self, request: &Request, now: Duration) -> (Answer, Delivery) {
        let route = route(
            &request.method,
            &request.path,
            &self.prefix,
            &self.authenticator.access.token_path,
        );
        let endpoint = route.as_ref().map(|(endpoint, _)| *endpoint);
        let effect = endpoint.and_then(|endpoint| fault::due(&mut self.faults, endpoint));
        let mut answer = if effect.as_ref().is_none_or(Effect::performs) {
            self.perform(route, request, now)
        } else {
            Answer::empty(200)
        };
        let delivery = effect.as_ref().map_or(Delivery::Whole, |effect| effect.apply(&mut answer));
        if self.journal.len() == journal::MOST {
            self.journal.pop_front();
        }
        let fault = effect.is_some();
        let entry = JournalEntry::new(request, endpoint, now, answer.status, fault);
        self.journal.push_back(entry);
        (answer, delivery)
    }

    fn perform(
        &mut self,
        route: Option<(Endpoint, String)>,
        request: &Request,
        now: Duration,
    ) -> Answer {
        let Some((endpoint, name)) = route else {
            return self.refused(&Refusal::NoSuchPath(request.path.clone()));
        };
        if endpoint == Endpoint::Token {
            return self.authenticator.token(request, now);
        }
        let caller = self.authenticator.caller(request, &self.model, now);
        let answer = match endpoint {
            Endpoint::CreateTree => self.create_tree(&caller, request, now),
            _ if caller == Caller::Unknown => Err(Refusal::Unauthorized),
            Endpoint::DeleteTree => self.delete_tree(&caller, &name, now),
            _ => self.jobs(endpoint, &caller, &name, request, now),
        };
        match answer {
            Ok(answer) => answer,
            Err(Refusal::Unauthorized) => self.authenticator.refusal(),
            Err(refusal) => self.refused(&refusal),
        }
    }

    fn refused(&self, refusal: &Refusal) -> Answer {
        let status = refusal.status(self.model.settings());
        Answer::error(status, &refusal.to_string())
    }

    /// A reservation as a document.
    fn document(&self, job: &str) -> Result<Value, Refusal> {
        let reserved = self.model.job(job)?;
        let state = self.model.state();
        let steps = state.jobs.get(job).map(|job| &job.steps);
        Ok(json!({
            "jobID": job,
            "mcastLimit": reserved.limit,
            "sessionToken": reserved.token,
            "jobSteps": steps,
            "documentSelfLink": link(job),
            "documentVersion": 0,
        }))
    }
}
