//! Commands of a job leave other services, jobs and processes alone.

mod common;

use std::fs::{self, File};
use std::process::Command;

use common::{MockNode, Said, assert_contains, command};

fn prolog(node: &MockNode, uid: &str, vni: &str) {
    let access = ["--uid", uid, "--vni", vni, "--unlimited"];
    node.cxi(&[&["job", "prolog", "--job", vni], &access[..]].concat()).done();
}

#[test]
fn records_say_which_jobs_live() {
    let node = MockNode::new();
    node.cxi("job prolog --job=4711 --uid=1000 --vni=1024 --unlimited").done();
    node.cxi("service create --uid=1001 --vni=1025").done();
    let (clean, foreign) = ("job clean --vni-pool=1024-65535", "job clean --foreign");
    for clean in [clean, foreign] {
        assert_eq!(node.cxi(clean).code, 8);
        assert_eq!(node.services(), 4);
    }
    // Whose record is lost is foreign.
    fs::remove_dir_all(node.directory().join("state.json.d/services")).unwrap();
    let left = node.cxi(clean);
    left.mentions(8, "; --foreign destroys it, too, or: cxi service destroy ID\n");
    // A line break in a message would be shown as what it is not.
    assert!(!left.err.contains('\u{fffd}'), "{left:?}");
    node.cxi(foreign).prints(
        "cxi0: service 3 (uid 1001, VNI 1025): destroyed\ncxi1: service 3 (uid 1001, VNI 1025): \
         destroyed\n",
    );

    // A record that cannot be used is named and put aside, and the other jobs go on.
    node.cxi("job prolog --job=4713 --uid=1000 --vni=1026 --cores=1").done();
    let records = node.directory().join("state.json.d/jobs");
    for (job, text) in [("4711", ""), ("4712", "all of them\n"), ("a1", "{\"format\": 7}")] {
        fs::write(records.join(format!("{job}.json")), text).unwrap();
        let list = node.cxi("job list");
        list.mentions(0, &format!("warning: {}/{job}.json: ", records.display()));
        assert_contains(&list.out, "4713");
        assert_eq!(node.cxi("job clean --dry-run").code, 8);
        let clean = node.cxi(clean);
        clean.mentions(8, &format!("{job}.json: "));
        clean.mentions(8, "it was put aside");
        assert!(records.join(format!("{job}.json.broken")).exists());
        assert_eq!(node.services(), 4);
    }
    node.cxi("job epilog --job=4713").done();
    // An epilog without its record leaves the services, and so does a prolog.
    node.cxi("job epilog --job=4711")
        .ended(8, "Nothing to do: the job has no service on this node\n");
    assert_eq!(node.services(), 2);
}

#[test]
fn a_prolog_that_cannot_report_makes_nothing() {
    let node = MockNode::new();
    prolog(&node, "1000", "1024");
    let mock = node.option();
    for (vni, left) in [("1024", 2), ("1025", 2)] {
        for json in [&[][..], &["--json"]] {
            let full = File::options().write(true).open("/dev/full").unwrap();
            let job = ["job", "prolog", "--uid=1000", "--unlimited"];
            let job = [&job[..], &["--vni", vni, "--job", vni]].concat();
            let mut prolog = command(&[&[&*mock], json, &job].concat());
            let said = Said::from(prolog.stdout(full).output().unwrap());
            said.mentions(1, "cannot write to standard output");
            // Services from an earlier prolog stay.
            assert_eq!(node.services(), left, "{vni}: {said:?}");
        }
    }
}

#[test]
fn a_prolog_that_cannot_report_names_what_it_cannot_undo() {
    let node = MockNode::new();
    let mock = node.option();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut prolog = command(&[&mock, "--mock-fault=SVC_DESTROY:EBUSY"]);
    prolog.args(["job", "prolog", "--job=1", "--unlimited"]);
    prolog.args(["--uid=1000", "--vni=1024"]);
    let said = Said::from(prolog.stdout(full).output().unwrap());
    assert_contains(&said.err, "cxi1: service 2 (uid 1000, VNI 1024)");
    assert_eq!(node.services(), 2);
}

#[test]
fn a_mock_names_no_process_of_this_machine() {
    let node = MockNode::new();
    prolog(&node, "1000", "1024");
    // A process of this test has a file with the name of the NIC open.
    let file = node.directory().join("cxi0");
    let open = File::create_new(&file).unwrap();
    let mut sleep = Command::new("sleep");
    let mut sleeping = sleep.arg("60").stdin(open).spawn().unwrap();
    let epilog = ["job", "epilog", "--job=1024"];
    let busy = ["--mock-fault=SVC_DESTROY:EBUSY"];
    let said = node.cxi(&[&busy[..], &epilog].concat());
    let explained = node.cxi("explain busy 2");
    sleeping.kill().unwrap();
    sleeping.wait().unwrap();
    assert_eq!(said.code, 4);
    for text in [said.err, explained.out] {
        assert_contains(&text, "no visible process has the NIC open");
        // Its number may be part of another, such as of the VNI 1024.
        assert!(!text.contains("sleep"), "{text}");
    }
}
