//! The settings file: TOML, with each setting at most once and nothing else.

use std::fs::File;
use std::io;
use std::path::Path;

use cxi::kernel_file::read_bounded;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{InFile, Settings, SettingsError};

/// Far more than a file with every setting has.
const LONGEST: u64 = 1 << 20;

pub(super) fn read(path: &Path) -> Result<Settings, SettingsError> {
    // Which may be a pipe, such as one that a shell makes.
    let bytes = File::open(path).and_then(|file| read_bounded(file, LONGEST));
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other));
    let text = text.map_err(|source| SettingsError::Unreadable {
        path: path.to_owned(),
        source,
    })?;
    parse(path, &text)
}

fn parse(path: &Path, text: &str) -> Result<Settings, SettingsError> {
    let wrong = |start: usize, what: String| SettingsError::Syntax {
        path: path.to_owned(),
        line: line(text, start),
        what,
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
        let expected = "expected a text, a number, true or false, or a list of these";
        let value = plain(value).ok_or_else(|| wrong(start, format!("{name}: {expected}")))?;
        let line = line(text, start);
        let entry = InFile { text: value, line };
        if let Some(before) = settings.in_file.insert(name.clone(), entry) {
            let what = format!("{name} is also set on line {}", before.line);
            return Err(wrong(start, what));
        }
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
