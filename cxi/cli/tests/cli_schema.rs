//! The schema of results: each command's result is as it says, in JSON and in YAML.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use common::{MockNode, Said, command, schema};
use cxi_test_kit::FabricManager;
use serde_json::Value;

/// Command lines in the order of a life: each result is checked by the schema.
const LINES: &str = "vni configure 1024-2047
vni reserve 17
vni show
vni list
vni release 17 --nodes n1
vni confirm 17 --node n1
vni reserve 18 --for-steps 4
vni cancel 18
vni reserve 19 --block 4
vni show 19
vni reconcile --node n1 --seen 1024-1040
vni show
vni lead
service create --uid=1000 --vni=900 --limit=txqs=1:2
service create --vni-range=512-527
service list
service list --vni 520
service show 2
service usage
service update 2 --lnis-per-rgid=2
service disable 2
service enable 2
explain busy 2
explain open 2
explain create --vni=900 --limit=txqs=1024:1024
explain service 2
service destroy 2
devices
devices -v
devices list
devices show cxi0
job plan --cores=4
job plan --unlimited
job prolog --job=7 --uid=1000 --vni=1024 --cores=4 --dry-run
job prolog --job=7 --uid=1000 --vni=1024 --cores=4
job env --job=7
job list
job show 7
explain job 7
top
metrics
audit
audit --preflight
audit --pool-vnis=1-7
job clean --dry-run
job clean --none-live
job epilog --job=7
job epilog --job=7
explain ENOSPC
explain
explain env
selftest
cdi
config check
completions bash
collectives preflight
fabric show DIR/check
integration install slurm --prefix DIR/slurm
integration status slurm --prefix DIR/slurm
man DIR";

/// Commands of a controller, with records, and at the fabric manager.
const ON_CONTROLLER: &str = "vni configure 1024-2047
job reserve 17 --uid=1000 --nodes=n[1-2]
job list --controller
job release 17
job confirm 17 --node=n1
job sweep -- echo
vni reconcile --records
audit
collectives reserve 17 --limit=2
collectives step-end 0 --job 17
collectives sweep --live=17
collectives release 17";

/// Runs a line in JSON, then in YAML.
fn run(node: &MockNode, line: &str, form: &str, more: &[(&str, &str)]) -> Said {
    let directory = node.directory().display().to_string();
    let line = line.replace("DIR", &directory);
    let (own, program) = line.split_once(" -- ").unwrap_or((&line, ""));
    let mock = node.option();
    let mut words: Vec<&str> = vec![&mock, "--format", form];
    words.extend(own.split_whitespace());
    if !program.is_empty() {
        words.extend(["--", program]);
    }
    let mut command = command(&words);
    command.envs(more.iter().copied());
    if line.starts_with("explain") {
        command.stdin(std::process::Stdio::null());
    }
    let said = Said::from(command.output().unwrap());
    if form == "json" {
        let words: Vec<&str> =
            words.iter().map(|word| if *word == "--format" { "-o" } else { word }).collect();
        schema::check(&words, &said);
        assert!(!said.out.is_empty(), "{line}: {said:?}");
    }
    said
}

/// The files of a check of the fabric by two nodes, of which one does not reach the other.
fn write_check(directory: &Path) {
    fs::create_dir(directory).unwrap();
    let write = |name: &str, text: &str| fs::write(directory.join(name), text).unwrap();
    write("start.json", r#"{"session": 1, "nodes": ["n1", "n2"], "came": ["n1", "n2"]}"#);
    for (node, nid) in [("n1", 1), ("n2", 2)] {
        let address = format!(r#"{{"nid": {nid}, "pid": 0, "vni": 1024}}"#);
        write(
            &format!("{node}.arrival.json"),
            &format!(r#"{{"nics": {{"cxi0": {{"address": {address}}}}}}}"#),
        );
    }
    let answers = r#"{"answered": 0, "retries": 1, "least_ns": null, "median_ns": null, "problem": "no answer"}"#;
    write("n1.asked.json", &format!(r#"{{"nics": {{"cxi0": {{"n2": {answers}}}}}}}"#));
}

#[test]
fn each_result_is_as_the_schema_says() {
    let node = MockNode::new();
    let mut seen = BTreeSet::new();
    write_check(&node.directory().join("check"));
    for line in LINES.lines() {
        let said = run(&node, line, "json", &[]);
        seen.extend(schema::command(&line.split_whitespace().collect::<Vec<_>>()));
        // What changes nothing says the same in YAML.
        let is_stable =
            ["list", "show", "usage", "plan", "audit", "cdi", "config check", "explain ENOSPC"];
        if is_stable.iter().any(|word| line.contains(word)) {
            let yaml = run(&node, line, "yaml", &[]);
            let json: Value = serde_json::from_str(&said.out).unwrap();
            assert_eq!(serde_saphyr::from_str::<Value>(&yaml.out).unwrap(), json, "{line}");
        }
    }
    let controller = MockNode::new();
    let records = controller.directory().join("records");
    let manager = FabricManager::start();
    let settings =
        format!("{}[controller]\nrecords = \"{}\"\n", manager.settings("1s"), records.display());
    let settings = controller.write("cxi.toml", &settings);
    for line in ON_CONTROLLER.lines() {
        run(&controller, line, "json", &[("CXI_CONFIG", &settings)]);
        seen.extend(schema::command(&line.split_whitespace().collect::<Vec<_>>()));
    }
    let schema: Value = serde_json::from_str(schema::SCHEMA).unwrap();
    let all = schema["anyOf"].as_array().unwrap().iter();
    let name = |one: &Value| one["$ref"].as_str().unwrap()["#/$defs/".len()..].replace("%20", " ");
    let missing: Vec<String> = all.map(name).filter(|name| !seen.contains(name)).collect();
    let other_tests = ["fabric check", "integration enable", "integration disable"];
    assert_eq!(missing, other_tests, "not run by this test");
}
