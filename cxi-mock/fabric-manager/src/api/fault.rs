//! Fault injection.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Answer, Endpoint};

/// A fault that affects requests of some kinds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(clippy::exhaustive_structs, reason = "read from JSON, and made in tests")]
pub struct Fault {
    /// The kinds of requests that it affects; all if none is named.
    #[serde(default)]
    pub on: Option<Endpoint>,
    /// Number of these requests that succeed before the fault begins.
    #[serde(default)]
    pub after: u32,
    /// Number of times that it happens; always if `None`.
    #[serde(default)]
    pub times: Option<u32>,
    /// Effect of the fault.
    pub effect: Effect,
}

/// Effect on a request or its response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Effect {
    /// Sends another response. The request is performed only if `perform` is set.
    Answer {
        /// The status.
        status: u16,
        /// The body.
        #[serde(default)]
        body: Body,
        /// Performs the request nevertheless.
        #[serde(default)]
        perform: bool,
    },
    /// Gives a member of the response another value.
    Set {
        /// The member.
        member: String,
        /// Its value.
        value: Value,
    },
    /// Leaves out a member of the response.
    Remove {
        /// The member.
        member: String,
    },
    /// `hwRoot` has three octets, the form in which libfabric sends NICs. libfabric parses that as 0.
    ThreeOctetRoot,
    /// `hwRoot` begins with `02:`, which libfabric parses as another NIC.
    LocalRoot,
    /// The body is padded to a multiple of 4096 bytes, so that libfabric writes its NUL one byte past its
    /// buffer.
    PageOfBytes,
    /// The response is late or is sent incorrectly.
    Delivery(Delivery),
}

/// The body of another response.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Body {
    /// An error document that names the status.
    #[default]
    Error,
    /// An error document with this `message` and `detail`.
    Message(String),
    /// An HTML page, as gateways send it.
    Html,
    /// An empty body.
    Empty,
    /// This document.
    Json(Value),
}

/// Way in which the bytes of a response are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Delivery {
    /// Correctly.
    #[default]
    Whole,
    /// Never; the connection stays open.
    Silence,
    /// After this many milliseconds.
    After(u64),
    /// One byte every this many milliseconds.
    Drip(u64),
    /// Only the head; the connection stays open.
    HeadOnly,
    /// Only this many bytes of the body; then the connection is closed.
    Cut(usize),
    /// With a `Content-Length` that is too large by this many bytes.
    TooShort(usize),
    /// Not at all; the connection is reset.
    Reset,
}

impl Fault {
    /// A permanent fault that affects all requests.
    #[must_use]
    pub const fn new(effect: Effect) -> Self {
        Self { on: None, after: 0, times: None, effect }
    }

    /// Limits it to these kinds of requests.
    #[must_use]
    pub const fn on(mut self, endpoint: Endpoint) -> Self {
        self.on = Some(endpoint);
        self
    }

    /// Limits how often it happens.
    #[must_use]
    pub const fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    /// Another response, without performing the request.
    #[must_use]
    pub const fn answer(status: u16, body: Body) -> Self {
        Self::new(Effect::Answer { status, body, perform: false })
    }

    /// Another status with an error document, without performing the request.
    #[must_use]
    pub const fn status(status: u16) -> Self {
        Self::answer(status, Body::Error)
    }
}

impl From<Delivery> for Fault {
    fn from(delivery: Delivery) -> Self {
        Self::new(Effect::Delivery(delivery))
    }
}

/// Takes the effect of the first fault that is due, and counts it.
pub(super) fn due(faults: &mut Vec<Fault>, endpoint: Endpoint) -> Option<Effect> {
    let here = |fault: &&mut Fault| fault.on.is_none_or(|on| on == endpoint);
    let mut effect = None;
    for fault in faults.iter_mut().filter(here) {
        if fault.after > 0 {
            fault.after -= 1;
        } else if effect.is_none() {
            effect = Some(fault.effect.clone());
            fault.times = fault.times.map(|times| times.saturating_sub(1));
        }
    }
    faults.retain(|fault| fault.times != Some(0));
    effect
}

impl Effect {
    /// Returns whether the request is performed.
    pub(super) const fn performs(&self) -> bool {
        !matches!(self, Self::Answer { perform: false, .. })
    }

    /// Changes the response. Returns how to send it.
    pub(super) fn apply(&self, answer: &mut Answer) -> Delivery {
        match self {
            Self::Answer { status, body, .. } => *answer = body.answer(*status),
            Self::Set { member, value } => change(answer, |members| {
                members.insert(member.clone(), value.clone());
            }),
            Self::Remove { member } => change(answer, |members| {
                members.remove(member);
            }),
            Self::ThreeOctetRoot => root(answer, |root| root.get(10..).map(str::to_owned)),
            Self::LocalRoot => root(answer, |root| Some(format!("02{}", root.get(2..)?))),
            Self::PageOfBytes => {
                let page = answer.body.len().max(1).next_multiple_of(4096);
                answer.body.resize(page, b' ');
            }
            Self::Delivery(delivery) => return *delivery,
        }
        Delivery::Whole
    }
}

impl Body {
    fn answer(&self, status: u16) -> Answer {
        match self {
            Self::Error => Answer::error(status, &format!("status {status}, as requested")),
            Self::Message(message) => Answer::error(status, message),
            Self::Html => Answer::html(status),
            Self::Empty => Answer::empty(status),
            Self::Json(document) => Answer::json(status, document),
        }
    }
}

fn change(answer: &mut Answer, change: impl FnOnce(&mut serde_json::Map<String, Value>)) {
    if let Ok(Value::Object(mut members)) = serde_json::from_slice(&answer.body) {
        change(&mut members);
        *answer = Answer::json(answer.status, &Value::Object(members));
    }
}

fn root(answer: &mut Answer, other: impl FnOnce(&str) -> Option<String>) {
    change(answer, |members| {
        if let Some(Value::String(root)) = members.get_mut("hwRoot")
            && let Some(other) = other(root)
        {
            *root = other;
        }
    });
}
