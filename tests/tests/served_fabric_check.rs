//! `cxi fabric check` on clusters of mock nodes, with the troubles that it is for.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use cxi_test_kit::Directory;
use cxi_tests::node::{self, Run as _, Served, need_node, printed, server};
use serde_json::Value;

const CXI: &str = env!("CARGO_BIN_EXE_test-cxi");
/// Of most checks.
const SILENCE: &str = "--silence=1s";

/// Nodes, each with a service for everyone on VNI 1024.
fn cluster(nodes: usize, nics: usize, door: &str) -> Served {
    let (nodes_text, nics) = (nodes.to_string(), nics.to_string());
    let cluster = Served::cluster(&["--nodes", &nodes_text, "--nics", &nics, "--door", door]);
    for node in 1..=nodes {
        create(&cluster, &format!("n{node}"), "1024");
    }
    cluster
}

fn create(cluster: &Served, node: &str, vni: &str) {
    printed(&cluster.on(node, &[CXI, "-q", "service", "create", "--uid=0", "--vni", vni]));
}

/// The check on one node.
fn check(cluster: &Served, node: &str, nodes: usize, directory: &str, more: &[&str]) -> Command {
    let list = format!("n[1-{nodes}]");
    let mut command = cluster.command_on(
        node,
        &[
            &[CXI, "fabric", "check", "--json", "--directory", directory, "--nodes", &list][..],
            &["--node", node, "--pings=4"],
            more,
        ]
        .concat(),
    );
    command.stderr(Stdio::null());
    command
}

/// Checks on all nodes, and what the first one prints. `more` are options of some node.
fn checked(cluster: &Served, nodes: usize, more: (&str, &[&str])) -> Value {
    let directory = Directory::new();
    let path = directory.join("");
    let names: Vec<String> = (1..=nodes).map(|node| format!("n{node}")).collect();
    let start = |node: &String| {
        let options: &[&str] = if node == more.0 { more.1 } else { &["--vni=1024"] };
        check(cluster, node, nodes, &path, &[&["--wait=20s", SILENCE], options].concat()).start()
    };
    let results = results(names.iter().map(start).collect());
    assert_eq!(results.len(), 1, "{results:?}");
    // From the files, anybody finds the same.
    let shown = server(["enter", "--dir", &cluster.dir(), "--node", "n1", "--", CXI])
        .args(["fabric", "show", "--json", &path])
        .run();
    let shown: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
    assert_eq!(shown, results[0]);
    let picture = ["fabric", "show", "--svg", &path];
    let picture = cluster.on("n1", &[&[CXI][..], &picture].concat());
    assert!(printed(&picture).starts_with("<svg"));
    results.into_iter().next().expect("one")
}

/// The results that these checks print; the others print that they are done.
fn results(running: Vec<Child>) -> Vec<Value> {
    let outputs = running.into_iter().map(|child| child.wait_with_output().expect("it ends"));
    let said = outputs.map(|output| serde_json::from_slice(&output.stdout).expect("JSON"));
    said.filter(|said: &Value| said.get("nics").is_some()).collect()
}

/// Findings of each node about itself, with its exit code. Each asks two others.
fn own_findings(cluster: &Served, nodes: usize) -> Vec<(String, i32, Value)> {
    let directory = Directory::new();
    let path = directory.join("");
    let options = ["--vni=1024", "--wait=20s", SILENCE, "--this-node", "--partners=2", "--seed=1"];
    let start = |node: String| {
        let child = check(cluster, &node, nodes, &path, &options).start();
        (node, child)
    };
    let running: Vec<_> = (1..=nodes).map(|node| start(format!("n{node}"))).collect();
    let own = running.into_iter().map(|(node, child)| {
        let output = child.wait_with_output().expect("it ends");
        let said = serde_json::from_slice(&output.stdout).expect("JSON");
        (node, output.status.code().expect("it exits"), said)
    });
    let own = own.collect();
    let asked = std::fs::read(directory.join("n4.asked.json")).expect("the node's word");
    let asked: Value = serde_json::from_slice(&asked).expect("JSON");
    let of_nic = asked["nics"].as_object().expect("NICs").values().next().expect("one");
    assert_eq!(of_nic.as_object().expect("nodes").len(), 2, "{asked}");
    own
}

/// The nodes to blame, and what the first finding says.
fn blamed(result: &Value) -> (Vec<&str>, &str) {
    let drain = result["drain"].as_array().expect("a list").iter();
    let first = result["findings"][0]["message"].as_str().unwrap_or_default();
    (drain.map(|node| node.as_str().expect("a name")).collect(), first)
}

