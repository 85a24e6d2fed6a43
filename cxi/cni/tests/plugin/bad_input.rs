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
        for value in ["../up", "a b", "a:b", "A", ".", "/proc/self/ns/net", "/none"] {
            variables[index].1 = value;
            let allowed = match *name {
                "CNI_CONTAINERID" | "CNI_IFNAME" => value == "A",
                _ => false,
            };
            if !allowed {
                refused(site.call(&variables), Code::Environment);
            }
        }
        let without: Vec<_> = good.into_iter().filter(|(other, _)| other != name).collect();
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

/// A setting in place of the usual one, the code, and a part of what is said.
const WRONG: &str = r#"cxi | null | Configuration | no object cxi
name | "a/b" | Configuration | name of the network
cxi.core | 4 | Decoding | unknown field `core`
cxi.nics | [] | Configuration |
cxi.nics | ["eth0"] | Decoding |
cxi.vnis | {"source": "static", "vnis": []} | Configuration | at least one
cxi.vnis | {"source": "static", "vnis": [0]} | Decoding | 1 to 65535
cxi.vnis | {"source": "static", "vnis": [1, 2, 3, 4, 5]} | Configuration | 4
cxi.vnis | {"source": "static"} | Decoding | vnis
cxi.vnis | {"source": "etcd"} | Decoding | etcd
cxi.vnis | {"source": "args"} | Decoding | allowed
cxi.vnis | {"source": "file", "path": "x"} | Configuration | absolute
cxi.vnis | {"source": "exec", "program": "x"} | Configuration | absolute"#;

#[test]
fn each_setting_is_checked() {
    let pod = pod!();
    for line in WRONG.lines() {
        let [setting, value, code, expected] =
            line.split('|').map(str::trim).collect::<Vec<_>>()[..]
        else {
            panic!("{line}");
        };
        let value = serde_json::from_str(value).unwrap();
        let site = match setting.strip_prefix("cxi.") {
            Some(setting) => Site::new().set_cxi(setting, value),
            None => Site::new().set(setting, value),
        };
        let code = match code {
            "Configuration" => Code::Configuration,
            "Decoding" => Code::Decoding,
            other => panic!("{other}"),
        };
        let said = refused(site.add("one", &pod), code);
        assert!(said.contains(expected), "{line}: {said}");
        assert_eq!(site.services().len(), 0, "{line}");
    }
}

/// The default service's VNIs are a mistake, unless the configuration says that they are meant.
#[test]
fn a_pod_gets_no_vni_of_the_default_service_by_accident() {
    let pod = pod!();
    for vnis in ["[1]", "[10]", "[1024, 10]"] {
        let site = || {
            let vnis: Value = serde_json::from_str(vnis).unwrap();
            Site::new().set_cxi("vnis", json!({"source": "static", "vnis": vnis}))
        };
        let said = refused(site().add("one", &pod), Code::Configuration);
        assert!(said.contains("is one of the default service's"), "{vnis}: {said}");
        let allowed = site().set_cxi("allowDefaultVnis", json!(true));
        allowed.add("one", &pod).unwrap();
        assert!(!allowed.services().is_empty(), "{vnis}");
    }
}
