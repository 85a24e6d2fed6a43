//! The workload manager's side: reservations.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::call::{Authority, Call, Patience, object, refusal, text};
use super::credentials::{TokenRequest, basic, check_url, is_clear};
use super::transport::{HttpAnswer, HttpRequest, HttpTransport, Method};
use super::{ClusterName, Credentials, FabricError, Problem, escaped};
use crate::collectives::{Certificate, CollectivesEnv, Reservation};
use crate::{JobId, StepId};

const JOBS: &str = "/fabric/collectives/jobs";
const MULTICASTS: &str = "/fabric/collectives/multicasts";

/// A token is replaced this long before it expires, or a tenth of its lifetime if that is less, so
/// that it does not expire between this check and the server's.
const EARLY: Duration = Duration::from_secs(30);

/// The fabric manager, for a workload manager. Clones share their token.
#[derive(Clone, Debug)]
pub struct FabricManager {
    base: String,
    cluster: ClusterName,
    certificate: Certificate,
    transport: Arc<dyn HttpTransport>,
    patience: Patience,
    login: Arc<Login>,
}

/// A job's reservation in the fabric manager.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReservationInfo {
    /// Its name, token and address.
    pub reservation: Reservation,
    /// Most trees at a time, if the fabric manager says so.
    pub limit: Option<u32>,
    /// `true` if it existed before.
    pub found: bool,
}

impl FabricManager {
    /// The fabric manager at an address, which is the part before `/fabric/…`. The certificate is
    /// for libfabric; how this client verifies the server is up to the transport.
    ///
    /// # Errors
    /// [`FabricError`]: the address is not an HTTP or HTTPS URL.
    pub fn new(
        url: &str,
        cluster: ClusterName,
        credentials: Credentials,
        transport: Arc<dyn HttpTransport>,
        certificate: Certificate,
    ) -> Result<Self, FabricError> {
        check_url("use a fabric manager", url)?;
        Ok(Self {
            base: url.trim_end_matches('/').to_owned(),
            cluster,
            certificate,
            login: Arc::new(Login {
                base: url.to_owned(),
                credentials,
                allow_clear: false,
                transport: Arc::clone(&transport),
                token: Mutex::default(),
            }),
            transport,
            patience: Patience::default(),
        })
    }

    /// Also sends the password or the token over `http://`, where everyone on the network can read it.
    #[must_use]
    pub fn allow_clear_secrets(mut self) -> Self {
        let Login { base, credentials, transport, .. } = &*self.login;
        self.login = Arc::new(Login {
            base: base.clone(),
            credentials: credentials.clone(),
            allow_clear: true,
            transport: Arc::clone(transport),
            token: Mutex::default(),
        });
        self
    }

    /// Sets the longest time to try.
    #[must_use]
    pub const fn patience(mut self, patience: Patience) -> Self {
        self.patience = patience;
        self
    }

    /// Spends at most this much time on a request.
    #[must_use]
    pub fn within(mut self, deadline: Duration) -> Self {
        self.patience = self.patience.within(deadline);
        self
    }

    /// Reserves trees for a job, or finds its reservation: a second step, or a restarted scheduler,
    /// gets the same.
    ///
    /// # Errors
    /// [`FabricError`].
    pub fn reserve(&self, job: &JobId, limit: u32) -> Result<ReservationInfo, FabricError> {
        let action = format!("reserve {limit} multicast trees for job {job}");
        if let Some(found) = self.look(&action, job)? {
            return Ok(found);
        }
        let name = self.name(&action, job)?;
        let url = format!("{}{JOBS}", self.base);
        let body = json!({ "jobID": name.as_str(), "mcastLimit": limit });
        let answer = self.call(&Call {
            action: &action,
            method: Method::Post,
            url: &url,
            body: Some(body),
            also: &[409],
        })?;
        if answer.status != 409 {
            return self.reserved(&action, name, &answer, false);
        }
        // Another step of the job was faster, or an answer was lost.
        self.look(&action, job)?.ok_or_else(|| FabricError::new(&action, refusal(&answer)))
    }

    /// Finds the reservation of a job.
    ///
    /// # Errors
    /// [`FabricError`].
    pub fn find(&self, job: &JobId) -> Result<Option<ReservationInfo>, FabricError> {
        self.look(&format!("look for the reservation of job {job}"), job)
    }

    /// Reserves for a job, and returns the variables of one of its steps.
    ///
    /// # Errors
    /// [`FabricError`]. The job can start without hardware collectives: software does the same. Remove
    /// [`CLEAR`](crate::collectives::CLEAR) from its environment then.
    pub fn offload(
        &self,
        job: &JobId,
        step: StepId,
        limit: u32,
    ) -> Result<CollectivesEnv, FabricError> {
        let reserved = self.reserve(job, limit)?;
        let env = CollectivesEnv::new(reserved.reservation, step);
        Ok(env.addresses_per_job(reserved.limit.unwrap_or(limit)))
    }

