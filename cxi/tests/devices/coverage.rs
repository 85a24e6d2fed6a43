//! The table of libcxi's functions against the aliases in the documentation.

use std::fs;
use std::path::Path;

fn sources(directory: &Path, text: &mut String) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, text);
        } else {
            text.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}

fn aliases(text: &str) -> Vec<&str> {
    // In attributes, and where a macro makes the attribute.
    let mut names: Vec<_> = text
        .match_indices("\"cxil_")
        .filter_map(|(at, _)| text.get(at + 1..)?.split('"').next())
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[test]
fn every_alias_is_in_the_table_and_every_method_of_the_table_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    // Not part of the package.
    let Ok(table) = fs::read_to_string(root.join("../docs/COVERAGE.md")) else {
        return;
    };
    let mut text = String::new();
    sources(&root.join("src"), &mut text);
    let names = aliases(&text);
    assert!(names.len() > 50, "{names:?}");
    for name in names {
        assert!(table.contains(&format!("`{name}`")), "{name} is missing");
    }
    let here = table.split('`').skip(1).step_by(2);
    for method in here.filter_map(|code| code.split_once("::")) {
        let (_, name) = method;
        let there = [
            "fn ",
            "pub ",
            "closable!(\n    ",
            "use host::{FoundDevice, Host, ",
        ]
        .iter()
        .any(|before| text.contains(&format!("{before}{name}")))
            || ["execute", "execute_unchecked"].contains(&name);
        assert!(there, "{name} does not exist");
    }
}
