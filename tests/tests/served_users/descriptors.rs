//! A program that opens devices endlessly is refused, and does not delay others.

use crate::need_node;
use crate::node::{self, CLIENT, DEVICE, Served, errors, printed};

#[test]
fn open_files_are_bounded_by_what_the_server_may_have() {
    need_node!();
    // What a login has is not the bound.
    let node = Served::after("ulimit -Sn 48");
    assert_eq!(printed(&node.enter(&[CLIENT, "open", DEVICE, "100"])), "ok");
}

#[test]
fn who_opens_without_end_is_refused_and_the_node_goes_on() {
    need_node!();
    let node = Served::after("ulimit -n 64");
    let output = node.enter(&[CLIENT, "open", DEVICE, "100"]);
    let error = errors(&output);
    // A file takes a descriptor of the server for the memory behind its windows, if it has any.
    let bounded = node.nic()["windows"] == "mappable";
    assert_eq!(error.contains("Too many open files"), bounded, "{error}");
    assert_eq!(output.status.success(), !bounded);
    assert_eq!(printed(&node.enter(&[CLIENT, "cycle", DEVICE])), "ok");
    assert_eq!(node.state()["stats"]["lni"], 0);
}