    /// Ends a step: the trees that its processes left are deleted. Returns whether the job has a
    /// reservation.
    ///
    /// # Errors
    /// [`FabricError`].
    pub fn end_step(&self, job: &JobId, step: &StepId) -> Result<bool, FabricError> {
        let action = format!("end step {step} of job {job}");
        let url = self.url(&action, job)?;
        end_step(&action, &url, step, |call| self.call(call))
    }

    /// Releases a job's reservation, with all its trees. Returns whether there was one.
    ///
    /// # Errors
    /// [`FabricError`].
    pub fn release(&self, job: &JobId) -> Result<bool, FabricError> {
        let action = format!("release the reservation of job {job}");
        let url = self.url(&action, job)?;
        let answer = self.call(&Call {
            action: &action,
            method: Method::Delete,
            url: &url,
            body: None,
            also: &[404],
        })?;
        Ok(answer.status != 404)
    }

    fn list(&self, action: &str) -> Result<Vec<String>, FabricError> {
        let url = format!("{}{JOBS}/", self.base);
        let answer =
            self.call(&Call { action, method: Method::Get, url: &url, body: None, also: &[] })?;
        let document = object(&answer).map_err(|problem| FabricError::new(action, problem))?;
        // An answer without the list says nothing; it is not the same as an empty list.
        let links = document.get("documentLinks").and_then(Value::as_array).ok_or_else(|| {
            let problem = Problem::Answer("has no list \"documentLinks\"".to_owned());
            FabricError::new(action, problem)
        })?;
        Ok(links.iter().map(|link| link.as_str().unwrap_or_default().to_owned()).collect())
    }

    fn look(&self, action: &str, job: &JobId) -> Result<Option<ReservationInfo>, FabricError> {
        let url = self.url(action, job)?;
        let answer =
            self.call(&Call { action, method: Method::Get, url: &url, body: None, also: &[404] })?;
        if answer.status == 404 {
            return Ok(None);
        }
        let name = self.name(action, job)?;
        self.reserved(action, name, &answer, true).map(Some)
    }

    fn reserved(
        &self,
        action: &str,
        name: JobId,
        answer: &HttpAnswer,
        found: bool,
    ) -> Result<ReservationInfo, FabricError> {
        let of = |problem: Problem| FabricError::new(action, problem);
        let document = object(answer).map_err(of)?;
        let token = text(&document, "sessionToken").map_err(of)?;
        let (url, certificate) = (format!("{}{MULTICASTS}", self.base), self.certificate.clone());
        let reservation =
            Reservation::new(name, token, &url, certificate).map_err(|error| of(error.into()))?;
        let limit = document.get("mcastLimit").and_then(Value::as_u64);
        Ok(ReservationInfo {
            reservation,
            limit: limit.and_then(|limit| limit.try_into().ok()),
            found,
        })
    }

    fn name(&self, action: &str, job: &JobId) -> Result<JobId, FabricError> {
        let name = self.cluster.reservation(job);
        name.map_err(|error| FabricError::new(action, Problem::Name(error.to_string())))
    }

    fn url(&self, action: &str, job: &JobId) -> Result<String, FabricError> {
        let name = self.name(action, job)?;
        Ok(format!("{}{JOBS}/{}", self.base, escaped(name.as_str())))
    }

    fn call(&self, call: &Call<'_>) -> Result<HttpAnswer, FabricError> {
        call.make(&*self.transport, &*self.login, &self.patience)
    }
}

/// Ends a step of a job from inside it: for a sub-instance, or a job that inherited a reservation,
/// which has the session token and no credentials. Returns whether the reservation exists.
///
/// # Errors
/// [`FabricError`]; a fabric manager may allow this only for the workload manager.
pub fn end_inherited_step(
    reservation: &Reservation,
    step: &StepId,
    transport: &dyn HttpTransport,
    patience: &Patience,
) -> Result<bool, FabricError> {
    let action = format!("end step {step} of {}", reservation.id());
    let multicasts = reservation.url().trim_end_matches('/');
    let base = multicasts.strip_suffix(MULTICASTS).ok_or_else(|| {
        let message =
            format!("fabric manager address {multicasts:?}: expected {MULTICASTS} at its end");
        FabricError::new(&action, Problem::Name(message))
    })?;
    let url = format!("{base}{JOBS}/{}", escaped(reservation.id().as_str()));
    let bearer = Bearer(reservation.token());
    end_step(&action, &url, step, |call| call.make(transport, &bearer, patience))
}

/// A session token, which does not change.
struct Bearer<'a>(&'a str);

impl Authority for Bearer<'_> {
    fn authorization(&self, _timeout: Duration) -> Result<String, Problem> {
        Ok(format!("Bearer {}", self.0))
    }

    fn forget(&self) -> bool {
        false
    }
}

