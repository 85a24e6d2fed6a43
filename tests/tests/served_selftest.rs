//! `cxi selftest` on a served node, which it takes for a real one.

use cxi_ioctl::DriverRelease;
use cxi_test_kit::Directory;
use cxi_tests::node::{self, need_node, printed, run};

const CXI: &str = env!("CARGO_BIN_EXE_test-cxi");

#[test]
fn each_release_answers_as_expected_in_the_report_too() {
    need_node!(node::windows());
    for release in DriverRelease::ALL {
        let directory = Directory::new();
        let report = directory.join("report");
        let node = ["--release", release.name(), "--", CXI];
        let arguments = ["selftest", "--write", "--yes", "--report", &report];
        let text = printed(&run(&[&node[..], &arguments].concat()));
        let expected = format!("cxi0 (driver {release}): ");
        assert!(text.starts_with(&expected), "{text}");
        assert!(text.contains(" answers are as expected; "), "{text}");
        assert!(text.contains("telemetry: "), "{text}");
        let replayed =
            std::process::Command::new(CXI).args(["selftest", "--replay", &report]).output();
        let text = printed(&replayed.expect("it runs"));
        assert!(text.contains(" answers are as expected; "), "{text}");
    }
}

#[test]
fn a_difference_is_found() {
    need_node!();
    let node = ["--fault", "SVC_RSRC_GET:EACCES:after=1", "--", CXI];
    let output = run(&[&node[..], &["selftest"]].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(9), "{text}");
    assert!(text.contains("SVC_RSRC_GET of no service: expected "), "{text}");
}

/// A fault that lasts is a finding; a service that is busy for a while is destroyed a little later.
#[test]
fn faults_in_the_middle_are_found_and_leave_nothing() {
    need_node!(node::windows());
    let faults = ["CQ_ALLOC:EIO:after=1", "SVC_DESTROY:EBUSY:times=2"];
    let faults = faults.map(|fault| ["--fault", fault]).concat();
    for release in DriverRelease::ALL {
        let options = ["--nics", "1", "--release", release.name()];
        let text = node::script(
            &[&options[..], &faults].concat(),
            &format!(
                "{CXI} selftest --write --yes >&2 || echo $?\n\
                 {CXI} --json service list | grep -c restricted_members"
            ),
        );
        assert_eq!(text, "9\n1", "{release}");
    }
}

/// Killed while the NIC is slow, with its service there.
#[test]
fn one_that_is_killed_leaves_nothing() {
    need_node!();
    for signal in ["KILL", "TERM"] {
        let text = node::script(
            &["--nics", "1", "--fault", "CT_ALLOC:delay=300ms"],
            &format!(
                "count() {{ {CXI} --json service list | grep -c restricted_members; }}\n\
                 test $(count) = 1\n\
                 {CXI} selftest --write --yes >&2 &\n\
                 until test $(count) = 2; do :; done\n\
                 kill -{signal} $!\n\
                 wait $! || echo killed\n\
                 until test $(count) = 1; do sleep 0.02; done; echo clean"
            ),
        );
        assert_eq!(text, "killed\nclean", "{signal}");
    }
}

/// The NIC is slow while they use it. Releases before 14.0.0 refuse a VNI that another service has.
#[test]
fn several_at_once_use_one_nic_in_turn() {
    need_node!(node::windows());
    for release in ["shs-13.0", "main"] {
        let options = ["--nics", "1", "--release", release, "--fault"];
        let text = node::script(
            &[&options[..], &["CT_ALLOC:delay=50ms"]].concat(),
            &format!(
                "all=\n\
                 for _ in 1 2 3; do {CXI} selftest --write --yes >&2 & all=\"$all $!\"; done\n\
                 for one in $all; do wait $one || echo failed; done\n\
                 {CXI} --json service list | grep -c restricted_members"
            ),
        );
        assert_eq!(text, "1", "{release}");
    }
}

/// Any user can lock the NIC's directory in sysfs; only root can lock the file that selftests lock.
#[test]
fn a_lock_of_others_does_not_stop_it_and_one_of_another_test_not_for_ever() {
    need_node!(node::windows());
    let text = node::script(
        &["--nics", "1"],
        &format!(
            "locked() {{ flock $1 sleep 60 & until ! flock -n $1 true; do :; done; }}\n\
             locked /sys/class/cxi_user/cxi0\n\
             timeout 30 {CXI} selftest --write --yes >/dev/null && echo tested\n\
             locked /run/cxi/node.cxi0.lock\n\
             CXI_WAIT=100ms timeout 30 {CXI} selftest --write --yes 2>&1 || echo $?"
        ),
    );
    assert_eq!(
        text,
        "tested\n\
         info: waiting for another selftest or benchmark of cxi0\n\
         error: cxi0: another selftest or benchmark uses it: \
         /run/cxi/node.cxi0.lock: locked by another process; waited 100ms\n4"
    );
}
