//! The differences between a recording and what a device did, by path.

use std::fmt;

use serde_json::Value;

use crate::encode::number;

/// Internal counters of the driver, which are not compared because the mock does not model them.
const NOT_COMPARED_IN_STATE: [&str; 1] = ["state.dev_refcount"];

/// A field that differs from the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Place of the difference.
    pub path: String,
    /// The recorded value.
    pub expected: String,
    /// The actual value.
    pub got: String,
}

impl Difference {
    pub(crate) fn new(path: &str, expected: impl ToString, got: impl ToString) -> Self {
        Self { path: path.to_owned(), expected: expected.to_string(), got: got.to_string() }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, expected, got } = self;
        write!(f, "{path}: expected {expected}, got {got}")
    }
}

/// Compares a response. Fields that the recording leaves out are not compared.
pub fn response(expected: &Value, got: &Value, unchecked: &[String]) -> Vec<Difference> {
    let skip = |path: &str| {
        let path = path.strip_prefix("resp.").unwrap_or(path);
        unchecked.iter().any(|name| name == path)
    };
    let mut walk = Walk { exact: false, skip: &skip, found: Vec::new() };
    walk.compare(expected, got, "resp");
    walk.found
}

/// Compares a dump of the accounting, which may have neither missing nor additional fields.
pub fn state(expected: &Value, got: &Value) -> Vec<Difference> {
    let mut walk = Walk {
        exact: true,
        skip: &|path| NOT_COMPARED_IN_STATE.contains(&path),
        found: Vec::new(),
    };
    walk.compare(expected, got, "state");
    walk.found
}

struct Walk<'a> {
    /// Whatever was not expected is a difference.
    exact: bool,
    skip: &'a dyn Fn(&str) -> bool,
    found: Vec<Difference>,
}

impl Walk<'_> {
    fn compare(&mut self, expected: &Value, got: &Value, path: &str) {
        if (self.skip)(path) {
            return;
        }
        let exact = self.exact;
        match (expected, got) {
            (Value::Object(expected), Value::Object(got)) => {
                for (name, value) in expected {
                    let path = format!("{path}.{name}");
                    match got.get(name) {
                        Some(other) => self.compare(value, other, &path),
                        None => self.differ(&path, value, "no such field"),
                    }
                }
                let new = got.iter().filter(|(name, _)| !expected.contains_key(*name));
                for (name, value) in new.take_while(|_| exact) {
                    self.differ(&format!("{path}.{name}"), "no such field", value);
                }
            }
            (Value::Array(expected), Value::Array(got)) if expected.len() == got.len() => {
                for (index, (expected, got)) in expected.iter().zip(got).enumerate() {
                    self.compare(expected, got, &format!("{path}[{index}]"));
                }
            }
            (Value::Array(a), Value::Array(b)) => {
                let (a, b) = (a.len(), b.len());
                let expected = format!("{a} entries: {expected}");
                self.differ(path, expected, format!("{b} entries: {got}"));
            }
            _ if expected == got => {}
            // A Boolean is one byte; a member type has a name instead of a number.
            _ if number(expected).is_some() && number(expected) == number(got) => {}
            _ => self.differ(path, expected, got),
        }
    }

    fn differ(&mut self, path: &str, expected: impl ToString, got: impl ToString) {
        if !(self.skip)(path) {
            self.found.push(Difference::new(path, expected, got));
        }
    }
}
