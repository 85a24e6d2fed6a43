//! The settings of all commands and scripts, and of the other programs that read the same file.
//! Options of the command line override them.

use std::path::Path;

use clap::Subcommand;
use cxi_job::settings::{Directories, FILE, Source};
use serde::Serialize;

use crate::exit::Failure;
use crate::options::{Common, MOCK};
use crate::output::{Columns, Report};

pub(crate) use cxi_job::settings::{NODE_LOCK, Settings};
pub(crate) use cxi_job::site::keys::*;

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show the settings in force, and where each of them comes from
    Check,
}

/// Reads the named file, or that of this machine, which need not exist. A mock node has directories
/// of its own, and what this machine's file says does not concern it.
pub(crate) fn load(named: Option<&Path>, mock: Option<Directories>) -> Result<Settings, Failure> {
    let settings = match mock {
        Some(directories) => Settings::load_for_mock(named, directories)?,
        None => Settings::load(named)?,
    };
    settings.check(ALL)?;
    Ok(settings)
}

#[derive(Serialize)]
struct Checked<'a> {
    file: Option<&'a Path>,
    /// The mock node that commands work on.
    #[serde(skip_serializing_if = "Option::is_none")]
    mock: Option<Mock<'a>>,
    settings: Vec<Setting>,
}

#[derive(Serialize)]
struct Mock<'a> {
    /// Its state; null if it ends with the command.
    file: Option<&'a Path>,
    /// Whether the variable `CXI_MOCK` names it, and not an option.
    by_variable: bool,
}

#[derive(Serialize)]
struct Setting {
    name: &'static str,
    value: String,
    from: Source,
    /// The variable that overrides it.
    variable: &'static str,
}

pub(crate) fn run(command: &ConfigCommand, common: &Common) -> Result<Report, Failure> {
    let ConfigCommand::Check = command;
    let settings = &common.settings;
    let mut json = Checked {
        file: settings.file(),
        mock: common.mock.as_ref().map(|state| Mock {
            file: state.as_deref(),
            by_variable: common.mock_by_variable,
        }),
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
    let mut text = match (settings.file(), &json.mock) {
        (Some(file), _) => format!("Settings from {}\n", file.display()),
        (None, Some(_)) => "No settings file: none is named for the mock node\n".to_owned(),
        (None, None) => format!("No settings file: there is no {FILE}\n"),
    };
    if let Some(Mock { file, by_variable }) = &json.mock {
        let by = if *by_variable { MOCK } else { "--mock" };
        text += &match file {
            Some(state) => format!("Mock node {}, named by {by}\n", state.display()),
            None => format!("Temporary mock node, because of {by}\n"),
        };
    }
    Ok(Report::new(text + &table.render(0), &json))
}
