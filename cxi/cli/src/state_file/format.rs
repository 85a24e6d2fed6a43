//! The content of state files.

use cxi_job::site::store::Format as Kind;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::exit::{Exit, Failure};

/// The file of a mock node.
pub(crate) const MOCK_NODE: Kind = Kind {
    name: "state file",
    format: "cxi mock node",
    holds: "the state of a mock node",
    member: "node",
};

/// The file of idle services that an audit found.
pub(crate) const OBSERVATION: Kind = Kind {
    name: "idle file",
    format: "cxi idle services",
    holds: "the services that an audit saw idle",
    member: "observation",
};

/// What a file keeps, as its text.
pub(crate) fn text_of<T: Serialize>(kind: Kind, kept: &T) -> Result<String, Failure> {
    kind.print(kept)
        .map_err(|error| Failure::new(Exit::Failed, format!("cannot write the state: {error}")))
}

pub(crate) fn parse<T: DeserializeOwned>(kind: Kind, text: &str) -> Result<T, String> {
    kind.parse(text)
}
