//! Several nodes on one fabric, each in its own namespaces.

use std::io::{BufRead as _, BufReader};
use std::process::{self, Child, Output, Stdio};
use std::thread::sleep;
use std::time::Instant;
use std::{fs, iter};

use cxi_test_kit::Directory;
use cxi_tests::node::{
    self, DEVICE, OPEN, Run, Served, client, eventually, kill, need_node, printed, refused, server,
    sorted, with_argument,
};
use cxi_tests::traffic::EXCHANGING;

/// Runs a program on every node of a cluster that exists as long.
fn run(options: &[&str], program: &[&str]) -> Output {
    server(["cluster"]).args(options).args(["run", "--"]).args(program).run()
}

#[test]
fn each_node_has_a_name_processes_and_nics_of_its_own() {
    need_node!();
    let script = "echo $CXI_MOCK_RANK of $CXI_MOCK_RANKS $CXI_MOCK_NODE $(hostname) \
                  $(ls -d /proc/[1-9]* | wc -l | awk '{ print ($1 < 9) }') $(ls /dev/shm | wc -l) \
                  $(ls -d /dev/cxi* | wc -l) $(cat /sys/class/cxi/cxi1/device/properties/nid)";
    let output = run(&["--nodes", "3", "--nics", "2"], &["sh", "-c", script]);
    assert_eq!(
        sorted(&output),
        ["0 of 3 n1 n1 1 0 2 0x101", "1 of 3 n2 n2 1 0 2 0x103", "2 of 3 n3 n3 1 0 2 0x105"]
    );
}

