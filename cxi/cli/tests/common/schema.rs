//! The schema of results in JSON, which packages ship: every result that a test gets is checked by it.

use std::sync::OnceLock;

use serde_json::{Map, Value};

use super::Said;

/// The file that packages ship.
pub(crate) const SCHEMA: &str = include_str!("../../schema.json");
/// Definition of a message on standard error, in the schema.
const MESSAGE: &str = "message";

fn definitions() -> &'static Map<String, Value> {
    static SCHEMA_OF_ALL: OnceLock<Value> = OnceLock::new();
    let schema = SCHEMA_OF_ALL.get_or_init(|| serde_json::from_str(SCHEMA).unwrap());
    schema["$defs"].as_object().unwrap()
}

/// The command of a line, by the names that the schema has: `service list`.
pub(crate) fn command(arguments: &[&str]) -> Option<String> {
    let words = arguments.iter().take_while(|word| **word != "--");
    let words: Vec<&str> = words.filter(|word| !word.starts_with('-')).copied().collect();
    let pairs = words.windows(2).map(|pair| pair.join(" "));
    let mut named = pairs.chain(words.iter().map(|word| (*word).to_owned()));
    named.find(|name| definitions().contains_key(name))
}

/// Checks a result, and messages, if the line asks for JSON.
#[track_caller]
pub(crate) fn check(arguments: &[&str], said: &Said) {
    let own: Vec<&str> = arguments.iter().take_while(|word| **word != "--").copied().collect();
    let asks = |word: &&str| matches!(*word, "--json" | "--format=json");
    if !own.iter().any(asks) && !own.windows(2).any(|two| two == ["-o", "json"]) {
        return;
    }
    for line in said.err.lines().filter(|line| line.starts_with('{')) {
        validate(MESSAGE, line);
    }
    let is_watched = own.iter().any(|word| word.starts_with("--watch"));
    // A program that job run starts prints what it likes.
    if said.out.is_empty() || is_watched || own.windows(2).any(|two| two == ["job", "run"]) {
        return;
    }
    let Some(command) = command(&own) else { panic!("no schema for {own:?}: {}", said.out) };
    validate(&command, &said.out);
}

#[track_caller]
fn validate(name: &str, text: &str) {
    let value: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    if let Err(what) = conforms(&value, &definitions()[name]) {
        panic!("{name}: {what} in {text}");
    }
}

/// Checks that a value is as a schema says: `Err` names the place where it is not. The file allows keys that
/// it does not list, because some may be added; here, each key has to be listed. A keyword that this does
/// not know is an error.
fn conforms(value: &Value, schema: &Value) -> Result<(), String> {
    let schema = schema.as_object().ok_or("no schema")?;
    for (keyword, asked) in schema {
        let number = || value.as_i64().unwrap_or(i64::MIN);
        let is_right = match keyword.as_str() {
            "description" | "required" => true,
            "$ref" => {
                let name = asked.as_str().unwrap().trim_start_matches("#/$defs/");
                return conforms(value, &definitions()[&name.replace("%20", " ")]);
            }
            "anyOf" => {
                let each = asked.as_array().unwrap().iter();
                let failures: Vec<_> = each.filter_map(|one| conforms(value, one).err()).collect();
                if failures.len() == asked.as_array().unwrap().len() {
                    return Err(format!("none of: {}", failures.join("; or ")));
                }
                true
            }
            "type" => match asked {
                Value::Array(kinds) => kinds.iter().any(|kind| is_of(value, kind)),
                kind => is_of(value, kind),
            },
            "const" => value == asked,
            "enum" => asked.as_array().unwrap().contains(value),
            "minimum" => value.is_null() || number() >= asked.as_i64().unwrap(),
            "maximum" => value.is_null() || number() <= asked.as_i64().unwrap(),
            "maxItems" => {
                value.as_array().is_none_or(|it| it.len() as u64 <= asked.as_u64().unwrap())
            }
            "pattern" => {
                assert_eq!(asked, "^cxi[0-9]+$");
                let number = value.as_str().and_then(|name| name.strip_prefix("cxi"));
                number.is_some_and(|number| number.parse::<u32>().is_ok())
            }
            "items" => {
                for (place, item) in value.as_array().into_iter().flatten().enumerate() {
                    conforms(item, asked).map_err(|what| format!("[{place}] {what}"))?;
                }
                true
            }
            "properties" => {
                let Some(members) = value.as_object() else { continue };
                let required = schema["required"].as_array().unwrap().iter();
                let absent =
                    required.filter_map(Value::as_str).find(|key| !members.contains_key(*key));
                if let Some(key) = absent {
                    return Err(format!("{key} is absent"));
                }
                for (key, member) in members {
                    let Some(of_key) = asked.get(key) else {
                        if schema.contains_key("additionalProperties") {
                            continue;
                        }
                        return Err(format!("{key} is not listed"));
                    };
                    conforms(member, of_key).map_err(|what| format!("{key}: {what}"))?;
                }
                true
            }
            "additionalProperties" => {
                let members = value.as_object().into_iter().flat_map(Map::values);
                let mut of_kind = members.filter(|_| asked.is_object());
                of_kind.all(|member| conforms(member, asked).is_ok())
            }
            other => return Err(format!("unknown keyword {other}")),
        };
        if !is_right {
            return Err(format!("{value} is not as {keyword} {asked}"));
        }
    }
    Ok(())
}

fn is_of(value: &Value, kind: &Value) -> bool {
    match kind.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        other => panic!("unknown type {other}"),
    }
}
