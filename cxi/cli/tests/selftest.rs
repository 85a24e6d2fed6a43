//! `cxi selftest` on NICs that answer as expected, and on others.

mod common;

use common::{MockNode, Said, assert_contains, cxi};
use cxi::DriverRelease;

fn replay(path: &str) -> Said {
    cxi(&["selftest", "--replay", path])
}

#[test]
fn each_release_answers_as_its_mock() {
    let node = MockNode::new();
    for release in DriverRelease::ALL.map(DriverRelease::name) {
        let path = node.write("report", "an older report");
        let mock = ["--mock", "--mock-nics=1", "--mock-release", release];
        let arguments = ["selftest", "--write", "--report", &path];
        let text = cxi(&[&mock[..], &arguments].concat()).done();
        let driver = match release {
            "shs-14.0.0" | "shs-14.0.1" => "shs-14.0.0 or shs-14.0.1",
            other => other,
        };
        assert_contains(&text, &format!("cxi0 (driver {driver}): "));
        assert_contains(&text, " answers are as expected; compared with the mock of ");
        // Replay the part of the report that only reads.
        assert_contains(&replay(&path).done(), " answers are as expected; compared with");
        assert_eq!(node.cxi("--mock-nics=1 service list").code, 0);
    }
}

#[test]
fn a_nic_with_services_of_others_is_left_as_it_was() {
    let node = MockNode::new();
    node.take_queues();
    let before = std::fs::read(node.file()).unwrap();
    let said = node.cxi("--json selftest --write").json();
    assert_eq!(said["findings"], 0);
    let nic = &said["nics"][1];
    assert_eq!(nic["device"], "cxi1");
    let steps = nic["write"]["steps"].as_array().unwrap();
    let put = steps.iter().find(|step| step["name"] == "a put to the NIC itself");
    assert_eq!(put.unwrap()["answer"], "arrived unchanged");
    let times = nic["read"]["microseconds"].as_array().unwrap().len();
    assert_eq!(nic["read"]["recording"].as_array().unwrap().len(), times);
    assert_eq!(std::fs::read(node.file()).unwrap(), before);
}

#[test]
fn a_difference_is_found_wherever_it_is() {
    for (fault, finding) in [
        (
            "SVC_GET_LPR:EPERM",
            "SVC_GET_LPR of no service: expected SVC_GET_LPR: there is no service 4000000001, found",
        ),
        ("CQ_ALLOC:ENOSPC", "a put to the NIC itself: expected arrived unchanged, found"),
        ("LNI_ALLOC:ENOSPC:after=1", "using it: expected done, found LNI_ALLOC"),
        ("CT_ALLOC:ENOSPC:after=1", "counters it gets: expected 2, found 1"),
        ("SVC_ALLOC:ENOSPC", "creating a service: expected done, found"),
        ("SVC_DESTROY:EIO", "destroying it: expected done, found SVC_DESTROY"),
    ] {
        let fault = ["--mock", "--mock-nics=1", "--mock-fault", fault];
        let said = cxi(&[&fault[..], &["selftest", "--write"]].concat());
        assert_eq!(said.code, 9, "{said:?}");
        assert_contains(&said.out, " answers are not as expected; compared with the mock");
        assert_contains(&said.out, finding);
    }
}

/// Root's communication profile has a VNI that no list of services shows.
#[test]
fn a_vni_that_is_taken_is_no_finding() {
    let fault = ["--mock", "--mock-nics=1", "--mock-fault"];
    let selftest = |times: &str, more: &[&str]| {
        let taken = format!("SVC_ALLOC:EEXIST:times={times}");
        cxi(&[&fault[..], &[&taken, "selftest", "--write"], more].concat())
    };
    assert_contains(&selftest("3", &[]).done(), " answers are as expected; ");
    selftest("1", &["--vni=9"]).failed(1, "error: cxi0: SVC_ALLOC: VNI ");
    selftest("99", &[]).failed(1, "error: cxi0: SVC_ALLOC: VNI ");
}

#[test]
fn a_nic_that_fails_leaves_the_report_of_the_others() {
    let node = MockNode::new();
    let path = node.write("report", "an older report");
    let selftest = |fault: &str| {
        let mock = ["--mock", "--mock-nics=2", "--mock-fault", fault];
        cxi(&[&mock[..], &["selftest", "--write", "--report", &path]].concat())
    };
    let said = selftest("SVC_ALLOC:EPERM");
    said.failed(6, "error: cxi0: SVC_ALLOC: ");
    assert_contains(&said.err, "error: cxi1: SVC_ALLOC: ");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "an older report");
    let said = selftest("cxi1:SVC_ALLOC:EPERM");
    said.failed(6, "error: cxi1: SVC_ALLOC: ");
    assert!(said.out.starts_with("cxi0 (driver "), "{said:?}");
    assert_contains(&replay(&path).done(), " answers are as expected; compared with");
}

#[test]
fn a_report_says_nothing_about_the_site_and_is_judged_again() {
    let node = MockNode::new();
    let create = "service create -d cxi0 --uid=4242 --vni=9";
    node.cxi(create).done();
    let path = node.write("report", "");
    let report = |more: &str| {
        node.cxi(&format!("-d cxi0 selftest --report {path} {more}")).done();
        std::fs::read_to_string(&path).unwrap()
    };
    let uid = "92100000";
    assert!(report("--unmasked").contains(uid));
    let text = report("");
    assert!(!text.contains(uid));
    replay(&path).done();

    // The NIC has one TXQ fewer than usual; 1024 is 0004 in little-endian memory.
    let other = text.replacen("0008000000040000", "0008000000030000", 1);
    assert_ne!(other, text);
    std::fs::write(&path, other).unwrap();
    let said = replay(&path);
    assert_eq!(said.code, 9, "{said:?}");
    assert_contains(&said.out, " in all: expected ");

    // A command is missing.
    let mut shorter: serde_json::Value = serde_json::from_str(&text).unwrap();
    let recording = shorter.pointer_mut("/record/nics/0/read/recording");
    recording.unwrap().as_array_mut().unwrap().remove(0);
    std::fs::write(&path, shorter.to_string()).unwrap();
    replay(&path).mentions(2, "Another version of cxi wrote the report");
    let (start, _) = text.split_at(text.len() / 2);
    std::fs::write(&path, start).unwrap();
    assert_eq!(replay(&path).code, 2);
    replay("/nowhere/report").mentions(2, "/nowhere/report: there is no such file");
}
