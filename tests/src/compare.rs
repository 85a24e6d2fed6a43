//! What differs between what was recorded and what a device did, by path.

use std::fmt;

use serde_json::Value;

use crate::encode::number;

/// Internal counters of the driver that a model has no notion of: not compared.
const NOT_COMPARED_IN_STATE: [&str; 1] = ["state.dev_refcount"];

/// One field that is not as recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Where.
    pub path: String,
    /// As recorded.
    pub expected: String,
    /// As answered.
    pub got: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            path,
            expected,
            got,
        } = self;
        write!(f, "{path}: expected {expected}, got {got}")
    }
}

/// Compares a response. A recording may leave fields out: those are not looked at.
pub fn response(expected: &Value, got: &Value, unchecked: &[String]) -> Vec<Difference> {
    let mut found = Vec::new();
    let skip = |path: &str| {
        let path = path.strip_prefix("resp.").unwrap_or(path);
        unchecked.iter().any(|name| name == path)
    };
    walk(expected, got, "resp", false, &skip, &mut found);
    found
}

/// Compares a dump of the accounting: nothing may be left out or added.
pub fn state(expected: &Value, got: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    let skip = |path: &str| NOT_COMPARED_IN_STATE.contains(&path);
    walk(expected, got, "state", true, &skip, &mut found);
    found
}

fn walk(
    expected: &Value,
    got: &Value,
    path: &str,
    exact: bool,
    skip: &dyn Fn(&str) -> bool,
    found: &mut Vec<Difference>,
) {
    if skip(path) {
        return;
    }
    let mut differ = |path: &str, expected: String, got: String| {
        found.push(Difference {
            path: path.to_owned(),
            expected,
            got,
        });
    };
    match (expected, got) {
        (Value::Object(expected), Value::Object(got)) => {
            for (name, value) in expected {
                let path = format!("{path}.{name}");
                match got.get(name) {
                    Some(other) => walk(value, other, &path, exact, skip, found),
                    None if skip(&path) => {}
                    None => found.push(Difference {
                        path,
                        expected: value.to_string(),
                        got: "no such field".to_owned(),
                    }),
                }
            }
            let added = got
                .iter()
                .filter(|(name, _)| exact && !expected.contains_key(*name));
            for (name, value) in added {
                let path = format!("{path}.{name}");
                if !skip(&path) {
                    found.push(Difference {
                        path,
                        expected: "no such field".to_owned(),
                        got: value.to_string(),
                    });
                }
            }
        }
        (Value::Array(expected), Value::Array(got)) => {
            if expected.len() != got.len() {
                differ(
                    path,
                    format!(
                        "{} entries: {}",
                        expected.len(),
                        Value::from(expected.clone())
                    ),
                    format!("{} entries: {}", got.len(), Value::from(got.clone())),
                );
                return;
            }
            for (index, (expected, got)) in expected.iter().zip(got).enumerate() {
                walk(
                    expected,
                    got,
                    &format!("{path}[{index}]"),
                    exact,
                    skip,
                    found,
                );
            }
        }
        _ if expected == got => {}
        // A truth value is one byte; a number of a member type has a name.
        _ if number(expected).is_some() && number(expected) == number(got) => {}
        _ => differ(path, expected.to_string(), got.to_string()),
    }
}