#[test]
fn the_status_is_the_highest_and_bad_arguments_are_refused() {
    need_node!();
    let output = run(&["--nodes", "3"], &["sh", "-c", "exit $CXI_MOCK_RANK"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let directory = Directory::new();
    let config = directory.join("nodes.json");
    let refused = |options: &[&str], why: &str| refused(&run(options, &["true"]), why);
    fs::write(&config, r#"[[{"identity": {"nid": 7}}], [{"identity": {"nid": 7}}]]"#).unwrap();
    refused(&["--config", &config], "NIC 0 of node 1 has the fabric address 0x7");
    refused(&["--config", &config, "--nodes", "2"], "leave out --nodes");
    fs::write(&config, "[{}, {}]").unwrap();
    refused(&["--config", &config], "a list of NICs for each node");
    let output = server(["cluster", "--nodes", "2"]).output().unwrap();
    node::refused(&output, "name a directory for it with --dir");
}

#[test]
fn a_configuration_says_each_node() {
    need_node!();
    let directory = Directory::new();
    let config = directory.write("nodes.json", r#"[[{"identity": {"nid": 7}}], [{"identity": {"nid": 8}, "release": "shs-12.0"}, {"identity": {"nid": 9}}]]"#);
    let cluster = Served::cluster(&["--config", &config]);
    let state = cluster.state_of(&[]);
    let addresses = |node: usize| state["nodes"][node]["nic_addresses"].to_string();
    assert_eq!([addresses(0), addresses(1)], ["[7]", "[8,9]"]);
    assert_eq!(state["nodes"][1]["nics"][0]["release"], "shs-12.0");
}

/// Jobs and services of different nodes have the same numbers.
#[test]
fn each_node_has_records_of_its_own() {
    need_node!();
    let cluster = Served::cluster(&["--nodes", "2"]);
    let cxi = |node, arguments: &str| {
        let words = arguments.split(' ');
        let command: Vec<_> = iter::once(env!("CARGO_BIN_EXE_test-cxi")).chain(words).collect();
        printed(&cluster.on(node, &command))
    };
    let services = |node| {
        let state = cluster.state_of(&["--node", node]);
        state["nics"][0]["state"]["svc_count"].clone()
    };
    for node in ["n1", "n2"] {
        cxi(node, "job prolog --job=cxi-mock-1 --uid=0 --vni=2000 --cores=1");
        assert_eq!(services(node), 2);
    }
    for node in ["n1", "n2"] {
        cxi(node, "job epilog --job=cxi-mock-1");
        assert_eq!(services(node), 1);
    }
}

#[test]
fn a_node_that_dies_takes_its_programs_along_and_boots_empty() {
    need_node!();
    let client = client();
    let cluster = Served::cluster(&["--nodes", "2", "--nics", "2"]);
    let word = format!("7{}", process::id());
    let script = format!(
        "setsid sleep {word} & sleep {word} & {client} allocate {DEVICE} 55 0; echo ready; wait"
    );
    let spawn = |node| {
        let mut child = cluster.command_on(node, &["sh", "-c", &script]).start();
        node::wait_ready(&mut child);
        child
    };
    let (mut dying, mut living) = (spawn("n1"), spawn("n2"));
    let services = |node: &str| {
        let state = cluster.state_of(&["--node", node]);
        state["nics"][0]["state"]["svc_count"].as_u64()
    };
    assert_eq!((services("n1"), services("n2")), (Some(2), Some(2)));

    cluster.order(&["--node", "n1", "kill"]);
    let status = dying.wait().expect("it ends");
    assert_eq!(status.code(), Some(137));
    eventually("programs of n1 are left", || with_argument(&word).len() == 2);
    refused(&cluster.on("n1", &["true"]), "n1 is down: boot it");
    assert_eq!(cluster.state_of(&[])["nodes"][0]["up"], false);

    cluster.order(&["--node", "n1", "reboot"]);
    assert_eq!((services("n1"), services("n2")), (Some(1), Some(2)));
    let again = cluster.on("n1", &[client, "allocate", DEVICE, "55", "0"]);
    assert!(again.status.success(), "{again:?}");
    kill("TERM", living.id());
    living.wait().expect("it ends");
    eventually("programs are left", || with_argument(&word).is_empty());
}

/// The launcher is outside of the node's PID namespace.
#[test]
fn a_killed_launcher_leaves_nothing_on_a_node() {
    need_node!();
    let cluster = Served::cluster(&["--nodes", "1"]);
    let word = format!("6{}", process::id());
    let script = format!("setsid sleep {word} & echo ready; exec sleep {word}");
    let command = cluster.command_on("n1", &["sh", "-c", &script]);
    let mut launcher = { command }.start();
    node::wait_ready(&mut launcher);
    kill("KILL", launcher.id());
    launcher.wait().expect("it ends");
    eventually("programs are left", || with_argument(&word).is_empty());
}

/// Threads, descriptors and mounts of a node that died are gone.
#[test]
fn reboots_leak_nothing() {
    need_node!();
    let cluster = Served::cluster(&["--nodes", "2", "--network"]);
    let count = |what: &str| {
        let entries = fs::read_dir(format!("/proc/{}/{what}", cluster.pid()));
        entries.expect("it runs").count()
    };
    let before = (count("task"), count("fd"));
    for _ in 0..5 {
        cluster.order(&["--node", "n2", "reboot"]);
    }
    eventually("threads or descriptors are left", || (count("task"), count("fd")) <= before);
}

/// Other nodes remember the hardware addresses that they have seen.
#[test]
fn a_node_boots_with_the_hardware_address_that_it_had() {
    need_node!(cxi_test_kit::has("python3"));
    let cluster = Served::cluster(&["--nodes", "2", "--network"]);
    let script = "import fcntl, socket\n\
        SIOCGIFHWADDR = 0x8927\n\
        name = b'eth0'.ljust(40, b'\\0')\n\
        print(fcntl.ioctl(socket.socket(), SIOCGIFHWADDR, name)[18:24].hex(':'))\n";
    for (node, address) in [("n1", "02:00:0a:4d:00:01"), ("n2", "02:00:0a:4d:00:02")] {
        cluster.order(&["--node", node, "reboot"]);
        let shown = cluster.on(node, &["python3", "-c", script]);
        assert_eq!(printed(&shown).trim(), address);
    }
}

#[test]
fn programs_run_on_chosen_nodes() {
    need_node!();
    let cluster = Served::cluster(&["--nodes", "3"]);
    let on = |nodes: &[&str]| {
        let mut command = server(["cluster", "run"]);
        command.args(["--dir", &cluster.dir()]).args(nodes);
        let script = "echo $CXI_MOCK_RANK $(hostname)";
        command.args(["--", "sh", "-c", script]).output().unwrap()
    };
    assert_eq!(sorted(&on(&[])), ["0 n1", "1 n2", "2 n3"]);
    assert_eq!(sorted(&on(&["--on", "n3,n1"])), ["0 n3", "1 n1"]);
    cluster.order(&["--node", "n2", "kill"]);
    assert_eq!(sorted(&on(&[])), ["0 n1", "1 n3"]);
    assert!(!on(&["--on", "n9"]).status.success());
    // A query inside a node is about that node.
    let inside = cluster.on("n3", &[node::cxi_mock(), "ctl", "link", "down"]);
    assert!(inside.status.success(), "{inside:?}");
    let up = |node: &str| cluster.state_of(&["--node", node])["nics"][0]["link_up"].clone();
    assert_eq!((up("n1"), up("n3")), (true.into(), false.into()));
}

#[test]
fn orders_without_a_node_say_so() {
    need_node!();
    let cluster = Served::cluster(&["--nodes", "2"]);
    let refused = |order: &[&str], why: &str| refused(&cluster.ctl(order), why);
    refused(&["tick"], "no node named: expected --node with n1 to n2");
    refused(&["kill"], "no node named");
    refused(&["--node", "n3", "tick"], "no node n3: expected n1 to n2");
    refused(&["partition", "n1", "n5"], "no node n5");
    refused(&["--node", "n1", "port", "7", "--loss", "1"], "there is no NIC 7");
    for order in [
        &["partition", "n1", "n2"] as &[&str],
        &["heal"],
        &["fabric", "--loss", "0.5", "--seed", "7"],
        &["fabric"],
        &["--node", "n1", "port", "0", "--loss", "0.1"],
        &["fault", "SVC_DESTROY:EBUSY:times=1"],
        &["clear-faults"],
    ] {
        cluster.order(order);
    }
    let output = Served::start(&[]).ctl(&["heal"]);
    node::refused(&output, "start several with cxi-mock cluster");
}

/// Daemons of different nodes listen on the same port and reach each other by name.
#[test]
fn nodes_reach_each_other_by_name() {
    need_node!(cxi_test_kit::has("python3"));
    let script = "import socket, time, os\n\
        listener = socket.socket()\n\
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n\
        listener.bind((socket.gethostname(), 7077))\n\
        listener.listen()\n\
        listener.settimeout(60)\n\
        peer = 'n%d' % ((int(os.environ['CXI_MOCK_RANK']) + 1) % 3 + 1)\n\
        for attempt in range(200):\n\
        \x20   try:\n\
        \x20       end = socket.create_connection((peer, 7077), timeout=10)\n\
        \x20       break\n\
        \x20   except OSError:\n\
        \x20       time.sleep(0.05)\n\
        other, address = listener.accept()\n\
        end.sendall(os.environ['CXI_MOCK_NODE'].encode())\n\
        line = socket.gethostname() + ' ' + other.recv(9).decode() + '\\n'\n\
        os.write(1, line.encode())\n";
    for options in [&["--nodes", "3"] as &[&str], &["--nodes", "3", "--network"]] {
        let output = run(options, &["python3", "-c", script]);
        assert_eq!(sorted(&output), ["n1 n3", "n2 n1", "n3 n2"], "{options:?}");
    }
}

/// Packets go from node to node until the two are partitioned.
#[test]
fn what_nodes_send_each_other_stops_at_a_partition() {
    need_node!(node::windows());
    let directory = Directory::new();
    let capture = directory.join("capture");
    let options = ["--nodes", "2", "--capture", &capture, OPEN[0], OPEN[1]];
    let mut cluster = Served::cluster(&options);
    let nid = |node| printed(&cluster.on(node, &[client(), "nid", "cxi0"]));
    let [one, two] = ["n1", "n2"].map(nid);
    let talk = |rounds| {
        let end = |node, pid, peer: &str, peer_pid| {
            let program = [client(), "exchange", "cxi0", pid, peer, peer_pid, rounds];
            let mut command = cluster.command_on(node, &program);
            command.stderr(Stdio::piped()).start()
        };
        [end("n1", "3", &two, "4"), end("n2", "4", &one, "3")]
    };
    let answers =
        |ends: [Child; 2]| ends.map(|end| printed(&end.wait_with_output().expect("it ends")));
    assert_eq!(answers(talk("50")), ["ok", "ok"]);
    let seen = || fs::read_to_string(&capture).expect("it is there");
    let mut talking = talk("100000000");
    // Both have started: one that finds no peer at first retries for a minute.
    for end in &mut talking {
        let said = end.stderr.take().expect("it is piped");
        let first = BufReader::new(said).lines().next();
        assert_eq!(first.expect("a line").expect("text"), EXCHANGING);
    }
    cluster.order(&["partition", "n1", "n2"]);
    for answer in answers(talking) {
        assert_eq!(answer, "the peer is gone: UNDELIVERABLE");
    }
    cluster.order(&["heal"]);
    assert_eq!(answers(talk("50")), ["ok", "ok"]);
    cluster.end("TERM");
    for node in ["n1", "n2"] {
        assert!(seen().contains(&format!(r#""node":"{node}""#)), "{node}");
    }
}

/// Whenever it is killed, no process stays behind.
#[test]
fn nothing_stays_behind_wherever_it_is_killed() {
    need_node!();
    let rounds: u32 = if cxi_test_kit::full() { 100 } else { 6 };
    let options = ["--nodes", "2", "--fabric-manager"];
    let started = Instant::now();
    printed(&run(&options, &["true"]));
    // From the first moment to when the program runs, however busy the machine is.
    let life = started.elapsed();
    let word = format!("8{}", process::id());
    let script = format!("setsid sleep {word} & sleep {word} & exec sleep {word}");
    for round in 0..rounds {
        let directory = Directory::new();
        let dir = directory.join("node");
        let mut cluster = server(["cluster", "--dir", &dir])
            .args(options)
            .args(["run", "--", "sh", "-c", &script])
            .stderr(Stdio::null())
            .spawn()
            .expect("the server runs");
        // Moments that no two rounds share.
        sleep(life * (round * 61 % 100) / 100);
        kill("KILL", cluster.id());
        cluster.wait().expect("it ends");
        eventually("processes are left", || {
            with_argument(&word).is_empty() && with_argument(&dir).is_empty()
        });
    }
}
