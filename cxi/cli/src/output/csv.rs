//! Results as comma-separated values.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// The list to print, for results that contain several lists: the one that the command's table shows.
const SHOWN: [&str; 4] = ["services", "users", "orphans", "jobs"];

/// A value of JSON, with the fields of objects in the order in which they were written.
pub(super) enum Ordered {
    Object(Vec<(String, Self)>),
    List(Vec<Self>),
    Plain(Value),
}

impl<'de> Deserialize<'de> for Ordered {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyValue;
        impl<'de> Visitor<'de> for AnyValue {
            type Value = Ordered;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value of JSON")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Ordered, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Ordered::Object(fields))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Ordered, A::Error> {
                let mut values = Vec::new();
                while let Some(value) = list.next_element()? {
                    values.push(value);
                }
                Ok(Ordered::List(values))
            }

            fn visit_bool<E>(self, value: bool) -> Result<Ordered, E> {
                Ok(Ordered::Plain(value.into()))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Ordered, E> {
                Ok(Ordered::Plain(value.into()))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Ordered, E> {
                Ok(Ordered::Plain(value.into()))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Ordered, E> {
                Ok(Ordered::Plain(value.into()))
            }

            fn visit_str<E>(self, value: &str) -> Result<Ordered, E> {
                Ok(Ordered::Plain(value.into()))
            }

            fn visit_unit<E>(self) -> Result<Ordered, E> {
                Ok(Ordered::Plain(Value::Null))
            }
        }
        deserializer.deserialize_any(AnyValue)
    }
}

/// A line with the names of the fields, then a line for each element of the result's list. Names of
/// nested fields are joined by dots. A result without a list is one line; an empty list prints
/// nothing.
pub(super) fn rows(result: &Ordered) -> String {
    let members: &[(String, Ordered)] = match result {
        Ordered::Object(fields) => fields,
        _ => &[],
    };
    let lists = members.iter().filter_map(|(name, value)| {
        let Ordered::List(list) = value else { return None };
        let is_list = list.iter().all(|entry| matches!(entry, Ordered::Object(_)));
        is_list.then_some(((!SHOWN.contains(&name.as_str()), list.is_empty()), list))
    });
    let rows: Vec<Vec<(String, String)>> = match lists.min_by_key(|(order, _)| *order) {
        Some((_, list)) => list.iter().map(fields).collect(),
        None => vec![fields(result)],
    };
    let names = columns(&rows);
    let value = |row: &[(String, String)], wanted: &str| {
        let field = row.iter().find(|(name, _)| name == wanted);
        field.map_or_else(String::new, |(_, value)| quoted(value))
    };
    let heading = names.iter().map(|name| quoted(name)).collect();
    let rows = rows.iter().map(|row| names.iter().map(|name| value(row, name)).collect());
    let lines = std::iter::once(heading).chain(rows);
    lines
        // An empty list has no field names.
        .filter(|_| !names.is_empty())
        .map(|cells: Vec<String>| cells.join(",") + "\n")
        .collect()
}

/// The names of all rows' fields, each before the one behind it in its row. A field that some row has
/// nested fields of, and no row a value, is not one of them.
fn columns(rows: &[Vec<(String, String)>]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for row in rows {
        let mut at = names.len();
        for (name, _) in row.iter().rev() {
            match names.iter().position(|known| known == name) {
                Some(known) => at = known,
                None => names.insert(at, name),
            }
        }
    }
    let has_value =
        |name: &str| rows.iter().flatten().any(|(other, value)| other == name && !value.is_empty());
    let is_nested = |name: &str| {
        let below =
            |other: &String| other.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
        rows.iter().flatten().any(|(other, _)| below(other))
    };
    names.retain(|name| has_value(name) || !is_nested(name));
    names
}

fn fields(value: &Ordered) -> Vec<(String, String)> {
    let Ordered::Object(members) = value else { return vec![("value".to_owned(), cell(value))] };
    let fields = members.iter().flat_map(|(name, value)| match value {
        Ordered::Object(_) => fields(value)
            .into_iter()
            .map(|(below, value)| (format!("{name}.{below}"), value))
            .collect(),
        value => vec![(name.clone(), cell(value))],
    });
    fields.collect()
}

/// A list in one cell: its entries with commas between, and the fields of each with colons.
fn cell(value: &Ordered) -> String {
    let joined = |cells: Vec<String>, separator: &str| cells.join(separator);
    match value {
        Ordered::Plain(Value::Null) => String::new(),
        Ordered::Plain(Value::String(text)) => text.clone(),
        Ordered::Plain(other) => other.to_string(),
        Ordered::List(list) => joined(list.iter().map(cell).collect(), ","),
        Ordered::Object(fields) => {
            joined(fields.iter().map(|(_, value)| cell(value)).collect(), ":")
        }
    }
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lists_become_rows_and_everything_else_one() {
        for (result, expected) in [
            (
                json!({"all": 2, "list": [{"a": {"x": 1, "y": [1, 2]}}, {"a": {"x": null}, "b": "say \"hi\""}]}),
                "a.x,a.y,b\n1,\"1,2\",\n,,\"say \"\"hi\"\"\"\n",
            ),
            (json!({"job": "7", "vnis": [1024]}), "job,vnis\n7,1024\n"),
            (json!({"list": []}), ""),
            (json!({"empty": [], "list": [{"a": 1}]}), "a\n1\n"),
            (json!({"kept": [{"a": 1}], "orphans": []}), ""),
            (json!({"nics": [{"a": 1}], "services": [{"b": 2}]}), "b\n2\n"),
            (json!(null), "value\n\n"),
        ] {
            let ordered = serde_json::from_value(result.clone()).unwrap();
            assert_eq!(rows(&ordered), expected, "{result}");
        }
    }

    #[test]
    fn columns_have_the_order_of_the_fields() {
        let text =
            r#"{"list": [{"z": 1, "a": [{"type": "uid", "id": 7}], "m": {"y": 2, "b": 3}}]}"#;
        let ordered = serde_json::from_str(text).unwrap();
        assert_eq!(rows(&ordered), "z,a,m.y,m.b\n1,uid:7,2,3\n");
        // What only a later row has stands where that row has it.
        let text =
            r#"{"list": [{"z": 1, "r": null, "k": 2}, {"z": 3, "r": {"f": 4, "e": 5}, "k": 6}]}"#;
        let ordered = serde_json::from_str(text).unwrap();
        assert_eq!(rows(&ordered), "z,r.f,r.e,k\n1,,,2\n3,4,5,6\n");
    }
}
