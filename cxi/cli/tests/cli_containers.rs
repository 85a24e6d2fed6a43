//! The specifications that `cxi` writes for container runtimes.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use common::MockNode;
use serde_json::{Value, json};

/// Checks the rules of the CDI specification that apply to the output.
#[track_caller]
fn is_valid(specification: &Value) {
    let keys = |value: &Value, allowed: &[&str]| {
        let object = value.as_object().expect("an object");
        let unknown: Vec<_> = object.keys().filter(|key| !allowed.contains(&&***key)).collect();
        assert!(unknown.is_empty(), "{unknown:?} in {value}");
    };
    let edits = |value: &Value| {
        keys(value, &["deviceNodes", "mounts"]);
        assert!(!value.as_object().unwrap().is_empty(), "{value}");
        for node in value["deviceNodes"].as_array().unwrap_or(&Vec::new()) {
            keys(node, &["path", "permissions"]);
            assert!(node["path"].as_str().unwrap().starts_with('/'), "{node}");
            let permissions = node["permissions"].as_str().unwrap();
            assert!(permissions.chars().all(|letter| "rwm".contains(letter)));
        }
        for mount in value["mounts"].as_array().unwrap_or(&Vec::new()) {
            keys(mount, &["hostPath", "containerPath", "options"]);
            for path in ["hostPath", "containerPath"] {
                assert!(mount[path].as_str().unwrap().starts_with('/'), "{mount}");
            }
        }
    };
    keys(specification, &["cdiVersion", "kind", "devices", "containerEdits"]);
    assert_eq!(specification["cdiVersion"], "0.3.0");
    assert_eq!(specification["kind"], "hpe.com/cxi");
    let devices = specification["devices"].as_array().unwrap();
    assert!(!devices.is_empty());
    let mut names = Vec::new();
    for device in devices {
        keys(device, &["name", "containerEdits"]);
        let name = device["name"].as_str().unwrap();
        assert!(name.starts_with(|first: char| first.is_ascii_alphabetic()));
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric()), "{name}");
        assert!(!names.contains(&name), "{name} twice");
        names.push(name);
        edits(&device["containerEdits"]);
    }
    if let Some(every) = specification.get("containerEdits") {
        edits(every);
    }
}

#[test]
fn one_device_for_each_nic_and_one_for_all() {
    let node = MockNode::new();
    let specification = node.cxi("cdi").json();
    is_valid(&specification);
    let nic = |number: u8| json!({"path": format!("/dev/cxi{number}"), "permissions": "rw"});
    let device =
        |name, nodes: &[Value]| json!({"name": name, "containerEdits": {"deviceNodes": nodes}});
    assert_eq!(
        specification["devices"],
        json!([
            device("cxi0", &[nic(0)]),
            device("cxi1", &[nic(1)]),
            device("all", &[nic(0), nic(1)])
        ])
    );
    assert_eq!(specification.get("containerEdits"), None);

    let one = node.cxi("cdi -d cxi1 --mount /opt/cray/lib64").json();
    is_valid(&one);
    assert_eq!(one["devices"], json!([device("cxi1", &[nic(1)]), device("all", &[nic(1)])]));
    assert_eq!(one["containerEdits"]["mounts"][0]["containerPath"], "/opt/cray/lib64");
}

#[test]
fn a_file_is_replaced_as_a_whole_and_everybody_may_read_it() {
    let node = MockNode::new();
    let path = node.directory().join("cdi/hpe.json");
    let output = format!("--output={}", path.display());
    for _ in 0..2 {
        let said = node.cxi(&["cdi", &output]).done();
        assert_eq!(said, format!("{}\n", path.display()));
    }
    let text = fs::read_to_string(&path).unwrap();
    is_valid(&serde_json::from_str(&text).unwrap());
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o644);
    assert_eq!(
        fs::read_dir(path.parent().unwrap()).unwrap().count(),
        1,
        "nothing else stays in the directory"
    );
    let directory = node.directory().display();
    node.cxi(&["cdi", &format!("--output={directory}")]).refused(
        1,
        &format!("error: {directory}: cannot be written: Is a directory (os error 21)"),
    );
    node.cxi("cdi --mount lib").refused(
        2,
        "error: invalid value 'lib' for '--mount <PATH>': expected an absolute path\n\n\
         For more information, try '--help'.",
    );
}