#[test]
fn all_is_well_on_two_nodes_with_two_nics() {
    for door in node::doors() {
        let cluster = cluster(2, 2, door);
        let result = checked(&cluster, 2, ("", &[]));
        assert_eq!(result["findings"], serde_json::json!([]), "{door}: {result}");
        let nics = result["nics"].as_array().expect("a list");
        for nic in nics {
            assert_eq!(nic["pairs"].as_array().expect("a list").len(), 2);
            assert!(nic["allreduce_ns"].as_u64().is_some_and(|time| time > 0), "{nic}");
        }
        assert_eq!(nics.len(), 2);
    }
}

#[test]
fn each_trouble_is_named() {
    need_node!(node::windows());
    let cluster = cluster(4, 1, "fuse");

    // A service that is missing, and a VNI that is another.
    create(&cluster, "n3", "1025");
    let wrong = checked(&cluster, 4, ("n3", &["--vni=1025"]));
    assert_eq!(blamed(&wrong), (vec!["n3"], "n3 uses VNI 1025, and others VNI 1024"), "{wrong}");
    let missing = checked(&cluster, 4, ("n2", &["--vni=1026"]));
    let said = "no enabled service admits this user to VNI 1026";
    assert_eq!(blamed(&missing), (vec!["n2"], said), "{missing}");
    // The first node of the list, which then is not the one to judge the others.
    let directory = Directory::new();
    let path = directory.join("");
    let start = |node, vni| check(&cluster, node, 2, &path, &["--wait=20s", SILENCE, vni]).start();
    let (without, with) = (start("n1", "--vni=1026"), start("n2", "--vni=1024"));
    let done = without.wait_with_output().expect("it ends");
    let done: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    assert_eq!(done["printed_by"], "n2", "{done}");
    let result = results(vec![with]);
    assert_eq!(blamed(&result[0]), (vec!["n1"], said), "{result:?}");

    // A dead link: the others reach each other.
    printed(&cluster.ctl(&["--node", "n4", "link", "down"]));
    let dead = checked(&cluster, 4, ("", &[]));
    let (drain, said) = blamed(&dead);
    assert_eq!(drain, ["n4"], "{dead}");
    assert!(said.starts_with("is not reached by 3 other nodes: no answer within 1s"), "{said}");
    printed(&cluster.ctl(&["--node", "n4", "link", "up"]));

    // A node that is slow, as each of the nodes finds that is asked for itself.
    printed(&cluster.ctl(&["--node", "n3", "port", "0", "--delay", "25"]));
    let slow = checked(&cluster, 4, ("", &[]));
    assert_eq!(blamed(&slow).0, ["n3"], "{slow}");
    assert!(slow["findings"].to_string().contains("is slow: "), "{slow}");
    let own = own_findings(&cluster, 4);
    assert!(own.iter().all(|(node, code, _)| *code == if node == "n3" { 9 } else { 0 }), "{own:?}");
    assert!(own[2].2["findings"].to_string().contains("is slow: "), "{own:?}");
    assert_eq!(own[0].2["findings"], serde_json::json!([]), "{own:?}");
    printed(&cluster.ctl(&["--node", "n3", "port", "0", "--delay", "0"]));

    // A port that loses packets, more than the NIC repeats in time.
    printed(&cluster.ctl(&["--node", "n2", "port", "0", "--loss", "30%"]));
    let lossy = checked(&cluster, 4, ("", &[]));
    let said = lossy["findings"].to_string();
    assert!(said.contains("messages were repeated for"), "{lossy}");
    printed(&cluster.ctl(&["--node", "n2", "port", "0", "--loss", "0"]));

    // Two nodes that do not reach each other: nobody can tell which is to blame.
    printed(&cluster.ctl(&["partition", "n1", "n2"]));
    let apart = checked(&cluster, 4, ("", &[]));
    let (drain, said) = blamed(&apart);
    assert_eq!(drain, Vec::<&str>::new(), "{apart}");
    assert!(said.contains("does not reach"), "{said}");
    printed(&cluster.ctl(&["heal"]));
}

