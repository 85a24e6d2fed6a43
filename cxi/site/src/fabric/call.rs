//! One request, until it is answered or its deadline has passed.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::transport::{HttpAnswer, HttpRequest, HttpTransport, Method};
use super::{FabricError, Problem};

/// Longest time to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "callers choose all of it")]
pub struct Patience {
    /// The timeout of one attempt.
    pub attempt: Duration,
    /// The time for all attempts together.
    pub deadline: Duration,
    /// The pause before the second attempt; it doubles before each further one, up to 2 s.
    pub pause: Duration,
}

impl Default for Patience {
    /// 5 s for an attempt, 20 s for all of them, 100 ms before the second one.
    fn default() -> Self {
        Self {
            attempt: Duration::from_secs(5),
            deadline: Duration::from_secs(20),
            pause: Duration::from_millis(100),
        }
    }
}

const LONGEST_PAUSE: Duration = Duration::from_secs(2);

impl Patience {
    /// With at most this much time for an attempt, and for all of them together.
    #[must_use]
    pub fn within(self, deadline: Duration) -> Self {
        Self { attempt: self.attempt.min(deadline), deadline: self.deadline.min(deadline), ..self }
    }

    /// Tries until an attempt, which gets its timeout, succeeds or fails for good, or until the
    /// deadline.
    ///
    /// # Errors
    /// The error of the last attempt; one that is temporary says that the deadline has passed.
    pub fn retry<T, E>(
        &self,
        is_temporary: impl Fn(&E) -> bool,
        mut attempt: impl FnMut(Duration) -> Result<T, E>,
    ) -> Result<T, E> {
        let start = Instant::now();
        let left = || self.deadline.saturating_sub(start.elapsed());
        let mut pause = self.pause;
        loop {
            let outcome = attempt(self.attempt.min(left()));
            match &outcome {
                Err(error) if is_temporary(error) && left() > pause => {}
                _ => return outcome,
            }
            thread::sleep(pause);
            pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
        }
    }
}

/// A request, and the statuses other than 2xx that count as its answer.
pub(super) struct Call<'a> {
    pub(super) action: &'a str,
    pub(super) method: Method,
    pub(super) url: &'a str,
    pub(super) body: Option<Value>,
    pub(super) also: &'a [u16],
}

/// Source of the value of `Authorization`.
pub(super) trait Authority {
    /// The value.
    fn authorization(&self, timeout: Duration) -> Result<String, Problem>;

    /// Forgets a value that was refused. Returns whether the next one may differ.
    fn forget(&self) -> bool;
}

impl Call<'_> {
    /// Repeats the request until it is answered.
    pub(super) fn make(
        &self,
        transport: &dyn HttpTransport,
        authority: &dyn Authority,
        patience: &Patience,
    ) -> Result<HttpAnswer, FabricError> {
        let mut renewed = false;
        let answer = patience.retry(Problem::is_temporary, |timeout| {
            self.attempt(transport, authority, &mut renewed, timeout)
        });
        answer.map_err(|problem| {
            let problem = if problem.is_temporary() {
                let (after, last) = (patience.deadline, Box::new(problem));
                Problem::Deadline { after, last }
            } else {
                problem
            };
            FabricError::new(self.action, problem)
        })
    }

    fn attempt(
        &self,
        transport: &dyn HttpTransport,
        authority: &dyn Authority,
        renewed: &mut bool,
        timeout: Duration,
    ) -> Result<HttpAnswer, Problem> {
        let authorization = authority.authorization(timeout)?;
        let body = self.body.as_ref().map(Value::to_string);
        let request = HttpRequest {
            method: self.method,
            url: self.url,
            authorization: Some(&authorization),
            content_type: "application/json",
            body: body.as_deref(),
        };
        let answer = transport.send(&request, timeout)?;
        if matches!(answer.status, 200..=299) || self.also.contains(&answer.status) {
            return Ok(answer);
        }
        // The token may have expired, so a new one is requested, but only once: a second refusal is
        // final.
        if matches!(answer.status, 401 | 403) && !*renewed && authority.forget() {
            *renewed = true;
            return self.attempt(transport, authority, renewed, timeout);
        }
        Err(refusal(&answer))
    }
}

/// The reason that an error document gives: `message` or `detail`, or nothing.
pub(super) fn refusal(answer: &HttpAnswer) -> Problem {
    let document: Option<Value> = serde_json::from_slice(&answer.body).ok();
    let text = |member: &str| document.as_ref()?.get(member)?.as_str().map(str::to_owned);
    Problem::Refused { status: answer.status, message: text("message").or_else(|| text("detail")) }
}

/// The JSON object of an answer.
pub(super) fn object(answer: &HttpAnswer) -> Result<Value, Problem> {
    match serde_json::from_slice(&answer.body) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err(Problem::Answer("is not a JSON object".to_owned())),
        Err(_) if answer.body.is_empty() => Err(Problem::Answer("is empty".to_owned())),
        Err(error) => Err(Problem::Answer(format!("is not JSON: {error}"))),
    }
}

/// A string of a JSON object.
pub(super) fn text<'v>(object: &'v Value, member: &str) -> Result<&'v str, Problem> {
    let text = object.get(member).and_then(Value::as_str);
    text.ok_or_else(|| Problem::Answer(format!("has no string {member:?}")))
}
