//! The settings of all commands and scripts, and of the other programs that read the same file.
//! Options of the command line override them.

use std::path::Path;

use clap::Subcommand;
use cxi_site::settings::{Directories, FILE, Source};
use serde::Serialize;
use serde_json::{Value, json};

use crate::exit::Failure;
use crate::options::{Common, MOCK};
use crate::output::{Columns, Report, print_wait};

pub(crate) use cxi_job::cluster::keys::*;
pub(crate) use cxi_site::settings::Settings;

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show the settings in effect, and where each comes from
    #[command(visible_aliases = ["show", "list", "ls"])]
    Check,
}

/// Reads the named file, or that of this machine, which need not exist. The file of this machine does
/// not apply to a mock node, which has its own directories.
pub(crate) fn load(named: Option<&Path>, mock: Option<Directories>) -> Result<Settings, Failure> {
    let settings = match mock {
        Some(directories) => Settings::load_for_mock(named, directories)?,
        None => Settings::load(named)?,
    };
    settings.check(ALL)?;
    Ok(settings.on_wait(print_wait))
}

#[derive(Serialize)]
struct Shown<'a> {
    file: Option<&'a Path>,
    /// Null for this machine.
    mock: Value,
    settings: Vec<Setting>,
}

#[derive(Serialize)]
struct Setting {
    name: &'static str,
    value: String,
    from: Source,
    variable: &'static str,
}

pub(crate) fn run(command: &ConfigCommand, common: &Common) -> Result<Report, Failure> {
    let ConfigCommand::Check = command;
    let settings = &common.settings;
    let mut table = Columns::new(&["Setting", "Value", "From"]);
    let mut all = Vec::new();
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
        let (name, variable) = (key.name(), key.variable());
        all.push(Setting { name, value, from, variable });
    }
    let mut text = match (settings.file(), &common.mock) {
        (Some(file), _) => format!("Settings from {}\n", file.display()),
        (None, Some(_)) => "No settings file: none is named for the mock node\n".to_owned(),
        (None, None) => format!("No settings file: there is no {FILE}\n"),
    };
    let mut mock = Value::Null;
    if let Some(file) = &common.mock {
        let by_variable = common.mock_by_variable;
        let by = if by_variable { MOCK } else { "--mock" };
        text += &match file {
            Some(state) => format!("Mock node {}, named by {by}\n", state.display()),
            None => format!("Temporary mock node, because of {by}\n"),
        };
        // Without a file, the mock node exists only until the command ends.
        mock = json!({"file": file, "by_variable": by_variable});
    }
    let json = Shown { file: settings.file(), mock, settings: all };
    Ok(Report::new(text + &table.render(0), &json))
}
