//! A program that opens devices endlessly is refused, and does not delay others.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;

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

/// One user does not take the descriptors of all others, by files or by the socket.
#[test]
fn one_user_leaves_something_for_others() {
    need_node!(node::root("be two users"), node::has("python3"));
    // Some of the server's descriptors are not of programs.
    let limit = "ulimit -n 180";
    let held = "import os, sys, time\n\
                files = []\n\
                try:\n\
                \x20   while len(files) < 100: files.append(os.open('/dev/cxi0', os.O_RDWR))\n\
                except OSError as error: print(error.strerror)\n\
                print(len(files)); print('ready', flush=True); time.sleep(60)";
    one_user_is_refused(&Served::after(limit), held);
    let asked = "import os, socket, struct, sys, time\n\
                 files = []\n\
                 for _ in range(100):\n\
                 \x20   one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n\
                 \x20   one.connect(os.environ['CXI_NODE']); one.send(bytes(16))\n\
                 \x20   errno = struct.unpack_from('I', one.recv(4096))[0]\n\
                 \x20   if errno == 24: print(os.strerror(errno)); break\n\
                 \x20   files.append(one)\n\
                 print(len(files)); print('ready', flush=True); time.sleep(60)";
    let node = Served::after_with(limit, &["--door", "socket"]);
    // Only its user comes through the directory.
    let dir = node.dir();
    for directory in Path::new(&dir).ancestors().take(2) {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).expect("it is ours");
    }
    one_user_is_refused(&node, asked);
}

/// Expects that a user who takes all that can be had gets 30 files, and root gets another one meanwhile.
fn one_user_is_refused(node: &Served, program: &str) {
    let mut command = node.command(&[CLIENT, "as", "54321", "python3", "-c", program]);
    let mut user = command.stdout(Stdio::piped()).spawn().expect("the program runs");
    let output = BufReader::new(user.stdout.take().expect("a pipe"));
    let lines: Vec<_> = output.lines().map_while(Result::ok).take(3).collect();
    assert_eq!(lines, ["Too many open files", "30", "ready"]);
    let devices = node.enter(&[env!("CARGO_BIN_EXE_test-cxi"), "service", "list"]);
    assert!(devices.status.success(), "{devices:?}");
    node::kill("TERM", user.id());
    let _ = user.wait();
}
