//! `cxi explain` and `cxi audit`.

mod common;

use common::{MockNode, assert_contains};

#[test]
fn a_service_that_cannot_be_made_is_explained_and_none_is_left() {
    let node = MockNode::new();
    let all = ["explain", "create", "--uid=1001", "--vni=1024"];
    node.cxi(&all)
        .prints("cxi0-1: nothing is in the way: the service was created, and destroyed again\n");
    for vni in ["1025", "1026", "1027"] {
        let vni = format!("--vni={vni}");
        let create = ["service", "create", "-d", "cxi0", "--uid=1001", &vni];
        node.cxi(&[&create[..], &["--limit=tles=8:8"]].concat()).done();
    }
    let said = node.cxi(&[&all[..], &["--limit=tles=8:8"]].concat());
    assert_eq!((said.code, said.err.as_str()), (7, ""));
    for part in [
        "cxi1: nothing is in the way: the service was created, and destroyed again\ncxi0: SVC_ALLOC: ",
        "service 2 (uid 1001, VNI 1025)",
        "What to do:",
    ] {
        assert_contains(&said.out, part);
    }
    let list = node.cxi("--json service list").json();
    assert_eq!(list["services"].as_array().unwrap().len(), 5);
}

#[test]
fn a_service_that_cannot_be_used_is_explained() {
    let node = MockNode::new();
    node.cxi("service create --uid=0 --vni=1024").done();
    node.cxi("explain open 2 -d cxi0")
        .prints("cxi0: you can use service 2: an LNI was allocated, and freed again\n");
    // The default service is disabled.
    let said = node.cxi("explain open 1");
    assert_eq!((said.code, said.err.as_str()), (1, ""));
    assert_contains(&said.out, "cxi0-1: LNI_ALLOC: ");
    let unset = "SLINGSHOT_SVC_IDS and SLINGSHOT_DEVICES are not set";
    assert_contains(&said.out, unset);
    for name in ["busy", "service"] {
        node.cxi(&format!("explain {name} 2 -d cxi0")).prints(
            "cxi0: service 2 (for uid 0, VNI 1024): none of its resources are in use; no process \
             that can be seen has the NIC open\n",
        );
    }
    assert_eq!(node.cxi("explain busy 9").code, 5);
}

#[test]
fn an_audit_finds_what_is_wrong() {
    let node = MockNode::new();
    let clean = node.cxi("audit");
    clean.ended(0, "No problems found.\n");

    node.cxi("service create -d all --vni=4000").done();
    let said = node.cxi("audit --vni-pool=1024-2047");
    assert_eq!((said.code, said.err.as_str()), (9, ""));
    for part in ["cxi0-1: ", "service 2", "4000"] {
        assert!(said.out.contains(part), "{part}: {}", said.out);
    }
    let said = node.cxi("--json audit --vni-pool=1024-2047");
    let json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let codes: Vec<&str> = json["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|finding| finding["code"].as_str())
        .collect();
    assert!(codes.contains(&"no_members") && codes.contains(&"outside_pool"), "{codes:?}");
}

#[test]
fn an_audit_compares_owners() {
    let node = MockNode::new();
    node.cxi("service create -d all --gid=0 --vni=4000").done();
    let said = node.cxi("audit --range=gid:0=1024-2047 --range=uid:7=2000-3000");
    assert_eq!(said.code, 9, "{}", said.err);
    for part in [
        "cxi0-1: gid 0 and uid 7 are both configured to use VNIs 2000-2047",
        "outside the range of gid 0: 4000; expected 1024-2047",
    ] {
        assert!(said.out.contains(part), "{part}: {}", said.out);
    }
    let said = node.cxi("audit --range=slurm=1-2");
    assert_contains(&said.err, "expected uid:USER=VNIS");
}

#[test]
fn an_audit_remembers_what_was_idle() {
    let node = MockNode::new();
    node.cxi("service create -d all --uid=0 --vni=1024").done();
    let file = node.directory().join("idle.json").display().to_string();
    let file = format!("--idle-file={file}");
    let audit = |after: &str| {
        let after = format!("--idle-after={after}");
        let said = node.cxi(&["--json", "audit", &file, &after]);
        let json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        json["findings"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|finding| finding["code"] == "idle")
            .count()
    };
    assert_eq!(audit("1h"), 0);
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert_eq!(audit("1h"), 0);
    assert_eq!(audit("1ms"), 2);
    assert_eq!(node.cxi("audit --idle-after=1h").code, 2);
}

/// Two jobs with the same VNI can read each other's messages, so there is a warning.
#[test]
fn a_vni_that_another_user_has_is_noticed() {
    let node = MockNode::new();
    node.cxi("service create --uid=1001 --vni=1024,1025").done();
    let warning = |service: u8, uid: u32, nics: &str| {
        format!(
            "warning: {nics}: service {service} (uid {uid}, VNI 1025) and service 2 (uid 1001, VNIs \
             1024,1025) share VNI 1025: their processes can communicate with each other; give \
             each job its own VNIs\n"
        )
    };
    node.cxi("service create --uid=1002 --vni=1025 --limit=txqs=1:1 -d cxi0")
        .warns(&warning(3, 1002, "cxi0"));
    node.cxi("service destroy 3").done();
    node.cxi("job prolog --job=5 --uid=1003 --vni=1025 --cores=1")
        .warns(&warning(3, 1003, "cxi0-1"));
    // The same user, another VNI, and a service that no process can use.
    for more in
        ["--uid=1001 --vni=1024", "--uid=1004 --vni=1026", "--uid=1005 --vni=1025 --disabled"]
    {
        node.cxi(&format!("service create --limit=txqs=1:1 {more}")).done();
    }
}
