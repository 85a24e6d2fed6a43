//! One run of the recorded program: what it printed and what the kernel saw.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

/// A case, by its name.
pub(crate) type Cases = BTreeMap<String, Case>;

/// Result of one call.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Case {
    pub(crate) ret: String,
    pub(crate) out: Vec<String>,
    pub(crate) events: Vec<Value>,
    pub(crate) left_open: Vec<Value>,
}

/// Recorded cases of one group. A function that the recorded library lacks has none.
pub(crate) fn vectors(text: &str, group: &str) -> Cases {
    let vectors: Value = serde_json::from_str(text).expect("vectors");
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    list(&vectors["cases"])
        .into_iter()
        .filter(|case| case["group"] == group && case.get("skip").is_none())
        .map(|case| {
            let name = case["name"].as_str().expect("a name").to_owned();
            let out = list(&case["out"]);
            let recorded = Case {
                ret: case["ret"].as_str().unwrap_or_default().to_owned(),
                out: out.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
                events: list(&case["events"]),
                left_open: list(&case["left_open"]),
            };
            (name, recorded)
        })
        .collect()
}

/// Cases of a run: what the program printed, with what the log says of the same cases.
pub(crate) fn run(printed: &Path, log: &Path) -> Cases {
    let mut cases = Cases::new();
    let text = fs::read_to_string(printed).expect("what the program printed");
    let mut name = String::new();
    for line in text.lines() {
        let (key, value) = line.split_once(": ").unwrap_or((line, ""));
        let case = cases.entry(name.clone()).or_default();
        match key {
            "ret" => value.clone_into(&mut case.ret),
            "child" => case.out.push(line.to_owned()),
            "out" => case.out.push(value.to_owned()),
            _ => {
                if let Some(next) = line.strip_prefix("== ") {
                    next.clone_into(&mut name);
                    let twice = cases.insert(name.clone(), Case::default());
                    assert_eq!(twice, None, "{name} is there twice");
                }
            }
        }
    }
    let log = fs::read_to_string(log).expect("a log");
    for line in log.lines() {
        let logged: Value = serde_json::from_str(line).expect("an object");
        let name = logged["name"].as_str().expect("a name");
        let case = cases.entry(name.to_owned()).or_default();
        let list = |key: &str| logged[key].as_array().cloned().unwrap_or_default();
        case.events = list("events");
        case.left_open = list("left_open");
    }
    cases
}
