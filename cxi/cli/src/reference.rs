//! The page docs/REFERENCE.md, from the tables of this program. With `CXI_WRITE_REFERENCE=1`, the test
//! writes it anew.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use cxi::Resource;
use serde_json::{Map, Value, json};

use crate::exit::{EXIT_CODES, Exit};
use crate::generate::default_of;
use crate::metrics::COUNTERS;
use crate::settings::ALL;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/REFERENCE.md");
const INTRODUCTION: &str = "\
# Reference

A test writes this page from the tables of the program. [The command `cxi`](CLI.md) explains what
they are about.

";
const KINDS: [Exit; 11] = [
    Exit::Failed,
    Exit::BadInput,
    Exit::NoDevice,
    Exit::Busy,
    Exit::NotFound,
    Exit::NotPermitted,
    Exit::NotEnough,
    Exit::NothingToDo,
    Exit::Findings,
    Exit::OtherUser,
    Exit::ProgramNotStarted,
];

#[test]
fn the_reference_is_what_the_program_has() {
    let page = [INTRODUCTION, &settings(), &exit_codes(), &results(), &counters()].concat();
    if std::env::var_os("CXI_WRITE_REFERENCE").is_some() {
        fs::write(PAGE, &page).unwrap();
    }
    let written = fs::read_to_string(Path::new(PAGE)).unwrap_or_default();
    assert!(written == page, "CXI_WRITE_REFERENCE=1 cargo test --package cxi-cli --lib reference");
}

fn row<const N: usize>(cells: [&str; N]) -> String {
    // A bar ends a cell.
    format!("| {} |\n", cells.map(|cell| cell.replace('|', "\\|")).join(" | "))
}

fn head<const N: usize>(cells: [&str; N]) -> String {
    row(cells) + &row([const { "---" }; N])
}

fn code(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("`{text}`") }
}

fn settings() -> String {
    let mut text = "## Settings\n\n".to_owned();
    text += &head(["setting", "variable", "default", ""]);
    for key in ALL {
        let (name, variable) = (code(key.name()), code(key.variable()));
        text += &row([&name, &variable, &code(&default_of(*key)), key.about().trim()]);
    }
    text + "\n"
}

/// The meanings are those that help prints.
fn exit_codes() -> String {
    let mut text = "## Exit codes\n\n".to_owned();
    text += &head(["code", "`kind` in JSON", "meaning"]);
    let mut last = String::new();
    for line in EXIT_CODES.lines().skip(1) {
        match line.trim_start().split_once(' ') {
            Some((number, meaning)) if number.parse::<u8>().is_ok() => {
                let is_it = |kind: &&Exit| (**kind as u8).to_string() == number;
                let kind = KINDS.iter().find(is_it).map(|kind| json!(kind));
                let kind = kind.as_ref().and_then(Value::as_str).unwrap_or_default();
                text += &row([number, &code(kind), meaning.trim()]);
            }
            _ => last = format!("\n{line}\n"),
        }
    }
    text + &last + "\n"
}

fn counters() -> String {
    let names: String = COUNTERS.iter().map(|name| format!("- `{name}`\n")).collect();
    format!(
        "## Counters in metrics\n\nThe counters of the hardware that `cxi_nic_telemetry_total` has, where \
         the driver has them:\n\n{names}"
    )
}

fn results() -> String {
    let schema: Value = serde_json::from_str(include_str!("../schema.json")).unwrap();
    let definitions = schema["$defs"].as_object().unwrap();
    let commands: BTreeSet<String> =
        schema["anyOf"].as_array().unwrap().iter().map(referred).collect();
    let mut text = "## Results in JSON\n\n".to_owned();
    text += "`[]` is each element of a list, NAME each key of an object that has names as keys, and RESOURCE each of the \
             [resources](#resource).\n\n";
    let (results, shapes): (Vec<_>, Vec<_>) =
        definitions.iter().partition(|(name, _)| commands.contains(*name));
    for (name, definition) in results {
        text += &section(&format!("`cxi {name}`"), definition, definitions);
    }
    text += "## Shapes in JSON\n\nWhat the tables above refer to.\n\n";
    for (name, definition) in shapes {
        text += &section(name, definition, definitions);
    }
    text
}

