//! Properties with their own driver commands: network namespaces, RGIDs, exclusive profiles.

mod common;

use common::{MockNode, assert_contains, schema};
use cxi::{ServiceSetting, SettingForm};
use serde_json::{Value, json};

#[test]
fn a_service_of_a_network_namespace_says_whose_it_is() {
    let node = MockNode::new();
    let create = ["service", "create", "--netns=4026532000", "--vni=9"];
    node.cxi(&[&create[..], &["--limit=eqs=1:1,acs=1:2"]].concat())
        .prints("Created service 2 on cxi0-1: for network namespace 4026532000, VNI 9, enabled\n");
    let list = node.cxi("service list -d cxi0").done();
    let line = list.lines().last().unwrap().split("  ").map(str::trim);
    let line: Vec<_> = line.filter(|part| !part.is_empty()).collect();
    // The driver does not list a namespace that was set later.
    let waiting = node.write("nobody.yaml", "vnis: [10]\nmembers: []\nenable: false\n");
    node.cxi(&["service", "create", "--from", &waiting]).done();
    node.cxi("service update 3 --netns=4026532001").done();
    let later = node.cxi("service list -d cxi0").done();
    assert_contains(&later, "  network namespace 4026532001  ");
    assert_eq!(line[..3], ["cxi0", "2", "enabled"]);
    assert_eq!(line[3], "network namespace 4026532000");
    assert_eq!(line[4..], ["9", "all", "1 EQ, 1 AC reserved"]);
    let shown = node.cxi("service show 2").done();
    assert_contains(&shown, "Who              network namespace 4026532000\n");
    assert!(!shown.contains("nobody"), "{shown}");
    let json = node.cxi("service list -d cxi0 --json").json();
    assert_eq!(json["services"][0]["netns"], json!(null));
    assert_eq!(json["services"][1]["netns"], 4_026_532_000_u32);
    let yaml = node.cxi("service show 2 --yaml").done();
    assert!(yaml.contains("type: netns\n") && yaml.contains("id: 4026532000\n"), "{yaml}");
}

/// Each by the table: an option, what it does, its value in results, their schema, and its key in the
/// documents.
#[test]
fn every_setting_has_an_option_and_is_shown() {
    let node = MockNode::new();
    // The release that has all of them.
    node.cxi("--mock-release=main-2026-11 service list").done();
    let help =
        node.cxi("service create --help").done().split_whitespace().collect::<Vec<_>>().join(" ");
    let update = node.cxi("service update --help").done();
    let page = include_str!("../../../docs/CLI.md");
    let schema: Value = serde_json::from_str(schema::SCHEMA).unwrap();
    for setting in ServiceSetting::ALL {
        let (option, value) = match setting.form() {
            SettingForm::Switch => (format!("--{}", setting.name()), json!(true)),
            _ => (format!("--{}=2", setting.name()), json!(2)),
        };
        assert!(help.contains(setting.help()), "{}", setting.name());
        let can_change = update.contains(&format!("--{}", setting.name()));
        assert_eq!(can_change, setting.change().is_some(), "{}", setting.name());
        node.cxi(&format!("service create --vni-range=64-127 --limit=eqs=1:1 {option}")).done();
        let shown = node.cxi("service show 2 --json -d cxi0").json()["services"][0].clone();
        let is_stored = setting != ServiceSetting::ExclusiveVnis;
        assert_eq!(shown.get(setting.key()), is_stored.then_some(&value), "{}", setting.name());
        let properties = &schema["$defs"]["service"]["properties"];
        assert_eq!(properties.get(setting.key()).is_some(), is_stored, "{}", setting.name());
        let heading = node.cxi("service show 2").done().contains(setting.title());
        assert_eq!(heading, setting.is_queried(), "{}", setting.name());
        let in_file = format!("\n{}: ", setting.key());
        assert!(page.contains(&in_file), "{}", setting.name());
        node.cxi("service destroy 2").done();
    }
    node.cxi("service create --vni=9 --counter-pool=4")
        .refused(2, "error: counter pool 4: expected 0 to 3");
    node.cxi("service create --vni=9 --counter-pool=x").mentions(2, "invalid value 'x'");
}

