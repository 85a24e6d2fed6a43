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
    settings.check(&KEYS)?;
    Ok(settings)
}

impl From<SettingsError> for Failure {
    fn from(error: SettingsError) -> Self {
        let failure = Self::bad_input(error.to_string());
        if let SettingsError::Unknown { .. } = error {
            let names = KEYS.map(cxi_job::settings::AnyKey::name).join(", ");
            return failure.hint(format!("Expected one of {names}."));
        }
        failure
    }
}
