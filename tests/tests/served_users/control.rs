//! Users who may enter a node or change it: the one who serves it.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use cxi_test_kit::{Directory, skip};
use cxi_tests::node::{
    DEVICE, Run, Served, client, cxi_mock, eventually, need_node, printed, refused, server,
};

#[test]
fn the_node_of_another_user_cannot_be_entered() {
    need_node!(cxi_test_kit::root("give a directory to another user"));
    let node = Served::start(&[]);
    chown(node.dir(), Some(1234), None).expect("the directory can be given away");
    let second = server(["serve", "--dir", &node.dir()]).output();
    let second = second.expect("the server runs");
    for output in [node.enter(&["true"]), node.ctl(&["state"]), second] {
        refused(&output, "belongs to user 1234");
    }
    chown(node.dir(), Some(0), None).expect("the directory can be taken back");
    printed(&node.enter(&["true"]));

    // The socket tells who serves, whoever owns the directory.
    let directory = Directory::new();
    let dir = directory.join("node");
    std::fs::create_dir(&dir).expect("a directory");
    std::fs::set_permissions(&dir, PermissionsExt::from_mode(0o777)).expect("it is open to all");
    std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).expect("open");
    let listen = format!(
        "import socket,time; s=socket.socket(socket.AF_UNIX); s.bind('{dir}/control'); \
         s.listen(); time.sleep(60)"
    );
    let mut impostor =
        match Command::new(client()).args(["as", "1234", "python3", "-c", &listen]).spawn() {
            Ok(impostor) => impostor,
            Err(error) => return skip(format_args!("there is no python3: {error}")),
        };
    eventually("the impostor listens", || UnixStream::connect(format!("{dir}/control")).is_ok());
    let output = server(["enter", "--dir", &dir, "--", "true"]).output();
    impostor.kill().expect("the impostor runs");
    impostor.wait().expect("the impostor ends");
    refused(&output.expect("the server runs"), "is served by user 1234");
}

#[test]
fn another_pid_namespace_is_not_mistaken() {
    need_node!();
    let directory = Directory::new();
    let dir = directory.join("node");
    let mut node = match Command::new("unshare")
        .args(["-p", "-f", "--kill-child", "--mount-proc", cxi_mock(), "serve", "--dir", &dir])
        .env_remove("CXI_MOCK_DIR")
        .stderr(Stdio::null())
        .spawn()
    {
        Ok(node) => node,
        Err(error) => return skip(format_args!("there is no unshare(1): {error}")),
    };
    let mut ended = false;
    eventually("the node answers", || {
        ended = node.try_wait().is_ok_and(|status| status.is_some());
        ended || UnixStream::connect(format!("{dir}/control")).is_ok()
    });
    if ended {
        return skip("no PID namespace can be made");
    }
    let enter = ["enter", "--dir", &dir, "--", "ls", DEVICE];
    let output = server(enter).run();
    node.kill().expect("the node runs");
    node.wait().expect("the node ends");
    refused(&output, "PID namespace");
}

#[test]
fn the_control_socket_has_bounds() {
    need_node!();
    let node = Served::start(&[]);
    let path = format!("{}/control", node.dir());
    let mode = std::fs::metadata(&path).expect("the socket is there").permissions();
    assert_eq!(mode.mode() & 0o7777, 0o600);

    let mut long = UnixStream::connect(&path).expect("the node listens");
    let sent = (0..1 << 14).map_while(|_| long.write_all(&[b'a'; 1 << 14]).ok());
    assert!(sent.count() < 1 << 10, "256 MiB of one line were taken");
    let mut answer = String::new();
    let _ = long.read_to_string(&mut answer);
    assert!(answer.is_empty() || answer.contains("invalid order"), "{answer}");

    let mut taken = Vec::new();
    let refusal = (0..1200).find_map(|_| {
        let mut connection = UnixStream::connect(&path).expect("the node listens");
        let _ = connection.write_all(b"{\"order\":\"state\"}\n");
        let mut line = String::new();
        let mut answers = BufReader::new(connection);
        let _ = answers.read_line(&mut line);
        taken.push(answers);
        line.contains("Err").then_some(line)
    });
    assert!(refusal.expect("a refusal").contains("1000 connections"));
    drop(taken);
    eventually("the node answers again", || node.ctl(&["state"]).status.success());
}
