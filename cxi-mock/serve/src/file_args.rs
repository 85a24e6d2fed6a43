//! Files that are written while nodes are served: arguments of `run`, `serve` and `cluster`.

use std::path::{Path, PathBuf};

use clap::Args;

use super::error::ServeError;
use super::state_file::StateFile;
use super::trace::Trace;

#[derive(Debug, Args)]
pub(crate) struct FileArguments {
    /// Keep services in this file: nodes continue where the last ones with this file ended
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Record every command and event in this file, one JSON object a line
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Record every operation between processes in this file, one JSON object a line
    #[arg(long, value_name = "FILE")]
    capture: Option<PathBuf>,
}

impl FileArguments {
    /// Whether there are any.
    pub(crate) fn any(&self) -> bool {
        self.state.is_some() || self.trace.is_some() || self.capture.is_some()
    }

    /// Takes the file of the state.
    pub(crate) fn state(&self) -> Result<Option<StateFile>, ServeError> {
        self.state.as_deref().map(StateFile::take).transpose()
    }

    /// Makes the other files.
    pub(crate) fn records(&self) -> Result<Records, ServeError> {
        let create = |path: Option<&Path>| path.map(Trace::create).transpose();
        Ok(Records {
            trace: create(self.trace.as_deref())?,
            capture: create(self.capture.as_deref())?,
        })
    }
}

/// Where it is recorded what happens.
#[derive(Debug)]
pub(crate) struct Records {
    /// Commands and events.
    pub(crate) trace: Option<Trace>,
    /// Operations between processes.
    pub(crate) capture: Option<Trace>,
}

impl Records {
    /// The same files, for one node of several.
    pub(crate) fn on_node(&self, name: &str) -> Self {
        let of = |trace: &Option<Trace>| trace.as_ref().map(|trace| trace.on_node(name));
        Self {
            trace: of(&self.trace),
            capture: of(&self.capture),
        }
    }
}
