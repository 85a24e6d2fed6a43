//! Sources of a pod's VNIs.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use cxi_cni::{Code, Error};
use cxi_test_kit::Pod;
use serde_json::{Value, json};

use crate::pod;
use crate::support::{Site, refused};

fn vnis(site: &Site) -> Vec<String> {
    let services = site.services();
    services.iter().map(|service| service.vnis().to_string()).collect()
}

fn add(site: &Site, pod: &Pod, arguments: &str) -> Result<String, Error> {
    site.call(&[
        ("CNI_COMMAND", "ADD"),
        ("CNI_CONTAINERID", "one"),
        ("CNI_IFNAME", "eth0"),
        ("CNI_NETNS", &pod.netns().display().to_string()),
        ("CNI_ARGS", arguments),
    ])
}

#[test]
fn a_pod_that_asks_for_nothing_passes_untouched() {
    let pod = pod!();
    let site = Site::new()
        .set_cxi("vnis", json!({"source": "args", "allowed": "1024-2047"}))
        .set("prevResult", json!({"cniVersion": "1.1.0", "dns": {}}));
    let answer = add(&site, &pod, "K8S_POD_NAME=a").unwrap();
    assert_eq!(answer, r#"{"cniVersion":"1.1.0","dns":{}}"#);
    assert_eq!((site.services().len(), site.records().len()), (0, 0));
    assert_eq!(site.check("one", &pod).unwrap(), "");
    assert_eq!(site.del("one").unwrap(), "");
}

#[test]
fn the_runtime_asks_in_any_of_three_ways() {
    let pod = pod!();
    let site = || Site::new().set_cxi("vnis", json!({"source": "args", "allowed": "1024-2047"}));
    let asked = || json!({"cxiVnis": [1024, 1025]});
    let by_argument = "CXI_VNIS=1024,1025";
    for (site, arguments) in [
        (site(), by_argument),
        (site().set("runtimeConfig", asked()), ""),
        (site().set("args", json!({"cni": asked()})), by_argument),
    ] {
        add(&site, &pod, arguments).unwrap();
        assert_eq!(vnis(&site), ["1024,1025", "1024,1025"]);
    }
}

#[test]
fn what_is_not_allowed_or_not_clear_does_not_start() {
    let pod = pod!();
    let site = Site::new().set_cxi("vnis", json!({"source": "args", "allowed": "1024-2047"}));
    let said = refused(add(&site, &pod, "CXI_VNIS=1024,2048"), Code::Vni);
    assert_eq!(said, "VNI 2048 is not allowed in this network: expected one of 1024-2047");
    for wrong in ["CXI_VNIS=", "CXI_VNIS=0", "CXI_VNIS=1024;1025", "CXI_VNIS=blue"] {
        refused(add(&site, &pod, wrong), Code::Environment);
    }
    let site = site.set("runtimeConfig", json!({"cxiVnis": [1025]}));
    let said = refused(add(&site, &pod, "CXI_VNIS=1024"), Code::Configuration);
    assert_eq!(said, "the VNIs are requested twice: 1025 and 1024");
    assert_eq!(site.services().len(), 0);
}

#[test]
fn a_file_for_each_pod_is_waited_for_by_the_runtime() {
    let pod = pod!();
    let site = Site::new();
    let directory = site.directory.path().join("agent");
    let path = format!("{}/{{K8S_POD_UID}}/{{ifname}}.json", directory.display());
    let site = site.set_cxi("vnis", json!({"source": "file", "path": path}));
    let status = || site.call(&[("CNI_COMMAND", "STATUS")]);
    refused(status(), Code::NotServing);
    fs::create_dir_all(directory.join("7a")).unwrap();
    status().unwrap();

    let uid = "K8S_POD_UID=7a";
    let said = refused(add(&site, &pod, uid), Code::TryAgain);
    assert!(said.ends_with("eth0.json: the VNIs of the pod are not available yet"), "{said}");
    for (arguments, code) in [
        ("", Code::Configuration),
        ("K8S_POD_UID=..", Code::Configuration),
        ("K8S_POD_UID=/etc", Code::Configuration),
    ] {
        refused(add(&site, &pod, arguments), code);
    }
    let file = directory.join("7a/eth0.json");
    for wrong in ["", "[]", "{}", r#"{"vnis": [0]}"#, r#"{"vnis": [1], "vni": 2}"#] {
        fs::write(&file, wrong).unwrap();
        refused(add(&site, &pod, uid), Code::Decoding);
    }
    fs::write(&file, r#"{"vnis": []}"#).unwrap();
    add(&site, &pod, uid).unwrap();
    assert_eq!(site.services().len(), 0);
    fs::write(&file, r#"{"vnis": [1026]}"#).unwrap();
    add(&site, &pod, uid).unwrap();
    assert_eq!(vnis(&site), ["1026", "1026"]);
}

/// A site whose VNIs come from a shell script.
fn with_program(script: &str, seconds: u32) -> Site {
    let site = Site::new();
    let program = site.directory.path().join("program");
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let source: Value = json!({"source": "exec", "program": program, "timeoutSeconds": seconds});
    site.set_cxi("vnis", source)
}

#[test]
fn a_program_is_asked_and_told_when_nothing_is_left() {
    let pod = pod!();
    let site = with_program(
        r#"cd "${0%/*}" || exit
           echo "$CNI_COMMAND $CXI_NETWORK $CNI_CONTAINERID $CNI_IFNAME" >> calls
           [ -e broken ] && echo "the server is away" >&2 && exit 1
           [ "$CNI_COMMAND" = DEL ] || echo '{"vnis": [1027]}'"#,
        10,
    );
    site.call(&[("CNI_COMMAND", "STATUS")]).unwrap();
    let broken = site.directory.path().join("broken");
    let calls = || fs::read_to_string(site.directory.path().join("calls")).unwrap();
    fs::write(&broken, "").unwrap();
    let said = refused(site.add("one", &pod), Code::TryAgain);
    assert!(said.ends_with("exit status: 1\nthe server is away"), "{said}");
    fs::remove_file(&broken).unwrap();
    site.add("one", &pod).unwrap();
    assert_eq!(vnis(&site), ["1027", "1027"]);

    // Busy: the VNI is not free, and the program is not notified.
    let before = calls();
    site.fault("cxi0:SVC_DESTROY:EBUSY:times=1");
    refused(site.del("one"), Code::TryAgain);
    assert_eq!(calls(), before);
    // The services are gone, but the program could not be notified: the next DEL does so.
    fs::write(&broken, "").unwrap();
    refused(site.del("one"), Code::TryAgain);
    assert_eq!((site.services().len(), site.records().len()), (0, 1));
    fs::remove_file(&broken).unwrap();
    site.del("one").unwrap();
    assert_eq!(site.records().len(), 0);
    assert!(calls().ends_with("DEL blue one eth0\nDEL blue one eth0\n"), "{}", calls());
}

#[test]
fn a_program_that_hangs_is_not_waited_for() {
    let pod = pod!();
    let said = refused(with_program("sleep 60", 0).add("one", &pod), Code::TryAgain);
    assert!(said.ends_with("did not end within 0 s"), "{said}");
    let said = refused(with_program("echo nothing", 10).add("one", &pod), Code::Decoding);
    assert!(said.contains("program: "), "{said}");
    let site = with_program("true", 10);
    fs::remove_file(site.directory.path().join("program")).unwrap();
    refused(site.add("one", &pod), Code::TryAgain);
    refused(site.call(&[("CNI_COMMAND", "STATUS")]), Code::NotServing);
}
