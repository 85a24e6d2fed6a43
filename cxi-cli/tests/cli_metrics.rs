//! `cxi metrics` and `cxi top`.

mod common;

use std::fs::{self, File};
use std::io::Read as _;
use std::process::Stdio;

use common::{MockNode, command};
use nix::pty::openpty;
use serde_json::Value;

/// A node with a job of user 1000 that a pool knows as 4711.
fn node_with_a_job() -> (MockNode, String) {
    let node = MockNode::new();
    let pool = format!("--pool={}", node.directory().join("pool.json").display());
    node.cxi(&["vni", &pool, "configure", "1024-2047"]).done();
    node.cxi(&["vni", &pool, "reserve", "4711"]).done();
    node.cxi(&["job", "prolog", "--uid=1000", "--vni=1024", "--cores=4"])
        .done();
    (node, pool)
}

/// A sample: its name and labels, and its value.
fn samples(text: &str) -> Vec<(&str, u32)> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let split = |line| str::rsplit_once(line, ' ').unwrap();
    lines
        .map(split)
        .map(|(name, value)| (name, value.parse().unwrap()))
        .collect()
}

#[test]
fn numbers_say_what_the_other_commands_say() {
    let (node, pool) = node_with_a_job();
    let text = node.cxi(&["metrics", &pool]).done();
    let samples = samples(&text);
    for wanted in [
        ("cxi_nic_usable{device=\"cxi0\"}", 1),
        (
            "cxi_resource_total{device=\"cxi1\",resource=\"txqs\"}",
            1024,
        ),
        (
            "cxi_resource_reserved{device=\"cxi1\",resource=\"txqs\"}",
            8,
        ),
        (
            "cxi_service_info{device=\"cxi0\",members=\"uid 1000\",service=\"2\",system=\"false\",\
             vnis=\"1024\"}",
            1,
        ),
        (
            "cxi_service_reserved{device=\"cxi0\",resource=\"txqs\",service=\"2\"}",
            8,
        ),
        (
            "cxi_service_in_use{device=\"cxi0\",resource=\"txqs\",service=\"2\"}",
            0,
        ),
        ("cxi_service_enabled{device=\"cxi0\",service=\"1\"}", 0),
        ("cxi_vni_pool_vnis{state=\"free\"}", 1023),
        ("cxi_vni_pool_vnis{state=\"reserved\"}", 1),
        ("cxi_vni_pool_jobs", 1),
    ] {
        assert!(samples.contains(&wanted), "{wanted:?} in\n{text}");
    }
    // Each name is described once, and has its samples together.
    let mut described: Vec<_> = text
        .lines()
        .filter(|line| line.starts_with("# TYPE "))
        .collect();
    let count = described.len();
    described.dedup();
    described.sort_unstable();
    described.dedup();
    assert_eq!(described.len(), count);

    node.cxi(&["service", "create", "--uid=1001", "--vni=500"])
        .done();
    let text = node.cxi(&["metrics", &pool]).done();
    let left = "cxi_findings{code=\"outside_pool\",device=\"cxi0\",severity=\"warning\"} 1";
    assert!(text.contains(left), "{text}");
    let without = node.cxi(&["metrics", "--pool=/nowhere"]).done();
    assert!(!without.contains("cxi_vni_pool"));
}

#[test]
fn a_collector_reads_a_whole_file() {
    let (node, pool) = node_with_a_job();
    let path = node.directory().join("cxi.prom");
    let output = format!("--output={}", path.display());
    assert_eq!(node.cxi(&["metrics", &pool, &output]).done(), "");
    let file = fs::read_to_string(&path).unwrap();
    assert_eq!(file, node.cxi(&["metrics", &pool]).done());
}

#[test]
fn who_uses_most_stands_first() {
    let (node, pool) = node_with_a_job();
    let text = node.cxi(&["top", &pool]).done();
    let lines: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(lines[0][..5], ["Share", "Job", "Who", "VNIs", "NICs"]);
    assert_eq!(
        lines[1][..6],
        ["0.0%", "4711", "uid", "1000", "1024", "cxi0-1"]
    );
    let json: Value = node.cxi(&["--json", "top", &pool]).json();
    assert_eq!(json["users"][0]["job"], "4711");
    assert_eq!(
        json["users"].as_array().unwrap().len(),
        1,
        "disabled services use nothing"
    );
}

#[test]
fn a_terminal_is_shown_it_again_and_again() {
    let (node, pool) = node_with_a_job();
    let terminal = openpty(None, None).unwrap();
    let mock = format!("--mock={}", node.file().display());
    let mut top = command(&[&mock, "top", &pool, "--interval=10ms"])
        .stdin(Stdio::null())
        .stdout(terminal.slave)
        .spawn()
        .unwrap();
    let mut screen = File::from(terminal.master);
    let mut text = Vec::new();
    let clear = b"\x1b[H\x1b[2J";
    while text
        .windows(clear.len())
        .filter(|bytes| bytes == clear)
        .count()
        < 3
    {
        let mut bytes = [0; 4096];
        let count = screen.read(&mut bytes).unwrap();
        text.extend(&bytes[..count]);
    }
    top.kill().unwrap();
    top.wait().unwrap();
    assert!(String::from_utf8_lossy(&text).contains("4711"));
}
