//! Calls that no correct runtime makes, and configurations that say nothing sensible.

use std::path::Path;

use cxi_cni::{Code, Version};
use serde_json::{Value, json};

use crate::pod;
use crate::support::{Site, refused};

#[test]
fn the_version_is_asked_for_without_a_configuration() {
    let site = Site::new();
    let answer = site.call(&[("CNI_COMMAND", "VERSION")]).unwrap();
    assert_eq!(
        answer,
        r#"{"cniVersion":"1.1.0","supportedVersions":["0.3.1","0.4.0","1.0.0","1.1.0"]}"#
    );
    let site = site.set("cniVersion", json!("0.4.0"));
    let answer = site.call(&[("CNI_COMMAND", "VERSION")]).unwrap();
    assert!(answer.starts_with(r#"{"cniVersion":"0.4.0""#), "{answer}");
}

#[test]
fn a_command_that_the_version_does_not_have_is_refused() {
    for (version, command, ok) in [
        ("0.3.1", "CHECK", false),
        ("0.4.0", "CHECK", true),
        ("1.0.0", "STATUS", false),
        ("1.1.0", "STATUS", true),
        ("1.0.0", "GC", false),
        ("0.2.0", "DEL", false),
        ("2.0.0", "DEL", false),
    ] {
        let site = Site::new().set("cniVersion", json!(version));
        let answer = site.pod(command, "one", "eth0", Path::new("/proc/self/ns/net"));
        let refused = answer.is_err_and(|error| error.code() == Code::Version);
        assert_eq!(refused, !ok, "{version} {command}");
    }
}

#[test]
fn an_error_is_what_cni_wants() {
    let site = Site::new().set("cniVersion", json!("1.0.0"));
    let error = site.call(&[]).unwrap_err();
    let said: Value = serde_json::from_str(&error.to_json(Version::of(&site.text()))).unwrap();
    assert_eq!(
        said,
        json!({
            "cniVersion": "1.0.0",
            "code": 4,
            "msg": "CNI_COMMAND is not set: expected a call from a container runtime, with the variables of CNI",
        })
    );
}

#[test]
fn each_variable_is_checked() {
    let pod = pod!();
    let site = Site::new();
    let netns = pod.netns().display().to_string();
    let good = [
        ("CNI_COMMAND", "ADD"),
        ("CNI_CONTAINERID", "one"),
        ("CNI_IFNAME", "eth0"),
        ("CNI_NETNS", &*netns),
        ("CNI_ARGS", "IgnoreUnknown=1;K8S_POD_NAME=a"),
    ];
    for (index, (name, _)) in good.iter().enumerate() {
        let mut variables = good;
        for value in [
            "../up",
            "a b",
            "a:b",
            "A",
            ".",
            "/proc/self/ns/net",
            "/none",
        ] {
            variables[index].1 = value;
            let allowed = match *name {
                "CNI_CONTAINERID" | "CNI_IFNAME" => value == "A",
                _ => false,
            };
            if !allowed {
                refused(site.call(&variables), Code::Environment);
            }
        }
        let without: Vec<_> = good
            .into_iter()
            .filter(|(other, _)| other != name)
            .collect();
        let answer = site.call(&without);
        if *name == "CNI_ARGS" {
            answer.unwrap();
            site.del("one").unwrap();
        } else {
            refused(answer, Code::Environment);
        }
    }
    assert_eq!((site.services().len(), site.records().len()), (0, 0));
    let long = "c".repeat(300);
    refused(site.add(&long, &pod), Code::Environment);
}

#[test]
fn each_setting_is_checked() {
    let pod = pod!();
    let source = |source: Value| Site::new().set_cxi("vnis", source);
    for (site, code, expected) in [
        (
            Site::new().set("cxi", Value::Null),
            Code::Configuration,
            "no object cxi",
        ),
        (
            Site::new().set("name", json!("a/b")),
            Code::Configuration,
            "name of the network",
        ),
        (
            Site::new().set_cxi("core", json!(4)),
            Code::Decoding,
            "unknown field `core`",
        ),
        (
            Site::new().set_cxi("nics", json!([])),
            Code::Configuration,
            "",
        ),
        (
            Site::new().set_cxi("nics", json!(["eth0"])),
            Code::Decoding,
            "",
        ),
        (
            source(json!({"source": "static", "vnis": []})),
            Code::Configuration,
            "at least one",
        ),
        (
            source(json!({"source": "static", "vnis": [0]})),
            Code::Decoding,
            "1 to 65535",
        ),
        (
            source(json!({"source": "static", "vnis": [1, 2, 3, 4, 5]})),
            Code::Configuration,
            "4",
        ),
        (source(json!({"source": "static"})), Code::Decoding, "vnis"),
        (source(json!({"source": "etcd"})), Code::Decoding, "etcd"),
        (source(json!({"source": "args"})), Code::Decoding, "allowed"),
        (
            source(json!({"source": "file", "path": "x"})),
            Code::Configuration,
            "absolute",
        ),
        (
            source(json!({"source": "exec", "program": "x"})),
            Code::Configuration,
            "absolute",
        ),
    ] {
        let said = refused(site.add("one", &pod), code);
        assert!(said.contains(expected), "{said}");
        assert_eq!(site.services().len(), 0);
    }
}