fn end_step(
    action: &str,
    url: &str,
    step: &StepId,
    call: impl FnOnce(&Call<'_>) -> Result<HttpAnswer, FabricError>,
) -> Result<bool, FabricError> {
    let answer = call(&Call {
        action,
        method: Method::Patch,
        url,
        body: Some(json!({ "jobSteps": { step.as_str(): null } })),
        also: &[404],
    })?;
    Ok(answer.status != 404)
}

/// Credentials, and the token that was issued for them.
#[derive(Debug)]
struct Login {
    /// The address of the fabric manager.
    base: String,
    credentials: Credentials,
    /// `true` if secrets may go over the network in clear.
    allow_clear: bool,
    transport: Arc<dyn HttpTransport>,
    token: Mutex<Option<Token>>,
}

struct Token {
    header: String,
    /// When to request another one.
    until: Option<Instant>,
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Token").field("until", &self.until).finish_non_exhaustive()
    }
}

impl Login {
    fn token(&self) -> MutexGuard<'_, Option<Token>> {
        self.token.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that what is secret can be sent to an address.
    fn may_tell(&self, url: &str) -> Result<(), Problem> {
        if self.allow_clear || !is_clear(url) {
            return Ok(());
        }
        Err(Problem::Clear { url: url.to_owned() })
    }

    fn renew(&self, request: &TokenRequest, timeout: Duration) -> Result<Token, Problem> {
        check_url("get a token", &request.endpoint).map_err(|error| error.problem().clone())?;
        self.may_tell(&request.endpoint)?;
        let http = HttpRequest {
            method: Method::Post,
            url: &request.endpoint,
            authorization: None,
            content_type: "application/x-www-form-urlencoded",
            body: Some(&request.form),
        };
        let asked = Instant::now();
        let answer = self.transport.send(&http, timeout)?;
        if !matches!(answer.status, 200..=299) {
            return Err(refusal(&answer));
        }
        let document = object(&answer)?;
        let token = text(&document, "access_token")?;
        let life = document.get("expires_in").and_then(Value::as_u64).map(Duration::from_secs);
        let until =
            life.and_then(|life| asked.checked_add(life.saturating_sub(EARLY.min(life / 10))));
        let header = format!("Bearer {token}");
        Ok(Token { header, until })
    }
}

impl Authority for Login {
    fn authorization(&self, timeout: Duration) -> Result<String, Problem> {
        self.may_tell(&self.base)?;
        let directory = match &self.credentials {
            Credentials::Basic(directory) => return basic(directory),
            Credentials::OAuth(directory) => directory,
        };
        let mut token = self.token();
        let is_good = |token: &&Token| token.until.is_none_or(|until| Instant::now() < until);
        if let Some(token) = token.as_ref().filter(is_good) {
            return Ok(token.header.clone());
        }
        let request = TokenRequest::read(directory)?;
        let fresh = self.renew(&request, timeout).map_err(|problem| Problem::Token {
            endpoint: request.endpoint.clone(),
            problem: Box::new(problem),
        })?;
        Ok(token.insert(fresh).header.clone())
    }

    fn forget(&self) -> bool {
        self.token().take().is_some()
    }
}

/// Result of a sweep of a cluster's reservations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Swept {
    /// Live jobs: their reservations stay.
    pub live: Vec<JobId>,
    /// Jobs that have ended: their reservations are released.
    pub released: Vec<JobId>,
    /// Jobs that have ended, and why their reservations still exist.
    pub failed: Vec<(JobId, FabricError)>,
    /// Reservations of other clusters, and links to other things: left alone.
    pub others: usize,
}

impl FabricManager {
    /// Releases the reservations of jobs of this cluster that have ended. `lives` is called after
    /// the list was read, so that a job that starts in the meantime keeps its reservation.
    ///
    /// # Errors
    /// [`FabricError`]: the list cannot be read; nothing is released.
    pub fn sweep(&self, mut lives: impl FnMut(&JobId) -> bool) -> Result<Swept, FabricError> {
        let links = self.list(&format!("list the reservations of {}", self.cluster))?;
        let mut swept = Swept::default();
        for link in links {
            match self.job_of(&link) {
                None => swept.others += 1,
                Some(job) if lives(&job) => swept.live.push(job),
                Some(job) => match self.release(&job) {
                    Ok(_) => swept.released.push(job),
                    Err(error) => swept.failed.push((job, error)),
                },
            }
        }
        Ok(swept)
    }

    fn job_of(&self, link: &str) -> Option<JobId> {
        let name = link.strip_prefix(JOBS)?.strip_prefix('/')?;
        let name = percent_encoding::percent_decode_str(name).decode_utf8().ok()?;
        self.cluster.job(&name)
    }
}
