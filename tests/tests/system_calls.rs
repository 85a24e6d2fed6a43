//! Numbers of system calls that the safe library makes, call by call.

use std::process::Command;

use cxi_test_kit::skip;
use cxi_tests::counted::{OPERATIONS, Place, Uncounted, count};
use cxi_tests::node::{errors, need_node, printed, run};

const COUNTED: &str = env!("CARGO_BIN_EXE_counted");

#[test]
fn on_files() {
    let directory = tempfile::tempdir().unwrap();
    let mut child = Command::new(COUNTED);
    child.arg("act");
    let counts = match count(child, Place::Files(directory.path())) {
        Err(Uncounted::Refused(why)) => return skip(&why),
        counts => counts.unwrap(),
    };
    for (operation, calls) in OPERATIONS.iter().zip(counts) {
        let name = operation.name;
        assert_eq!(calls.len(), operation.system_calls, "{name}: {calls:?}");
    }
}

/// The kernel's own files and a device that answers: nothing is different from plain files. What
/// is traced to be counted cannot be traced for its doorbells.
#[test]
fn on_a_served_node() {
    need_node!();
    let output = run(&["--doorbells", "poll", "--", COUNTED, "node", "cxi0"]);
    let problem = errors(&output);
    for impossible in ["ptrace(2) is not possible", "ENODEV"] {
        if problem.contains(impossible) {
            return skip(&problem);
        }
    }
    let lines: Vec<_> = printed(&output).lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), OPERATIONS.len());
    for (operation, line) in OPERATIONS.iter().zip(lines) {
        let calls = line.strip_prefix(&format!("{}: ", operation.name)).unwrap();
        let count = match calls {
            "[]" => 0,
            calls => calls.split(", ").count(),
        };
        assert_eq!(count, operation.system_calls, "{line}");
    }
}
