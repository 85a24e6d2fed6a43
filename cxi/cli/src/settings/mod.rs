//! The settings of all commands and scripts, and of the other programs that read the same file.
//! Options of the command line override them.

mod keys;
mod report;

use std::path::Path;

use clap::Subcommand;
use cxi_job::settings::SettingsError;

use crate::exit::Failure;

pub(crate) use cxi_job::settings::{NODE_LOCK, Settings};
pub(crate) use keys::*;
pub(crate) use report::run;

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show the settings in force, and where each of them comes from
    Check,
}

/// Reads the named file, or that of this machine, which need not exist.
pub(crate) fn load(named: Option<&Path>) -> Result<Settings, Failure> {
    let settings = Settings::load(named)?;
    settings.check(KEYS)?;
    Ok(settings)
}

/// What was a setting of each node, and a file of the scripts for Slurm.
const COLLECTIVES_MOVED: &str = "The controller reserves, once for all nodes of a job: expected \
    collectives.trees, collectives.min-nodes and collectives.required.";

/// Refuses the file that earlier scripts for Slurm read beside this one.
pub(crate) fn no_earlier_file(settings: &Settings) -> Result<(), Failure> {
    let beside = settings.file().and_then(Path::parent);
    match beside.map(|directory| directory.join("collectives")) {
        Some(file) if file.is_file() => {
            let message = format!("{}: this file is not read any more", file.display());
            Err(Failure::bad_input(message)
                .hint(COLLECTIVES_MOVED)
                .hint("Move what it says to cxi.toml, and remove it."))
        }
        _ => Ok(()),
    }
}

impl From<SettingsError> for Failure {
    fn from(error: SettingsError) -> Self {
        let failure = Self::bad_input(error.to_string());
        if let SettingsError::Unknown { name, .. } = &error {
            if name.starts_with("job.collectives") {
                return failure.hint(COLLECTIVES_MOVED);
            }
            let names = KEYS
                .iter()
                .map(|key| key.name())
                .collect::<Vec<_>>()
                .join(", ");
            return failure.hint(format!("Expected one of {names}."));
        }
        failure
    }
}
