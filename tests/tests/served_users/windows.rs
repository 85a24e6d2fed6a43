//! Windows of served devices: whose they are, and how long.

use cxi_tests::node::{self, DEVICE, Served, client, errors, need_node, printed};

#[test]
fn a_file_maps_its_own_windows_only() {
    need_node!();
    let node = Served::start(&[]);
    let mapped = printed(&node.enter(&[client(), "windows", DEVICE]));
    let mappable = node.nic()["windows"] == "mappable";
    assert_eq!(mapped, if mappable { "mapped" } else { "ENODEV" });
    assert_eq!(node.state()["stats"]["lni"], 0);
}

#[test]
fn a_mapped_window_keeps_its_file_open() {
    need_node!(node::windows());
    let node = Served::start(&[]);
    assert_eq!(printed(&node.enter(&[client(), "map", DEVICE])), "ok");
    assert_eq!(node.state()["stats"]["lni"], 0);
    assert_eq!(node.state()["svc_count"], 1);
}

/// A doorbell reads the same in an exchange whether a store is trapped or polled.
#[test]
fn a_doorbell_can_be_exchanged() {
    need_node!(node::windows());
    for (doorbells, times) in [("trap", "3"), ("poll", "1")] {
        let node = Served::start(&["--doorbells", doorbells]);
        let output = node.enter(&[client(), "doorbell", DEVICE, times]);
        assert_eq!(printed(&output), "ok", "{doorbells}");
    }
}

#[test]
fn a_doorbell_belongs_to_one_open_file() {
    need_node!(node::windows());
    let node = Served::start(&[]);
    let output = node.enter(&[client(), "borrow", DEVICE]);
    // The number of SIGBUS is 7.
    assert_eq!(output.status.code(), Some(128 + 7), "{}", errors(&output));
}

#[test]
fn an_inode_that_is_open_is_busy() {
    need_node!(node::windows());
    let client = client();
    let node = Served::start(&[]);
    let again = format!("exec 3<>{DEVICE}; {client} count {DEVICE}; exec 4<>/proc/self/fd/3");
    let output = node.enter(&["sh", "-c", &again]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1\n");
    let error = errors(&output);
    assert!(error.contains("busy"), "{error}");
}
