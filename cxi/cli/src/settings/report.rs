//! `cxi config check`.

use std::path::Path;

use cxi_job::settings::{FILE, Settings, Source};
use serde::Serialize;

use super::ConfigCommand;
use super::keys::KEYS;
use crate::exit::Failure;
use crate::output::Report;
use crate::output::table::Columns;

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
    super::no_earlier_file(settings)?;
    let mut json = Checked {
        file: settings.file(),
        settings: Vec::new(),
    };
    let mut table = Columns::new(&["SETTING", "VALUE", "FROM"]);
    for key in KEYS.iter().copied() {
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
        Some(file) => format!("Settings of {}\n", file.display()),
        None => format!("No file: there is no {FILE}\n"),
    };
    Ok(Report::new(file + &table.render(0), &json))
}
