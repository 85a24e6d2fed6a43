//! The content of a state file.

use serde::de::DeserializeOwned;
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Serialize, Serializer};

use crate::exit::{Exit, Failure};

/// What a file contains.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    /// Its name in messages.
    pub(crate) name: &'static str,
    /// The name of the format in the file.
    format: &'static str,
    version: u32,
    /// The content, in words.
    pub(super) holds: &'static str,
    /// The member of the JSON object with the content.
    member: &'static str,
}

/// The file of a mock node.
pub(crate) const MOCK_NODE: Kind = Kind {
    name: "state file",
    format: "cxi mock node",
    version: 1,
    holds: "the state of a mock node",
    member: "node",
};

/// The file of a pool of VNIs.
pub(crate) const VNI_POOL: Kind = Kind {
    name: "pool file",
    format: "cxi vni pool",
    version: 1,
    holds: "the state of a pool of VNIs",
    member: "pool",
};

/// The decision of the controller for a job.
pub(crate) const DECISION: Kind = Kind {
    name: "decision",
    format: "cxi job decision",
    version: 1,
    holds: "what the controller decided for a job",
    member: "record",
};

/// A job on a node.
pub(crate) const NODE_RECORD: Kind = Kind {
    name: "job record",
    format: "cxi job on a node",
    version: 1,
    holds: "what a job has on this node",
    member: "record",
};

/// A job's reservation at the fabric manager.
pub(crate) const RESERVATION: Kind = Kind {
    name: "reservation",
    format: "cxi job reservation",
    version: 1,
    holds: "what a job has at the fabric manager",
    member: "record",
};

/// The file of idle services that an audit found.
pub(crate) const OBSERVATION: Kind = Kind {
    name: "idle file",
    format: "cxi idle services",
    version: 1,
    holds: "the services that an audit saw idle",
    member: "observation",
};

#[derive(Deserialize)]
struct Header {
    format: Option<String>,
    version: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents<T> {
    #[serde(rename = "format")]
    _format: String,
    #[serde(rename = "version")]
    _version: u32,
    #[serde(
        alias = "node",
        alias = "pool",
        alias = "observation",
        alias = "record"
    )]
    kept: T,
}

struct Written<'a, T> {
    kind: Kind,
    kept: &'a T,
}

impl<T: Serialize> Serialize for Written<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("format", self.kind.format)?;
        map.serialize_entry("version", &self.kind.version)?;
        map.serialize_entry(self.kind.member, self.kept)?;
        map.end()
    }
}

/// What a file keeps, as its text.
pub(crate) fn text_of<T: Serialize>(kind: Kind, kept: &T) -> Result<String, Failure> {
    let mut text = serde_json::to_string_pretty(&Written { kind, kept })
        .map_err(|error| Failure::new(Exit::Failed, format!("cannot write the state: {error}")))?;
    text.push('\n');
    Ok(text)
}

pub(crate) fn parse<T: DeserializeOwned>(kind: Kind, text: &str) -> Result<T, String> {
    let Kind {
        name,
        format,
        version,
        holds,
        ..
    } = kind;
    if text.trim().is_empty() {
        return Err(format!("the {name} is empty: expected {holds} as JSON"));
    }
    let no_state =
        || format!("line 1: invalid {name}: expected an object with \"format\": \"{format}\"");
    let object = text.trim_start().starts_with('{');
    let header = serde_json::from_str::<Header>(text);
    let header = header.map_err(|error| {
        if object {
            damaged(name, &error)
        } else {
            no_state()
        }
    })?;
    match header.format.as_deref() {
        Some(found) if found == format => {}
        Some(other) => {
            return Err(format!(
                "line 1: invalid {name}: format is \"{other}\", expected \"{format}\""
            ));
        }
        None => return Err(no_state()),
    }
    match header.version {
        Some(found) if found == version => {}
        Some(other) => {
            return Err(format!(
                "the {name} has version {other}, this cxi reads version {version}"
            ));
        }
        None => {
            return Err(format!(
                "the {name} has no version, this cxi reads version {version}"
            ));
        }
    }
    serde_json::from_str::<Contents<T>>(text)
        .map(|contents| contents.kept)
        .map_err(|error| damaged(name, &error))
}

fn damaged(name: &str, error: &serde_json::Error) -> String {
    if error.is_eof() {
        format!("the {name} is cut off: {error}")
    } else {
        format!("the {name} is damaged: {error}")
    }
}
