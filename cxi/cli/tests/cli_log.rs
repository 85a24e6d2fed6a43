//! The form of messages.

mod common;

use common::{Said, command};
use serde_json::Value;

const FAILS: [&str; 4] = ["--mock", "service", "show", "9"];
const MESSAGE: &str = "no service 9 on cxi0-1";

fn run(options: &[&str], variable: &str) -> Said {
    let mut command = command(&[options, &FAILS].concat());
    command
        .env("CXI_LOG_FORMAT", variable)
        .output()
        .unwrap()
        .into()
}

#[test]
fn a_collector_gets_objects_with_time_and_priority() {
    for said in [
        run(&["--log-format=json"], ""),
        run(&["--log-format=json", "--json"], "text"),
        run(&[], "json"),
    ] {
        said.ended(5, "");
        let entry: Value = serde_json::from_str(&said.err).unwrap();
        assert_eq!(entry["priority"], 3);
        assert_eq!(entry["identifier"], "cxi");
        assert_eq!(entry["error"]["message"], MESSAGE);
        assert!(entry["time"].as_str().unwrap().ends_with('Z'), "{entry}");
    }
}

#[test]
fn the_journal_gets_a_priority_on_each_line() {
    run(&["--log-format=journal"], "").refused(
        5,
        "<3>cxi: error: no service 9 on cxi0-1\n<3>cxi: cxi service list shows the services.",
    );
}

#[test]
fn people_get_text_and_programs_objects_unless_told_otherwise() {
    let text = "error: no service 9 on cxi0-1\n  cxi service list shows the services.";
    run(&[], "").refused(5, text);
    run(&["--json", "--log-format=text"], "").refused(5, text);
    let said = run(&["--json"], "");
    let object: Value = serde_json::from_str(&said.err).unwrap();
    assert_eq!(object.as_object().unwrap().len(), 1);
    run(&[], "xml").refused(
        2,
        "error: CXI_LOG_FORMAT: invalid value 'xml': expected text, json or journal",
    );
}