fn section(heading: &str, definition: &Value, definitions: &Map<String, Value>) -> String {
    let mut rows = Vec::new();
    keys("", definition, &mut rows);
    let mut text = format!("### {heading}\n\n");
    if let Some(about) = definition["description"].as_str() {
        text += &format!("{about}.\n\n");
    }
    if rows.is_empty() {
        text += &format!("{}\n\n", kind(definition));
        return text;
    }
    text += &head(["key", "value", ""]);
    let mut seen = BTreeSet::new();
    for Key { path, value, about } in rows {
        if seen.insert((path.clone(), value.clone())) {
            text += &row([&code(&path), &value, &about]);
        }
    }
    for name in links(definition) {
        assert!(definitions.contains_key(&name), "{heading}: there is no definition {name}");
    }
    text + "\n"
}

struct Key {
    path: String,
    value: String,
    about: String,
}

/// The keys below a place.
fn keys(at: &str, schema: &Value, rows: &mut Vec<Key>) {
    for alternative in schema["anyOf"].as_array().into_iter().flatten() {
        if at.is_empty() && alternative.get("$ref").is_some() {
            rows.push(Key {
                path: String::new(),
                value: kind(alternative),
                about: "all keys of it".to_owned(),
            });
        }
        keys(at, alternative, rows);
    }
    if let Some(items) = schema.get("items") {
        keys(&format!("{at}[]"), items, rows);
    }
    if let Some(each) = schema.get("additionalProperties") {
        keys(&format!("{at}.NAME"), each, rows);
    }
    let required = schema["required"].as_array();
    let mut properties: Vec<(&str, &Value)> =
        schema["properties"].as_object().into_iter().flatten().map(|(k, v)| (&**k, v)).collect();
    if properties.len() == Resource::ALL.len()
        && Resource::ALL.iter().all(|resource| schema["properties"].get(resource.name()).is_some())
    {
        properties = vec![("RESOURCE", properties[0].1)];
    }
    for (name, property) in properties {
        let path = if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
        let is_there =
            name == "RESOURCE" || required.is_some_and(|names| names.iter().any(|it| it == name));
        let mut value = kind(property);
        if !is_there {
            value += ", may be absent";
        }
        let about = property["description"].as_str().unwrap_or_default().to_owned();
        rows.push(Key { path: path.clone(), value, about });
        keys(&path, property, rows);
    }
}

/// The kind of a value, in a few words.
fn kind(schema: &Value) -> String {
    if schema.get("$ref").is_some() {
        let name = referred(schema);
        let anchor = if name.contains(' ') { format!("cxi-{name}") } else { name.clone() };
        let key = schema["$ref"].as_str().and_then(|path| path.split_once("/properties/"));
        let of = key.map(|(_, key)| format!("`{key}` of ")).unwrap_or_default();
        return format!("{of}[{name}](#{})", anchor.replace(' ', "-"));
    }
    if let Some(alternatives) = schema["anyOf"].as_array() {
        return alternatives.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    if let Some(value) = schema["const"].as_str() {
        return code(value);
    }
    if let Some(values) = schema["enum"].as_array() {
        let values = values.iter().map(|value| value.as_str().map_or("null".to_owned(), code));
        return values.collect::<Vec<_>>().join(", ");
    }
    if let Some(items) = schema.get("items") {
        return format!("list of {}", kind(items));
    }
    match &schema["type"] {
        Value::String(name) => name.clone(),
        Value::Array(names) => {
            names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ")
        }
        _ => "any".to_owned(),
    }
}

/// The name of the definition that a reference leads to or into, such as `service list`.
fn referred(schema: &Value) -> String {
    let path = schema["$ref"].as_str().unwrap_or_default().trim_start_matches("#/$defs/");
    path.split('/').next().unwrap_or_default().replace("%20", " ")
}

/// All names that a definition refers to.
fn links(schema: &Value) -> Vec<String> {
    match schema {
        Value::Object(keys) if keys.contains_key("$ref") => vec![referred(schema)],
        Value::Object(keys) => keys.values().flat_map(links).collect(),
        Value::Array(values) => values.iter().flat_map(links).collect(),
        _ => Vec::new(),
    }
}
