//! Faults.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Answer, Endpoint};

/// A fault of requests of a kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(
    clippy::exhaustive_structs,
    reason = "read from JSON, and made in tests"
)]
pub struct Fault {
    /// The requests that it affects; all, if none is named.
    #[serde(default)]
    pub on: Option<Endpoint>,
    /// Requests of the kind that succeed before.
    #[serde(default)]
    pub after: u32,
    /// How often; without a number, always.
    #[serde(default)]
    pub times: Option<u32>,
    /// What happens.
    pub effect: Effect,
}

/// What happens to a request or its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Effect {
    /// Another answer is given, and the request is performed only with `perform`.
    Answer {
        /// The status.
        status: u16,
        /// The body.
        #[serde(default)]
        body: Body,
        /// Performs the request all the same.
        #[serde(default)]
        perform: bool,
    },
    /// A member of the answer gets another value.
    Set {
        /// The member.
        member: String,
        /// Its value.
        value: Value,
    },
    /// A member of the answer is left out.
    Remove {
        /// The member.
        member: String,
    },
    /// `hwRoot` has three octets, the form in which libfabric sends NICs: it reads that as 0.
    ThreeOctetRoot,
    /// `hwRoot` begins with `02:`: libfabric reads another NIC.
    LocalRoot,
    /// The body is padded to a multiple of 4096 bytes: libfabric writes its NUL one byte after its
    /// buffer.
    PageOfBytes,
    /// The answer is late, or is sent incorrectly.
    Delivery(Delivery),
}

/// The body of another answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Body {
    /// An error document that names the status.
    #[default]
    Error,
    /// An error document with this `message` and `detail`.
    Message(String),
    /// A page of HTML, as gateways answer.
    Html,
    /// Nothing.
    Empty,
    /// This document.
    Json(Value),
}

/// How the bytes of an answer are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Delivery {
    /// As they are.
    #[default]
    Whole,
    /// Never; the connection stays.
    Silence,
    /// After this many milliseconds.
    After(u64),
    /// One byte every this many milliseconds.
    Drip(u64),
    /// The head, and then nothing.
    HeadOnly,
    /// This many bytes of the body, and then the end.
    Cut(usize),
    /// With a `Content-Length` that is too large by this many bytes.
    TooShort(usize),
    /// Not at all: the connection is reset.
    Reset,
}

impl Fault {
    /// A fault of all requests that never ends.
    #[must_use]
    pub const fn new(effect: Effect) -> Self {
        Self {
            on: None,
            after: 0,
            times: None,
            effect,
        }
    }

    /// Limits it to these requests.
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

    /// Another answer, without performing the request.
    #[must_use]
    pub const fn answer(status: u16, body: Body) -> Self {
        Self::new(Effect::Answer {
            status,
            body,
            perform: false,
        })
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
    /// Whether the request is performed.
    pub(super) const fn performs(&self) -> bool {
        !matches!(self, Self::Answer { perform: false, .. })
    }

    /// Changes the answer; returns how it is sent.
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
