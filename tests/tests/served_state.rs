//! Services that are kept in a file.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown, symlink};
use std::process::Command;

use cxi_test_kit::Directory;
use cxi_tests::node::{
    self, DEVICE, Run, Served, client, cxi_mock, errors, need_node, printed, refused, run, server,
    sorted,
};

#[test]
fn state_lives_on_in_a_file() {
    need_node!();
    let client = client();
    let directory = Directory::new();
    let file = directory.join("state.json");
    let node = |options: &[&str], command: &str| {
        let mut arguments = vec!["--state", &file];
        arguments.extend(options);
        arguments.extend(["--", "sh", "-euc", command]);
        run(&arguments)
    };
    let allocate = format!("{client} allocate {DEVICE} 77 0");
    let count = format!("{client} count {DEVICE}");
    let svc_id = printed(&node(&["--nics", "2"], &allocate));
    assert_eq!(printed(&node(&[], &count)), "2");
    assert_eq!(printed(&node(&["--nics", "2"], &count)), "2");
    printed(&node(&[], &format!("{client} destroy {DEVICE} {svc_id}")));
    assert_eq!(printed(&node(&[], &count)), "1");

    refused(&node(&["--nics", "3"], &count), "another configuration");
    fs::write(&file, r#"{"version": 99}"#).expect("the file can be written");
    refused(&node(&[], &count), "format 99");
    fs::write(&file, r#"{"version": 1, "ni"#).expect("the file can be written");
    refused(&node(&[], &count), "does not hold the state of a node");
    let missing = ["--state", "/nonexistent/state", "--", "true"];
    refused(&run(&missing), "there is no directory /nonexistent");
}

#[test]
fn a_site_has_services_of_its_own() {
    need_node!();
    let client = client();
    let directory = Directory::new();
    let file = directory.join("site.yaml");
    let site = "is_system_svc: true\nmembers: [{type: uid, id: 0}]\nvnis: [4000]\n---\n\
                restricted_vnis: 1\nvnis:\n  vni: 4001\n  vni: 4002\n";
    fs::write(&file, site).expect("the file can be written");
    let script = format!("{client} count /dev/cxi1; {client} allocate {DEVICE} 77 0");
    let script = ["--nics", "2", "--preset", &file, "--", "sh", "-euc", &script];
    assert_eq!(printed(&run(&script)), "3\n4");

    fs::write(&file, "vnis: [4000]\n---\nvnis: [70000]\n").expect("the file can be written");
    let output = run(&["--preset", &file, "--", "true"]);
    refused(&output, "site.yaml");
    refused(&output, "line 3");
    refused(&output, "\n  3 | vnis: [70000]\n    |        ^");
    fs::write(&file, "{\"params\": 5,,}").expect("the file can be written");
    let output = run(&["--config", &file, "--", "true"]);
    refused(&output, "\n  1 | {\"params\": 5,,}\n    |              ^");
}

#[test]
fn a_state_file_has_one_node_and_survives_its_kill() {
    need_node!();
    let (directory, elsewhere) = (Directory::new(), Directory::new());
    let file = directory.join("state.json");
    for round in 0..5 {
        let mut node = Served::start(&["--state", &file]);
        let count = printed(&node.enter(&[client(), "count", DEVICE]));
        assert_eq!(count, (round + 1).to_string(), "what was answered is kept");
        let second = server(["serve", "--dir", &elsewhere.join("second"), "--state", &file]);
        let output = { second }.run();
        refused(&output, "another node keeps its state in");
        let vni = (100 + round).to_string();
        printed(&node.enter(&[client(), "allocate", DEVICE, &vni, "0"]));
        node.end("KILL");
    }
    let mut left: Vec<_> = fs::read_dir(directory.path())
        .expect("the directory is there")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    left.sort();
    assert_eq!(left, ["state.json", "state.json.lock"]);
}

#[test]
fn what_is_no_state_file_is_neither_waited_for_nor_followed() {
    need_node!();
    let directory = Directory::new();
    let pipe = directory.join("pipe");
    for name in ["pipe", "file.lock"] {
        let made = Command::new("mkfifo").arg(directory.join(name)).status();
        assert!(made.expect("mkfifo runs").success());
    }
    let serve = |file: &str| {
        // The server takes other signals as orders.
        Command::new("timeout")
            .args(["-s", "KILL", "60", cxi_mock(), "run", "--state", file, "--"])
            .args([client(), "allocate", DEVICE, "77", "0"])
            .run()
    };
    let zero = directory.join("zero");
    symlink("/dev/zero", &zero).expect("a link");
    for file in [pipe, directory.join("file"), zero] {
        refused(&serve(&file), "cannot");
    }
    let victim = directory.write("victim", "precious");
    let state = directory.join("state.json");
    symlink(&victim, format!("{state}.new")).expect("a link");
    printed(&serve(&state));
    assert_eq!(fs::read_to_string(&victim).expect("it is there"), "precious");
    assert!(fs::symlink_metadata(&state).is_ok_and(|state| state.is_file()));
}

#[test]
fn what_is_read_has_an_end() {
    need_node!();
    for option in ["--config", "--preset"] {
        refused(&run(&[option, "/dev/zero", "--", "true"]), "too long");
    }
}

#[test]
fn a_state_file_stays_its_owners() {
    need_node!(cxi_test_kit::root("write the files of others"));
    let directory = Directory::new();
    let file = directory.join("state.json");
    let allocate = ["--state", &file, "--", client(), "allocate", DEVICE, "77", "0"];
    printed(&run(&allocate));
    chown(&file, Some(1234), Some(1235)).expect("root gives files away");
    let allocate = ["--state", &file, "--", client(), "allocate", DEVICE, "78", "0"];
    printed(&run(&allocate));
    let metadata = fs::metadata(&file).expect("the file is there");
    assert_eq!((metadata.uid(), metadata.gid()), (1234, 1235));
}

/// No command succeeds if its change would be lost.
#[test]
fn what_cannot_be_written_is_refused() {
    need_node!();
    let directory = Directory::new();
    let (here, away) = (directory.join("here"), directory.join("away"));
    fs::create_dir(&here).expect("a directory");
    let mut node = Served::start(&["--state", &format!("{here}/state.json")]);
    let allocate = |vni| node.enter(&[client(), "allocate", DEVICE, vni, "0"]);
    let first = printed(&allocate("77"));
    fs::rename(&here, &away).expect("it can be moved");
    let output = allocate("78");
    let text = errors(&output);
    assert!(!output.status.success() && text.contains("EIO"), "{text}");
    assert_eq!(printed(&node.enter(&[client(), "count", DEVICE])), "2");
    fs::rename(&away, &here).expect("it can be moved back");
    let second = printed(&allocate("78"));
    assert_ne!(first, second);
    node.end("KILL");
    let node = Served::start(&["--state", &format!("{here}/state.json")]);
    assert_eq!(printed(&node.enter(&[client(), "count", DEVICE])), "3");
}

#[test]
fn a_full_disk_refuses_changes() {
    need_node!(cxi_test_kit::root("mount a small file system"));
    let cxi_mock = cxi_mock();
    let client = client();
    let directory = Directory::new();
    let path = directory.path().display();
    let programs = format!(
        "{client} allocate {DEVICE} 77 0; head -c 1M /dev/zero >{path}/fill || true; \
         {client} allocate {DEVICE} 78 0 || {client} count {DEVICE}"
    );
    let script = format!(
        "mount -t tmpfs -o size=64k none {path} && \
         exec {cxi_mock} run --state {path}/state.json -- sh -c '{programs}'"
    );
    let mut command = Command::new("unshare");
    let output = command.args(["--mount", "sh", "-c", &script]).output();
    let output = output.expect("unshare runs");
    let said = errors(&output);
    assert!(said.contains("No space left on device"), "{said}");
    assert_eq!(printed(&output), "2\n2", "{said}");
}

/// One file has all nodes; the services of a node that was killed are gone.
#[test]
fn services_of_a_cluster_live_on_in_a_file() {
    need_node!();
    let client = client();
    let directory = Directory::new();
    let (file, trace) = (directory.join("state.json"), directory.join("trace"));
    let allocate = format!("{client} allocate {DEVICE} 77 0");
    let count = format!("{client} count {DEVICE}");
    {
        let mut cluster = Served::cluster(&["--nodes", "3", "--state", &file, "--trace", &trace]);
        for node in ["n1", "n2", "n3"] {
            printed(&cluster.on(node, &["sh", "-c", &allocate]));
        }
        cluster.order(&["--node", "n2", "reboot"]);
        cluster.order(&["--node", "n3", "kill"]);
        cluster.end("KILL");
    }
    let lines = node::json_lines(&trace);
    let mut allocations: Vec<_> = lines
        .iter()
        .filter(|line| line["command"] == "SVC_ALLOC")
        .map(|line| line["node"].as_str().expect("a node"))
        .collect();
    allocations.sort_unstable();
    assert_eq!(allocations, ["n1", "n2", "n3"]);

    let again = |options: &[&str]| {
        let mut command = server(["cluster", "--state", &file]);
        command.args(options).args(["run", "--", "sh", "-c", &count]);
        command.run()
    };
    assert_eq!(sorted(&again(&[])), ["1", "1", "2"]);
    refused(&again(&["--nodes", "2"]), "a cluster of another configuration");
    refused(&run(&["--state", &file, "--", "true"]), "it holds that of a cluster");
    fs::remove_file(&file).expect("it is there");
    printed(&run(&["--state", &file, "--", "true"]));
    refused(&again(&["--nodes", "2"]), "expected a list of nodes");
}
