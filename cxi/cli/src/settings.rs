//! The settings of all commands and scripts, and of the other programs that read the same file.
//! Options of the command line override them.

use std::path::Path;

use clap::Subcommand;
use cxi_job::settings::{FILE, SettingsError, Source};
use serde::Serialize;

use crate::exit::Failure;
use crate::output::Report;
use crate::output::table::Columns;

pub(crate) use cxi_job::settings::{NODE_LOCK, Settings};
pub(crate) use cxi_job::site::keys::*;

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show the settings in force, and where each of them comes from
    Check,
}

/// Reads the named file, or that of this machine, which need not exist.
pub(crate) fn load(named: Option<&Path>) -> Result<Settings, Failure> {
    let settings = Settings::load(named)?;
    settings.check(ALL)?;
    Ok(settings)
}

impl From<SettingsError> for Failure {
    fn from(error: SettingsError) -> Self {
        let failure = Self::bad_input(error.to_string());
        if let SettingsError::Unknown { .. } = &error {
            let names: Vec<_> = ALL.iter().map(|key| key.name()).collect();
            return failure.hint(format!("Expected one of {}.", names.join(", ")));
        }
        failure
    }
}

#[derive(Serialize)]
struct Checked<'a> {
    file: Option<&'a Path>,
    settings: Vec<Setting>,
}

#[derive(Serialize)]
struct Setting {
    name: &'static str,
    value: String,
    from: Source,
    /// The variable that overrides it.
    variable: &'static str,
}

pub(crate) fn run(command: &ConfigCommand, settings: &Settings) -> Result<Report, Failure> {
    let ConfigCommand::Check = command;
    let mut json = Checked {
        file: settings.file(),
        settings: Vec::new(),
    };
    let mut table = Columns::new(&["SETTING", "VALUE", "FROM"]);
    for key in ALL.iter().copied() {
        settings.valid(key)?;
        let (value, from) = settings.text(key);
        let place = match from {
            Source::Default => "default".to_owned(),
            Source::Line(line) => format!("line {line}"),
            Source::Variable(name) => name.to_owned(),
        };
        let shown = if value.is_empty() { "-" } else { &value };
        table.row([key.name().to_owned(), shown.to_owned(), place]);
        json.settings.push(Setting {
            name: key.name(),
            value,
            from,
            variable: key.variable(),
        });
    }
    let file = match settings.file() {
        Some(file) => format!("Settings from {}\n", file.display()),
        None => format!("No settings file: there is no {FILE}\n"),
    };
    Ok(Report::new(file + &table.render(0), &json))
}
