//! The environment of a job or a step, for a shell.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Report;

#[derive(Serialize)]
struct Environment {
    environment: BTreeMap<&'static str, String>,
    /// Variables that must not be set for the job.
    clear: Vec<&'static str>,
}

/// Sets variables, and removes the others of those that such an environment may have.
pub(crate) fn report(vars: Vec<(&'static str, String)>, all: &[&'static str]) -> Report {
    let is_set = |name: &&str| vars.iter().any(|(set, _)| set == name);
    let clear: Vec<_> = all.iter().copied().filter(|name| !is_set(name)).collect();
    let set = vars
        .iter()
        .map(|(name, value)| format!("export {name}={}\n", word(value)));
    let unset = clear.iter().map(|name| format!("unset {name}\n"));
    let text: String = set.chain(unset).collect();
    let environment = vars.into_iter().collect();
    Report::new(text, &Environment { environment, clear })
}

/// A word that a shell takes as it is.
fn word(value: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, ',' | '.' | '_');
    if !value.is_empty() && value.chars().all(plain) {
        return value.to_owned();
    }
    format!("'{}'", value.replace('\'', r"'\''"))
}
