//! `cxi-mock sweep`: what it finds in programs on served nodes.

use std::fs;
use std::process::Output;

use cxi_test_kit::Directory;
use cxi_tests::node::{self, Run as _, errors, need_node, printed, server};
use serde_json::Value;

const CXI: &str = env!("CARGO_BIN_EXE_test-cxi");

/// Creates a service on each NIC and destroys them, as a prolog and an epilog do that nobody tested.
const CARELESS: &str = "$CXI -d cxi0 service create --uid 1000 --vni 9; \
                        $CXI -d cxi1 service create --uid 1000 --vni 9; \
                        $CXI service destroy 2 || exit 0";

fn sweep(options: &[&str], script: &str) -> Output {
    let mut command = server(["sweep"]);
    command
        .args(options)
        .args(["--", "sh", "-c", script])
        .env("CXI", CXI)
        .env("SERVER", node::cxi_mock())
        .run()
}

fn report(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", errors(output)))
}

fn texts(report: &Value, key: &str) -> Vec<String> {
    let list = report[key].as_array().into_iter().flatten();
    list.map(|it| it.as_str().or(it["failures"].as_str()).unwrap_or_default().to_owned()).collect()
}

#[test]
fn a_script_that_ignores_errors_has_findings_that_one_line_repeats() {
    need_node!();
    let directory = Directory::new();
    let junit = directory.join("report.xml");
    let output = sweep(&["--nics", "2", "--json", "--junit", &junit], CARELESS);
    assert_eq!(output.status.code(), Some(1), "{}", errors(&output));
    let all = report(&output);
    let found = texts(&all, "findings");
    let alloc = found.iter().find(|it| it.ends_with("SVC_ALLOC:ENOSPC")).expect("an allocation");
    let findings = all["findings"].as_array().expect("a list");
    let of = |failure: &str| findings.iter().find(|it| it["failures"] == failure);
    assert_eq!(of(alloc).expect("it")["kind"], "swallowed");
    let cases = texts(&all, "cases");
    assert!(cases.len() > found.len(), "{cases:?}");
    let xml = fs::read_to_string(&junit).expect("it is written");
    let failed = xml.matches("<failure ").count();
    assert_eq!((xml.matches("<testcase ").count(), failed), (cases.len(), findings.len()));

    let output = sweep(&["--nics", "2", "--only", alloc], CARELESS);
    assert_eq!(output.status.code(), Some(1));
    let text = printed_anyway(&output);
    assert!(text.contains(alloc.as_str()) && text.contains("swallowed"), "{text}");
    assert!(text.contains("1 runs with failures, 1 findings"), "{text}");
}

fn printed_anyway(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn our_own_prolog_and_epilog_have_none_whatever_happens() {
    need_node!();
    let options =
        ["--nics", "2", "--kill", "--unplug", "--delay", "--late", "10ms", "--errnos", "all"];
    let after = ["--after", "$CXI job epilog --job 17 --retry-busy 5s || test $? = 8"];
    let script = "$CXI job prolog --job 17 --uid 1000 --vni 9 --cores 4 && \
                  $CXI job epilog --job 17 --retry-busy 5s";
    let output = sweep(&[&options[..], &after].concat(), script);
    let text = printed_anyway(&output);
    assert!(text.ends_with(" 0 findings\n"), "{text}: {}", errors(&output));
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn what_does_not_end_is_ended_and_what_crashes_is_named() {
    need_node!();
    let hangs = "$CXI service list || sleep 1000";
    let output = sweep(&["--timeout", "2s", "--only", "1:SVC_LIST_GET:EIO"], hangs);
    let text = printed_anyway(&output);
    assert!(text.contains("hung"), "{text}: {}", errors(&output));
    let crashes = "$CXI service list || kill -SEGV $$";
    let output = sweep(&["--only", "1:SVC_LIST_GET:EIO"], crashes);
    let text = printed_anyway(&output);
    assert!(text.contains("it is ended by SIGSEGV"), "{text}: {}", errors(&output));
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_check_sees_the_node_and_a_second_process_comes_in_between() {
    need_node!();
    let list = "$CXI service list";
    let only = ["--only", "1:SVC_LIST_GET:between"];
    let between = ["--between", "$CXI service create --uid 7 --vni 9"];
    let output = sweep(&[&only[..], &between].concat(), list);
    let text = printed_anyway(&output);
    // Nobody destroys it.
    assert!(text.contains("1 service (2) left on cxi0"), "{text}: {}", errors(&output));
    let check = ["--check", "! $CXI service list | grep 'uid 7'"];
    let output = sweep(&[&only[..], &between, &check].concat(), list);
    let text = printed_anyway(&output);
    assert!(text.contains("--check ends with exit status 1"), "{text}: {}", errors(&output));
}

#[test]
fn a_removed_nic_disappears_from_the_node() {
    need_node!();
    let script = "$CXI service list || test -e /dev/cxi0 || exit 9";
    let output = sweep(&["--only", "1:SVC_LIST_GET:unplug", "--json"], script);
    let report = report(&output);
    assert_eq!(report["findings"].as_array().map(Vec::len), Some(0), "{report}");
    let there = "$CXI service list || test -e /dev/cxi0 && kill -SEGV $$";
    let output = sweep(&["--only", "1:SVC_LIST_GET:unplug"], there);
    assert_eq!(output.status.code(), Some(125), "without a failure it crashes");
}

#[test]
fn programs_on_several_nodes_are_counted_on_each() {
    need_node!(cxi_test_kit::root("serve a cluster here"));
    let script =
        "$CXI service create --uid 1 --vni 9 && $SERVER rsh n2 $CXI service create --uid 1 --vni 9";
    let output = sweep(&["--nodes", "2", "--json", "--jobs", "1"], script);
    let report = report(&output);
    let found = texts(&report, "findings");
    assert!(found.iter().any(|it| it.starts_with("n2:cxi0:")), "{report}");
}

#[test]
fn there_is_no_report_without_a_program_that_works() {
    need_node!();
    let output = sweep(&[], "echo no such job >&2; exit 3");
    node::refused(
        &output,
        "without any failure, the program ends with: exit status 3: no such job",
    );
    let output = sweep(&[], "true");
    node::refused(&output, "the program sends no command to a NIC");
    let output = sweep(&["--only", "9:SVC_GET:EIO"], "$CXI service list");
    node::refused(&output, "9:SVC_GET:EIO does not occur: that NIC gets 1 commands");
    let output = server(["sweep", "--only", "x", "--", "true"]).run();
    assert!(errors(&output).contains("invalid failure 'x'"), "{}", errors(&output));
    let help = printed(&server(["sweep", "--help"]).run());
    assert!(help.contains("--only <FAILURE>") && !help.contains("--case"), "{help}");
}
