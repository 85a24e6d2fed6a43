//! Windows of served devices: whose they are, and how long.

use crate::need_node;
use crate::node::{self, CLIENT, DEVICE, Served, printed, skip};

/// A node on which windows can be mapped; says why if there is none.
fn node(options: &[&str]) -> Option<Served> {
    let node = Served::start(options);
    let mapped = printed(&node.enter(&[CLIENT, "windows", DEVICE]));
    let windows = node.nic()["windows"].clone();
    let windows = windows.as_str().expect("a text");
    if windows == "mappable" {
        assert_eq!(mapped, "mapped");
        return Some(node);
    }
    assert_eq!(mapped, "ENODEV", "{windows}");
    skip(&format!("the kernel passes no windows through: {windows}"));
    None
}

#[test]
fn a_file_maps_its_own_windows_only() {
    need_node!();
    let Some(node) = node(&[]) else { return };
    assert_eq!(node.state()["stats"]["lni"], 0);
}

#[test]
fn a_mapped_window_keeps_its_file_open() {
    need_node!();
    let Some(node) = node(&[]) else { return };
    assert_eq!(printed(&node.enter(&[CLIENT, "map", DEVICE])), "ok");
    assert_eq!(node.state()["stats"]["lni"], 0);
    assert_eq!(node.state()["svc_count"], 1);
}

/// What an exchange reads is the same whether a store is trapped or polled.
#[test]
fn a_doorbell_can_be_exchanged() {
    need_node!();
    for (doorbells, times) in [("trap", "3"), ("poll", "1")] {
        let Some(node) = node(&["--doorbells", doorbells]) else {
            return;
        };
        let output = node.enter(&[CLIENT, "doorbell", DEVICE, times]);
        assert_eq!(printed(&output), "ok", "{doorbells}");
    }
}

#[test]
fn an_inode_that_is_open_is_busy() {
    need_node!();
    let Some(node) = node(&[]) else { return };
    let again = format!("exec 3<>{DEVICE}; {CLIENT} count {DEVICE}; exec 4<>/proc/self/fd/3");
    let output = node.enter(&["sh", "-c", &again]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1\n");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("busy"), "{error}");
}
