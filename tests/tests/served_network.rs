//! Devices of a node with its own network namespace, as users of netlink see them.

use cxi_tests::node::{Served, need_node, printed, script};

#[test]
fn devices_have_the_address_and_the_size_that_sysfs_says() {
    need_node!(cxi_test_kit::has("ip"));
    let text = script(
        &["--network", "--nics", "2"],
        "ls /sys/class/net; \
         cd /sys/class/net/hsn1; address=$(cat address) mtu=$(cat mtu) index=$(cat ifindex); \
         ip -o link show dev hsn1 | grep -c \"^$index: hsn1.* mtu $mtu .*$address\"; \
         ip -o link show up | cut -d: -f2 | cut -d@ -f1",
    );
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    assert_eq!(lines, ["hsn0", "hsn1", "lo", "1", "lo", "hsn0", "hsn1"]);
}

#[test]
fn the_link_and_the_device_come_and_go_with_the_nic() {
    need_node!(cxi_test_kit::has("ip"));
    let node = Served::start(&["--network"]);
    let show = || node.enter(&["ip", "-o", "link", "show", "dev", "hsn0"]);
    assert!(printed(&show()).contains(",LOWER_UP>"));
    node.order(&["link", "down", "0"]);
    assert!(printed(&show()).contains("<NO-CARRIER,"));
    node.order(&["unplug", "0"]);
    assert!(!show().status.success());
    node.order(&["link", "up", "0"]);
    node.order(&["plug", "0"]);
    assert!(printed(&show()).contains(",LOWER_UP>"));
}

#[test]
fn without_the_option_the_network_is_that_of_the_launcher() {
    need_node!();
    let inside = script(&[], "readlink /proc/self/ns/net");
    let here = std::fs::read_link("/proc/self/ns/net").expect("a namespace");
    assert_eq!(inside, here.display().to_string());
    assert_ne!(inside, script(&["--network"], "readlink /proc/self/ns/net"));
}