#[test]
fn a_node_that_does_not_come_or_does_not_stay_is_named() {
    need_node!(node::windows());
    let cluster = cluster(3, 1, "fuse");
    let directory = Directory::new();
    let path = directory.join("");
    let start = |node: &str| check(&cluster, node, 4, &path, &["--wait=4s", SILENCE]).start();
    let (first, second, mut third) = (start("n1"), start("n2"), start("n3"));
    let arrived = || directory.path().join("n3.arrival.json").exists();
    node::eventually("n3 has come", arrived);
    std::thread::sleep(Duration::from_millis(200));
    node::kill("KILL", third.id());
    let _ = third.wait();
    let output = first.wait_with_output().expect("it ends");
    let _ = second.wait_with_output();
    let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(output.status.code(), Some(9), "{result}");
    let text = result["findings"].to_string();
    assert_eq!(blamed(&result).0, ["n3", "n4"], "{result}");
    assert!(text.contains("came, and did not finish") && text.contains("did not come"), "{text}");
}

#[test]
fn a_node_that_is_away_for_a_moment_is_asked_again() {
    need_node!(node::windows());
    let cluster = cluster(4, 1, "fuse");
    let directory = Directory::new();
    let path = directory.join("");
    let options = ["--wait=20s", "--silence=2s"];
    let start = |node: usize| check(&cluster, &format!("n{node}"), 4, &path, &options).start();
    let mut running: Vec<_> = (1..=3).map(start).collect();
    for node in 1..=3 {
        let arrival = directory.path().join(format!("n{node}.arrival.json"));
        node::eventually("it has come", || arrival.exists());
    }
    // The check begins when the last one comes; the third node does not see it for longer than the silence.
    let third = running[2].id();
    node::kill("STOP", third);
    running.push(start(4));
    let started = directory.path().join("start.json");
    node::eventually("the check has begun", || started.exists());
    std::thread::sleep(Duration::from_millis(2500));
    node::kill("CONT", third);
    let results = results(running);
    let result = results.first().expect("a result");
    assert_eq!(result["findings"], serde_json::json!([]), "{result}");
}

/// File systems of a network show a file to each node at another time.
#[test]
fn a_node_that_learns_late_that_all_begin_together_is_waited_for() {
    for door in node::doors() {
        let cluster = cluster(2, 1, door);
        let [of_first, of_second] = [Directory::new(), Directory::new()];
        // Files are shown whole, as the nodes write them.
        let show = |name: &str, from: &Directory, to: &Directory| {
            let (from, partial) = (from.path().join(name), to.path().join("partial"));
            node::eventually(name, || from.exists());
            std::fs::copy(from, &partial).expect("the file can be copied");
            std::fs::rename(partial, to.path().join(name)).expect("the file can be renamed");
        };
        let start = |node, directory: &Directory| {
            let options = ["--vni=1024", "--wait=20s", SILENCE];
            check(&cluster, node, 2, &directory.join(""), &options).start()
        };
        let running = vec![start("n1", &of_first), start("n2", &of_second)];
        show("n2.arrival.json", &of_second, &of_first);
        show("start.json", &of_first, &of_second);
        show("n1.arrival.json", &of_first, &of_second);
        show("n2.asked.json", &of_second, &of_first);
        let asked = of_first.path().join("n1.asked.json");
        node::eventually("the first node has asked", || asked.exists());
        std::thread::sleep(Duration::from_millis(2500));
        show("n1.asked.json", &of_first, &of_second);
        show("n2.together.json", &of_second, &of_first);
        show("n1.together.json", &of_first, &of_second);
        let results = results(running);
        let result = results.first().expect("a result");
        assert_eq!(result["findings"], serde_json::json!([]), "{door}: {result}");
        assert!(result["nics"][0]["allreduce_ns"].is_u64(), "{door}: {result}");
    }
}

#[test]
fn two_checks_at_a_time_do_not_disturb_each_other() {
    need_node!(node::windows());
    let cluster = cluster(2, 1, "fuse");
    let directories = [Directory::new(), Directory::new()];
    let paths = directories.each_ref().map(|directory| directory.join(""));
    let options = ["--wait=20s", SILENCE];
    let both = |path: &String| [1, 2].map(|node| (format!("n{node}"), path.clone()));
    let running: Vec<_> = paths
        .iter()
        .flat_map(both)
        .map(|(node, path)| check(&cluster, &node, 2, &path, &options).start())
        .collect();
    let results = results(running);
    assert_eq!(results.len(), 2, "{results:?}");
    for result in results {
        assert_eq!(result["findings"], serde_json::json!([]), "{result}");
        assert_eq!(result["nics"][0]["pairs"].as_array().expect("a list").len(), 2);
    }
}
