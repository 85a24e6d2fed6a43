//! `cxi service` on a mock node.

mod common;

use common::{MockNode, assert_contains};
use serde_json::json;

const JOB: &str = "service create --uid=1000 --vni=1024,1025 \
                   --tc=low-latency,best-effort --limit=txqs=16:64,ptes=24:128 --limit=tles=8:8";

#[test]
fn a_service_lives_from_call_to_call() {
    let node = MockNode::new();
    node.cxi(JOB).prints("Created service 2 on cxi0-1: for uid 1000, VNIs 1024,1025, enabled\n");
    node.cxi("service list").prints("\
NICs    Service  State     Who       VNIs       Traffic classes          Limits
cxi0-1        1  disabled  everyone  1,10       all                      512 TLEs reserved
cxi0-1        2  enabled   uid 1000  1024,1025  low-latency,best-effort  24 PTEs, 16 TXQs, 8 TLEs reserved
");
    node.cxi("service usage 2").prints(
        "\
Service 2 on cxi0-1: uid 1000, VNIs 1024,1025, enabled
  Resource  In use  Reserved  Max
  PTEs           0        24  128  ======..........................
  TXQs           0        16   64  ========........................
  TLEs           0         8    8  ================================
  Not available: TGQs, EQs, CTs, LEs, ACs

# in use  = reserved, not in use  . free
",
    );
    node.cxi("service disable 2 -d cxi1").prints("Disabled service 2 on cxi1\n");
    node.cxi("service list").prints("\
NICs    Service  State     Who       VNIs       Traffic classes          Limits
cxi0-1        1  disabled  everyone  1,10       all                      512 TLEs reserved
cxi0          2  enabled   uid 1000  1024,1025  low-latency,best-effort  24 PTEs, 16 TXQs, 8 TLEs reserved
cxi1          2  disabled  uid 1000  1024,1025  low-latency,best-effort  24 PTEs, 16 TXQs, 8 TLEs reserved
");
    node.cxi("service enable 2 -d cxi1").prints("Enabled service 2 on cxi1\n");
    node.cxi("service delete 2").prints("Destroyed service 2 on cxi0-1\n");
    assert_eq!(
        node.cxi("service list --json").json()["services"].as_array().map(Vec::len),
        Some(2)
    );
}

#[test]
fn ids_settings_and_ranges_come_back() {
    let node = MockNode::new();
    for vni in ["--vni=2", "--vni=3"] {
        node.cxi(&["service", "create", vni, "--limit=txqs=1:1"]).done();
    }
    let range = "service create --vni-range=1024-1039 --exclusive-cp --lnis-per-rgid=4 --disabled --system --gid=100";
    node.cxi(range).done();
    node.cxi("service create --netns=4026531999 --vni=9").done();
    node.cxi("service destroy 2").done();
    let shown = node.cxi("service show 3 4 5 -d cxi1 --json").json();
    let services = shown["services"].as_array().unwrap();
    let ids: Vec<_> = services.iter().map(|service| service["id"].clone()).collect();
    assert_eq!(ids, [3, 4, 5]);
    let with_range = &services[1];
    assert_eq!(with_range["vni_range"], json!({"first": 1024, "last": 1039}));
    assert_eq!(with_range["members"], json!([{"type": "gid", "id": 100}]));
    assert_eq!(with_range["exclusive_cp"], true);
    assert_eq!(with_range["lnis_per_rgid"], 4);
    assert_eq!(with_range["enable"], false);
    assert_eq!(with_range["is_system_svc"], true);
    assert_eq!(services[2]["netns"], 4_026_531_999_u32);
    // The freed ID is reused.
    assert_eq!(
        node.cxi("service create --vni=2 --json").json(),
        json!({"created": [{"device": "cxi0", "service": 2}, {"device": "cxi1", "service": 2}]})
    );
}

#[test]
fn a_shown_specification_can_be_read_again() {
    let node = MockNode::new();
    node.cxi(JOB).done();
    let yaml = node.cxi("service show 2 --yaml").done();
    assert!(yaml.starts_with("# Service 2 of cxi0-1\n"), "{yaml}");
    let file = node.write("again.yaml", &yaml);
    node.cxi(&["service", "create", "--from", &file]).done();
    let both = node.cxi("service show 2 3 -d cxi0 --json").json();
    let mut services: Vec<_> = both["services"].as_array().unwrap().clone();
    for service in &mut services {
        service.as_object_mut().unwrap().remove("id");
    }
    assert_eq!(services[0], services[1]);
}

#[test]
fn all_nics_or_none() {
    let node = MockNode::new();
    node.cxi("service create -d cxi1 --vni=7 --limit=txqs=1000:1000").done();
    node.cxi("service create --vni=8 --limit=txqs=100:100").refused(
        7,
        "error: cxi1: SVC_ALLOC: not enough TXQs: 100 requested, 24 available\n  \
             What had been created on cxi0 was destroyed again.",
    );
    let on_first = node.cxi("service list -d cxi0 --json").json();
    assert_eq!(on_first["services"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_mock_runs_short_and_loses_a_nic_on_request() {
    let node = MockNode::new();
    let short = "--mock-fault=SVC_ALLOC:short=TXQ:96";
    node.cxi(&format!("{short} service create --vni=8 --limit=txqs=96:96")).done();
    node.cxi(&format!("{short} service create --vni=9 --limit=txqs=97:97"))
        .refused(7, "error: cxi0: SVC_ALLOC: not enough TXQs: 97 requested, 96 available");
    let unplugged = "--mock-fault=cxi1:unplug";
    let devices = node.cxi(&format!("{unplugged} devices --json")).json();
    assert_eq!(devices["devices"].as_array().map(Vec::len), Some(1));
    node.cxi(&format!("{unplugged} service list -d cxi1"))
        .failed(3, "error: cxi1: no such NIC; this node has cxi0\n");
    node.cxi("--mock-fault=cxi7:unplug devices")
        .refused(2, "error: a fault is for cxi7, but the mock node has cxi0-1");
    node.cxi("--mock-fault=unplug devices")
        .refused(3, "error: the mock node has no NIC: all are unplugged");
}

#[test]
fn what_can_be_destroyed_is_destroyed() {
    let node = MockNode::new();
    node.cxi("service create --vni=8 -d cxi0").done();
    let said = node.cxi("service destroy 9 2 -d cxi0 --json");
    assert_eq!(said.code, 5);
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&said.out).unwrap(),
        json!({"destroyed": [{"device": "cxi0", "service": 2}]})
    );
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&said.err).unwrap(),
        json!({"error": {
            "kind": "not_found",
            "exit_code": 5,
            "message": "cxi0: SVC_DESTROY: there is no service 9",
            "errno": {"name": "EINVAL", "number": 22},
        }})
    );
}

/// A service that one command creates on all NICs is found and removed by another without naming
/// NICs.
#[test]
fn all_nics_are_meant_unless_some_are_named() {
    let node = MockNode::new();
    node.cxi("service create --uid=7 --vni=7")
        .prints("Created service 2 on cxi0-1: for uid 7, VNI 7, enabled\n");
    let audit = node.cxi("audit").out;
    assert!(!audit.contains("nothing like"), "{audit}");
    node.cxi("service create --uid=8 --vni=8 -d cxi1").done();
    node.cxi("service destroy 3 2")
        .prints("Destroyed service 3 on cxi1\nDestroyed service 2 on cxi0-1\n");
    // Each NIC assigns IDs independently: the same ID may be another job's.
    node.cxi("service create --uid=7 --vni=7 -d cxi0").done();
    node.cxi("service create --uid=8 --vni=8 -d cxi1").done();
    node.cxi("service destroy 2").refused(
        2,
        "error: service 2 is not the same on cxi0 (uid 7, VNI 7, enabled) and cxi1 (uid 8, VNI 8, \
         enabled)\n  Name the NICs with --device.",
    );
    assert_eq!(node.services(), 2);
    node.cxi("service destroy 2 -d all").done();
}

#[test]
fn devices_show_what_is_left() {
    let node = MockNode::new();
    node.cxi(JOB).done();
    let json = node.cxi("devices --json").json();
    assert_eq!(json["devices"][1]["device"], "cxi1");
    assert_eq!(
        json["devices"][1]["resources"]["TXQs"],
        json!({
            "total": 1024, "reserved": 16, "reservable": 1008, "in_use": 0, "shared_in_use": 0,
            "in_use_complete": true,
        })
    );
    let text = node.cxi("devices").done();
    assert_contains(&text, "Resources of cxi0-1");
    assert!(!text.contains('\u{1b}'), "no escape codes when not on a terminal");
}
