//! The forms of messages.

mod common;

use common::{Said, command};
use serde_json::Value;

const FAILS: [&str; 4] = ["--mock", "service", "show", "9"];
const MESSAGE: &str = "no service 9 on cxi0-1";

fn run(options: &[&str], variable: &str) -> Said {
    let mut command = command(&[options, &FAILS].concat());
    command.env("CXI_LOG_FORMAT", variable).output().unwrap().into()
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
    run(&[], "xml")
        .refused(2, "error: CXI_LOG_FORMAT: invalid value 'xml': expected text, json or journal");
}

#[test]
fn commands_to_the_nics_are_printed_on_request() {
    let line = "debug: cxi1: SVC_LIST_GET 32 bytes: ok";
    for options in [&[][..], &["--trace"]] {
        let said = run(options, "");
        assert_eq!(said.err.contains(line), !options.is_empty(), "{}", said.err);
    }
    let list = ["--mock", "--mock-nics=2", "service", "list"];
    for (level, is_traced) in [("info", false), ("warn,cxi_ioctl=debug", true), ("trace", true)] {
        let said = Said::from(command(&list).env("RUST_LOG", level).output().unwrap());
        assert_eq!(said.code, 0);
        let traced = said.err.contains("debug: cxi1: SVC_LIST_GET ");
        assert_eq!(traced, is_traced, "{level}: {}", said.err);
    }
}
