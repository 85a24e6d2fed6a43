//! `cxi explain` and `cxi audit`.

mod common;

use std::io::Write as _;
use std::process::Stdio;

use common::{MockNode, POOL_NOTE, Said, assert_contains, command, cxi};
use tempfile::TempDir;

/// The command with this on its standard input.
fn fed(arguments: &[&str], input: &str) -> Said {
    let mut child = command(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap().into()
}

#[test]
fn an_errno_is_explained_with_commands_and_causes() {
    let text = cxi("explain ENOSPC").done();
    for part in [
        "ENOSPC (28, No space left on device): Not enough of a resource is left: on the NIC for what \
         the service reserves, or in the service for what a process allocates.",
        "\n    cxi devices\n    cxi service usage\n    cxi job plan --cores N\n",
        "\n  By what was attempted:\n",
        "\n  - LNI_ALLOC: all 255 RGIDs of the NIC are in use. ",
    ] {
        assert_contains(&text, part);
    }
    assert_contains(&cxi("explain EEXIST").done(), "with shs-13.0, shs-13.1, shs-14.0.0: ");
    // Only what concerns the driver of this node.
    for (release, first) in [
        ("shs-13.1", "with shs-13.0, shs-13.1, shs-14.0.0: Another service has one of the VNIs"),
        ("shs-12.0", "A range of VNIs overlaps"),
    ] {
        let said = cxi(&format!("explain SVC_ALLOC: EEXIST --mock --mock-release={release}"));
        let start = format!("EEXIST (17, File exists) from SVC_ALLOC: {first}");
        assert!(said.out.starts_with(&start), "{said:?}");
    }
    let pasted = cxi(&[
        "explain",
        "error: cxi0: SVC_DESTROY: the driver refused with ebusy (Device or resource busy)",
        "--json",
    ]);
    let json = pasted.json();
    assert_eq!(json["errnos"][0]["number"], 16);
    assert_eq!(json["errnos"][0]["command"], "SVC_DESTROY");
    assert_eq!(json["errnos"][0]["commands"][0], "cxi explain busy ID");
    cxi("explain opne 3").failed(5, "error: 'opne 3' names no error\n  Expected a message");
}

#[test]
fn a_message_may_come_in_words_a_file_or_a_pipe() {
    let says = |said: Said, start: &str| {
        let text = said.done();
        assert!(text.starts_with(start), "{text}");
    };
    let lni = "ENOSPC (28, No space left on device) from allocating an LNI of a service: ";
    says(cxi("explain cxip_alloc_lni: Failed to allocate LNI, ret: -28"), lni);
    says(cxi("explain -61"), "ENODATA (61, No data available): ");
    says(cxi("explain -d cxi0 -61"), "ENODATA (61, No data available): ");
    let fi_domain = "cxip_domain: cxip_gen_auth_key failed: -38:Function not implemented";
    let enosys = "ENOSYS (38, Function not implemented) from choosing a service and a VNI: ";
    says(cxi(&format!("explain {fi_domain}")), enosys);
    says(cxi("explain failed: -38:Function not implemented"), "ENOSYS (38, ");
    let directory = TempDir::new().unwrap();
    let log = directory.path().join("slurm-17.out");
    std::fs::write(&log, format!("step 1\n\u{fffd}{fi_domain}\n")).unwrap();
    says(cxi(&["explain", log.to_str().unwrap()]), enosys);
    says(fed(&["explain", "-"], fi_domain), enosys);
    // Words that are also the names of subcommands.
    says(cxi("explain service 5 is disabled"), "EKEYREVOKED (128, ");
    says(cxi("explain open /dev/cxi0: Permission denied"), "EACCES (13, ");
    says(cxi("explain job 17 failed: File exists"), "EEXIST (17, ");
    let json = cxi("explain service 5 is disabled --json").json();
    assert_eq!(json["errnos"][0]["name"], "EKEYREVOKED");
    // What is no message is an error of the command line.
    assert_eq!(cxi("explain busy nonsense").code, 2);
    let escapes = cxi(&["explain", "nothing\u{1b}[31m"]);
    escapes.failed(5, "error: 'nothing\u{fffd}[31m' names no error");
}

#[test]
fn a_service_that_cannot_be_made_is_explained_and_none_is_left() {
    let node = MockNode::new();
    let all = ["explain", "create", "--uid=1001", "--vni=1024"];
    node.cxi(&all).prints("cxi0-1: OK: a test service was created and removed\n");
    for vni in ["1025", "1026", "1027"] {
        let vni = format!("--vni={vni}");
        let create = ["service", "create", "-d", "cxi0", "--uid=1001", &vni];
        node.cxi(&[&create[..], &["--limit=tles=8:8"]].concat()).done();
    }
    let said = node.cxi(&[&all[..], &["--limit=tles=8:8"]].concat());
    assert_eq!((said.code, said.err.as_str()), (7, ""));
    for part in [
        "cxi1: OK: a test service was created and removed\ncxi0: SVC_ALLOC: ",
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
            "cxi0: service 2 (for uid 0, VNI 1024): none of its resources are in use; no visible \
         process has the NIC open\n",
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

#[test]
fn a_block_in_the_pool_is_named_as_several() {
    MockNode::new()
        .cxi("service create --uid=1007 --vni-range=1040-1047")
        .mentions(0, "warning: VNIs 1040-1047 are in the scheduler's pool (1024-65535): ");
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
    let create = "service create --uid=1002 --vni=1025 --limit=txqs=1:1 -d cxi0";
    let said = node.cxi(create);
    assert_contains(&said.err, &warning(3, 1002, "cxi0"));
    // A scheduler may give a job that VNI, unless its pool is another one.
    said.mentions(0, "warning: VNI 1025 is in the scheduler's pool (1024-65535): ");
    said.mentions(0, POOL_NOTE);
    node.cxi("service create --uid=1002 --vni=900 -d cxi1").warns("");
    node.cxi("service destroy 3 -d cxi1").done();
    node.cxi("service destroy 3").done();
    node.cxi("job prolog --job=5 --uid=1003 --vni=1025 --cores=1")
        .mentions(0, "warning: cxi1: service 2 (uid 1001, VNIs 1024,1025) has a VNI of the job: ");
    // The same user, another VNI, and a service that no process can use.
    for more in
        ["--uid=1001 --vni=1024", "--uid=1004 --vni=1026", "--uid=1005 --vni=1025 --disabled"]
    {
        node.cxi(&format!("service create --limit=txqs=1:1 {more}")).done();
    }
}
