//! The settings file: TOML, with each setting at most once and nothing else.

use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::keys::KEYS;
use super::{InFile, Settings, Source};
use crate::exit::Failure;
use crate::input;

const LONGEST: u64 = 1 << 20;

pub(super) fn read(path: &Path) -> Result<Settings, Failure> {
    let text = input::read(path, "settings", LONGEST)?.text;
    parse(path, &text)
}

fn parse(path: &Path, text: &str) -> Result<Settings, Failure> {
    let wrong = |start: usize, what: String| {
        Failure::bad_input(format!(
            "{}: line {}: {what}",
            path.display(),
            line(text, start)
        ))
    };
    let table = DeTable::parse(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        wrong(start, error.message().to_owned())
    })?;
    let mut found = Vec::new();
    flatten("", table.get_ref(), &mut found);
    let mut settings = Settings {
        file: Some(path.to_owned()),
        ..Settings::default()
    };
    for (name, start, value) in found {
        let Some(key) = KEYS.iter().find(|key| key.name() == name) else {
            let names: Vec<_> = KEYS.iter().map(|key| key.name()).collect();
            let failure = wrong(start, format!("there is no setting {name}"));
            return Err(failure.hint(format!("Expected one of {}.", names.join(", "))));
        };
        let line = line(text, start);
        let value = plain(value).ok_or_else(|| {
            wrong(
                start,
                format!("{name}: expected a text, a number, true or false, or a list of these"),
            )
        })?;
        key.check(&value)
            .map_err(|error| settings.wrong(*key, Source::Line(line), &error))?;
        settings
            .in_file
            .insert(key.name(), InFile { text: value, line });
    }
    Ok(settings)
}

fn line(text: &str, start: usize) -> usize {
    let before = text.as_bytes().iter().take(start);
    before.filter(|byte| **byte == b'\n').count() + 1
}

/// Every value with its key, prefixed by the names of its tables, in the order of the keys.
fn flatten<'t>(
    prefix: &str,
    table: &'t DeTable<'_>,
    found: &mut Vec<(String, usize, &'t DeValue<'t>)>,
) {
    for (key, value) in table {
        let name = format!("{prefix}{}", key.get_ref());
        match value.get_ref() {
            DeValue::Table(inner) => flatten(&format!("{name}."), inner, found),
            value => found.push((name, key.span().start, value)),
        }
    }
}

/// A value in the form of the command line.
fn plain(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(number.as_str().to_owned()),
        DeValue::Boolean(yes) => Some(yes.to_string()),
        DeValue::Array(values) => {
            let values = values.iter().map(Spanned::get_ref);
            let values: Option<Vec<_>> = values.map(plain).collect();
            values.map(|values| values.join(","))
        }
        _ => None,
    }
}