/// Everything that `cxi_service list -v` shows is in one place.
#[test]
fn everything_about_all_services_is_shown() {
    let node = MockNode::new();
    node.cxi(
        "service create --uid=1000 --vni-range=64-127 --exclusive-cp \
         --lnis-per-rgid=2 --tc=low-latency",
    )
    .done();
    let shown = node.cxi("service show -v -d cxi0").done();
    for part in [
        "Resources of cxi0\n",
        "TXQs           0         0        1024   1024",
        "Service          1\n",
        "Service          2\n",
        "State            enabled\n",
        "Who              uid 1000\n",
        "VNIs             64-127\n",
        "Traffic classes  low-latency\n",
        "LNIs per RGID    2\n",
        "Exclusive CPs    yes\n",
        "Service 2 on cxi0: uid 1000, VNIs 64-127, enabled\n",
    ] {
        assert!(shown.contains(part), "{part:?} in {shown}");
    }
    let yaml = node.cxi("service show 2 --yaml").done();
    assert_contains(&yaml, "exclusive_cp: true\nlnis_per_rgid: 2\n");
    node.cxi("service destroy 2").done();
    let file = node.write("again.yaml", &yaml);
    node.cxi(&["service", "create", "--from", &file]).done();
    assert_eq!(node.cxi("service show 2 --yaml").done(), yaml);
}

#[test]
fn what_the_driver_can_change_is_changed() {
    let node = MockNode::new();
    let show = |id: &str| {
        node.cxi(&["service", "show", id, "--json", "-d", "cxi0"]).json()["services"][0].clone()
    };
    node.cxi("service create --vni-range=64-127 --limit=eqs=1:1").done();
    let refused = node.cxi("service update 2 --exclusive-cp");
    refused.mentions(1, "use freed memory");
    assert_eq!(show("2")["exclusive_cp"], false);
    assert_eq!(show("2")["enable"], true);
    node.cxi("service update 2 --exclusive-cp --force --lnis-per-rgid=3")
        .prints("Updated service 2 on cxi0-1\n");
    let service = show("2");
    assert_eq!(service["exclusive_cp"], true);
    assert_eq!(service["lnis_per_rgid"], 3);
    assert_eq!(service["enable"], true);
    assert_eq!(
        node.cxi("service update 2 --exclusive-cp=false --force --disable --json").json(),
        json!({"updated": [{"device": "cxi0", "service": 2}, {"device": "cxi1", "service": 2}]})
    );
    let service = show("2");
    assert_eq!(service["exclusive_cp"], false);
    assert_eq!(service["enable"], false);
    node.cxi("service update 2 --enable").done();
    assert_eq!(show("2")["enable"], true);

    // Services that are waiting for them get a block of VNIs and a namespace.
    let waiting =
        node.write("waiting.yaml", "restricted_vnis: false\nrestricted_members: 1\nmembers: []\n");
    node.cxi(&["service", "create", "--from", &waiting]).done();
    node.cxi("service update 3 --vni-range=128-255 --netns=4026532000 --enable").done();
    let service = show("3");
    assert_eq!(service["vni_range"], json!({"first": 128, "last": 255}));
    assert_eq!(service["netns"], 4_026_532_000_u32);
    assert_eq!(service["enable"], true);

    // A refused change leaves the service unchanged.
    node.cxi("service create --vni=9 --limit=eqs=1:1").done();
    node.cxi("service update 4 --exclusive-cp -d cxi0").refused(
        1,
        "error: cxi0: SVC_SET_EXCLUSIVE_CP: only a service with a VNI range has exclusive CPs \
         (EINVAL)",
    );
    assert_eq!(show("4")["enable"], true);
    let said = node.cxi("service update 4");
    said.failed(2, "error: the following required arguments were not provided");
}
