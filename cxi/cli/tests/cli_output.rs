//! Forms of results and messages: tables that fit, CSV, YAML, colors, and quiet output.

mod common;

use std::io::{BufRead, BufReader};

use common::{MockNode, assert_contains, command, refusals};

/// A node with a service that a table has to show in full.
fn node() -> MockNode {
    let node = MockNode::new();
    node.cxi("service create --uid=root --vni=1024 --tc=best-effort --limit=txqs=1:2").done();
    node
}

fn list(node: &MockNode, options: &str, columns: &str) -> String {
    let mock = node.option();
    let mut command = command(&format!("{mock} service list {options}"));
    let output = command.env("COLUMNS", columns).output().unwrap();
    common::Said::from(output).done()
}

#[test]
fn a_narrow_terminal_gets_fewer_columns_and_is_told() {
    let node = node();
    let wide = list(&node, "-o wide", "40");
    assert_contains(&wide, "Limits\n");
    assert_eq!(wide, list(&node, "", ""), "without a terminal nothing is cut");
    for (columns, heading) in [
        ("70", "NICs    Service  State     Who       VNIs  Traffic classes  ..."),
        ("50", "NICs    Service  State     Who       VNIs  ..."),
        ("20", "NICs    Service  ..."),
        ("5", "NICs    Service  ..."),
    ] {
        let cut = list(&node, "", columns);
        assert_eq!(cut.lines().next().unwrap(), heading, "{columns}");
    }
}

/// Scripts get each line of an explanation as one line.
#[test]
fn a_narrow_terminal_gets_prose_in_more_lines() {
    let node = node();
    let mock = node.option();
    let create = "explain create --uid=7 --vni=1025 --limit=txqs=1024:1024";
    for subject in ["explain ENOSPC", create, "selftest", "devices -v"] {
        let lines = |columns: &str, form: &str| {
            let mut command = command(&format!("{mock} {subject} {form}"));
            let output = command.env("COLUMNS", columns).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            let widest = text.lines().map(|line| line.chars().count()).max();
            let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            (widest.unwrap(), words)
        };
        let (narrow, words) = lines("60", "");
        assert!(narrow <= 60, "{subject}: {narrow}");
        for (columns, form) in [("", ""), ("60", "-o wide")] {
            let (wide, same) = lines(columns, form);
            assert!(wide > 80, "{subject}: {wide}");
            assert!(same == words || subject.starts_with("devices"), "{same:?}");
        }
    }
}

#[test]
fn csv_has_the_rows_of_the_table() {
    let node = node();
    let users = node.cxi("top --once -o csv").done();
    assert!(users.starts_with("job,restricted_members,members,"), "{users}");
    assert_contains(&users, ",uid:0,");
    node.cxi("job prolog --job=2 --uid=root --vni=1027 --cores=1").done();
    let orphans = "job clean --none-live --dry-run -o csv";
    let orphans = node.cxi(orphans).done();
    assert!(orphans.starts_with("device,"), "{orphans}");
    assert_eq!(orphans.lines().count(), 3, "{orphans}");
    node.cxi("job prolog --job=1 --uid=root --vni=1028 --cores=1").done();
    let services = node.cxi("job epilog --job=1 -o csv").done();
    let row = services.lines().nth(1).unwrap();
    assert!(row.starts_with("cxi0,"), "{services}");
    assert_eq!(services.lines().count(), 3, "{services}");
}

#[test]
fn results_are_csv_and_yaml_on_request() {
    let node = node();
    let csv = list(&node, "-o csv", "40");
    let heading = csv.lines().next().unwrap();
    assert!(heading.starts_with("device,id,enable,"), "{heading}");
    let row = csv.lines().find(|line| line.contains("BEST_EFFORT")).unwrap();
    assert!(row.starts_with("cxi0,2,true,"), "{row}");
    assert_eq!(csv.lines().count(), 5);
    let yaml = list(&node, "--format=yaml", "");
    let json: serde_json::Value = serde_json::from_str(&list(&node, "-o json", "")).unwrap();
    assert_eq!(json, node.cxi("--json service list").json());
    let read: serde_json::Value = serde_saphyr::from_str(&yaml).unwrap();
    assert_eq!(read, json);
    // Errors are also JSON.
    let said = node.cxi("service show 9 -o json");
    assert!(said.err.starts_with("{\"error\":"), "{}", said.err);
}

const MISSING: &str = "service show 2 --yaml -o csv
  2: this command has no output as csv: its result is not a list: expected table
explain ENOSPC -o csv
  2: this command has no output as csv: its result is not a list: expected table, wide, json or yaml
job run --cores 1 -o yaml -- true
  2: this command has no output as yaml: expected table or json
vni configure 1024 -o csv
  2: this command has no output as csv: its result is not a list: expected table, wide, json or yaml";

#[test]
fn a_form_that_a_command_does_not_have_is_refused_before_it_does_anything() {
    let node = node();
    for (arguments, code, error) in refusals(MISSING) {
        node.cxi(arguments).refused(code, &error);
    }
    node.cxi("vni show").mentions(2, "Create one, for example: cxi vni configure");
}

#[test]
fn colors_and_warnings_are_as_chosen() {
    let node = node();
    let colored = node.cxi("service list --color=always").done();
    assert!(colored.starts_with("\u{1b}[1mNICs"), "{colored}");
    let row = |service: &str| colored.lines().find(|row| row.contains(service)).unwrap();
    assert!(row("disabled").starts_with("\u{1b}[2mcxi0-1"), "{colored}");
    assert!(row("enabled ").starts_with("cxi0-1"), "{colored}");
    let short = "service create --uid=0 --vni=1025 --limit=txqs=1000:1000";
    node.cxi(short).done();
    let devices = node.cxi("devices --color=always").done();
    assert_contains(&devices, "\u{1b}[33mTXQs");
    assert!(!devices.contains("[33mTGQs"), "{devices}");
    let audit = node.cxi("audit --vni-pool=1-7 --color=always");
    assert_contains(&audit.out, "\u{1b}[1m\u{1b}[33mwarning:\u{1b}[0m cxi0-1: ");
    assert!(!node.cxi("service list --color never").done().contains('\u{1b}'));
    let create = "service create --uid=7 --vni=1024";
    assert_contains(&node.cxi(create).err, "warning: ");
    assert_eq!(node.cxi(&format!("-q {create}")).err, "");
    let failed = node.cxi("-q service show 99").err;
    assert!(failed.starts_with("error: "), "{failed}");
}

#[test]
fn a_watched_list_is_printed_again_until_its_reader_goes() {
    let node = node();
    let mock = node.option();
    let mut watching = command(&format!("{mock} service list --watch=20ms"))
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    for _ in 0..3 {
        let heading = |line: &Result<String, _>| line.as_ref().unwrap().starts_with("NICs ");
        assert!(lines.any(|line| heading(&line)));
    }
    drop(lines);
    assert!(watching.wait().unwrap().success());
    node.cxi("service disable 2 --watch")
        .failed(2, "error: --watch repeats devices, service list, ");
    // A command that fails at first is not repeated.
    node.cxi("-d cxi9 devices --watch").failed(3, "error: cxi9: no such NIC");
}
