//! Results as comma-separated values.

use serde_json::Value;

/// The list to print, for results that contain several lists: the one that the command's table shows.
const SHOWN: [&str; 3] = ["services", "users", "orphans"];

/// A line with the names of the fields, then a line for each element of the result's list. Names of
/// nested fields are joined by dots. A result without a list is one line; an empty list prints
/// nothing.
pub(super) fn rows(result: &Value) -> String {
    let lists = result.as_object().into_iter().flatten().filter_map(|(name, value)| {
        let list = value.as_array()?;
        let is_list = list.iter().all(Value::is_object);
        is_list.then_some(((!SHOWN.contains(&name.as_str()), list.is_empty()), value))
    });
    let list = lists.min_by_key(|(order, _)| *order).map_or(result, |(_, list)| list);
    let rows: Vec<Vec<(String, String)>> = match list {
        Value::Array(rows) => rows.iter().map(fields).collect(),
        one => vec![fields(one)],
    };
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in rows.iter().flatten() {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
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

fn fields(value: &Value) -> Vec<(String, String)> {
    let Value::Object(members) = value else { return vec![("value".to_owned(), cell(value))] };
    let fields = members.iter().flat_map(|(name, value)| match value {
        Value::Object(_) => fields(value)
            .into_iter()
            .map(|(below, value)| (format!("{name}.{below}"), value))
            .collect(),
        value => vec![(name.clone(), cell(value))],
    });
    fields.collect()
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(list) if !list.iter().any(Value::is_object) => {
            list.iter().map(cell).collect::<Vec<_>>().join(",")
        }
        other => other.to_string(),
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
            (json!([{"type": "uid"}]), "type\nuid\n"),
            (json!(null), "value\n\n"),
        ] {
            assert_eq!(rows(&result), expected, "{result}");
        }
    }
}
