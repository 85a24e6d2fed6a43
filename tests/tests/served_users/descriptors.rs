//! A program that opens devices endlessly is refused, and does not delay others.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;

use cxi_tests::node::{self, DEVICE, Served, client, errors, need_node, printed};

#[test]
fn open_files_are_bounded_by_what_the_server_may_have() {
    need_node!();
    // What a login has is not the bound.
    let node = Served::after("ulimit -Sn 48");
    assert_eq!(printed(&node.enter(&[client(), "open", DEVICE, "100"])), "ok");
}

#[test]
fn who_opens_without_end_is_refused_and_the_node_goes_on() {
    need_node!();
    let node = Served::after("ulimit -n 64");
    let output = node.enter(&[client(), "open", DEVICE, "100"]);
    let error = errors(&output);
    // A file takes a descriptor of the server for the memory behind its windows, if it has any.
    let bounded = node.nic()["windows"] == "mappable";
    assert_eq!(error.contains("Too many open files"), bounded, "{error}");
    assert_eq!(output.status.success(), !bounded);
    assert_eq!(printed(&node.enter(&[client(), "cycle", DEVICE])), "ok");
    assert_eq!(node.state()["stats"]["lni"], 0);
}

/// One user does not take the descriptors of all others, by files or by the socket.
#[test]
fn one_user_leaves_something_for_others() {
    need_node!(cxi_test_kit::root("be two users"), cxi_test_kit::has("python3"));
    // Some of the server's descriptors are not of programs.
    let limit = "ulimit -n 180";
    let held = "import os, sys, time\n\
                files = []\n\
                try:\n\
                \x20   while len(files) < 100: files.append(os.open('/dev/cxi0', os.O_RDWR))\n\
                except OSError as error: print(error.strerror)\n\
                print(len(files)); print('ready', flush=True); time.sleep(60)";
    let refused = ["Too many open files", "30", "ready"];
    with_user(&Served::after(limit), &["python3", "-c", held], &refused);
    let asked = "import os, socket, struct, sys, time\n\
                 files = []\n\
                 for _ in range(100):\n\
                 \x20   one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n\
                 \x20   one.connect(os.environ['CXI_NODE']); one.send(bytes(16))\n\
                 \x20   errno = struct.unpack_from('I', one.recv(4096))[0]\n\
                 \x20   if errno == 24: print(os.strerror(errno)); break\n\
                 \x20   files.append(one)\n\
                 print(len(files)); print('ready', flush=True); time.sleep(60)";
    let node = for_all_users(limit);
    with_user(&node, &["python3", "-c", asked], &refused);
    // Those that watch wait objects count as well, beside the NIC and the connection for sysfs.
    let refused = ["Too many open files (os error 24)", "28", "ready"];
    with_user(&node, &[client(), "watch", "cxi0", "100"], &refused);
}

/// A node behind a socket that all users reach.
fn for_all_users(limit: &str) -> Served {
    let options = ["--door", "socket", "--set", "disable_default_svc=0"];
    let node = Served::after_with(limit, &options);
    // Only its user comes through the directory.
    let dir = node.dir();
    for directory in Path::new(&dir).ancestors().take(2) {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).expect("it is ours");
    }
    node
}

/// Neither connections without a question nor answers that nobody reads take the node away from others.
#[test]
fn who_connects_and_asks_without_end_leaves_something_for_others() {
    need_node!(cxi_test_kit::root("be two users"), cxi_test_kit::has("python3"));
    let node = for_all_users("ulimit -n 180");
    let floods = "import os, socket, struct, time\n\
                  question = struct.pack('4I', 1 << 16 | 5, 0, 4096, 1 << 20) + b'/sys/class/cxi_user'\n\
                  files = []\n\
                  for number in range(400):\n\
                  \x20   one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n\
                  \x20   one.connect(os.environ['CXI_NODE']); files.append(one)\n\
                  \x20   one.setblocking(False)\n\
                  \x20   try:\n\
                  \x20       while number < 40: one.send(question)\n\
                  \x20   except OSError: pass\n\
                  print('ready', flush=True); time.sleep(60)";
    with_user(&node, &["python3", "-c", floods], &["ready"]);
    // Who serves the node may take more, but of each thing only so much.
    let node = for_all_users("true");
    with_program(&node, &["python3", "-c", floods], &["ready"], || {
        let status = fs::read_to_string(format!("/proc/{}/status", node.pid())).expect("it runs");
        let number = |name| -> u64 {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line");
            line.split_whitespace().next().and_then(|number| number.parse().ok()).expect("a number")
        };
        let (threads, kibibytes) = (number("Threads:"), number("VmRSS:"));
        assert!(threads < 450 && kibibytes < 100 << 10, "{threads} threads, {kibibytes} KiB");
    });
    let node = for_all_users("ulimit -n 180");
    // What the user had is there again.
    let asked = "import os, socket, struct\n\
                 for _ in range(1000):\n\
                 \x20   one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n\
                 \x20   one.connect(os.environ['CXI_NODE']); one.close()\n\
                 print('ready', flush=True); import time; time.sleep(60)";
    with_user(&node, &["python3", "-c", asked], &["ready"]);
}

/// Expects these lines of another user's program, and that root is answered while it goes on.
fn with_user(node: &Served, program: &[&str], expected: &[&str]) {
    with_program(node, &[&[client(), "as", "54321"], program].concat(), expected, || ());
}

/// Expects these lines of a program, and that another one is answered while it goes on.
fn with_program(node: &Served, program: &[&str], expected: &[&str], look: impl FnOnce()) {
    let mut command = node.command(program);
    let mut user = command.stdout(Stdio::piped()).spawn().expect("the program runs");
    let output = BufReader::new(user.stdout.take().expect("a pipe"));
    let lines: Vec<_> = output.lines().map_while(Result::ok).take(expected.len()).collect();
    assert_eq!(lines, expected);
    let cxi = env!("CARGO_BIN_EXE_test-cxi");
    let devices = node.enter(&["timeout", "30", cxi, "service", "list"]);
    assert!(devices.status.success(), "{devices:?}");
    look();
    node::kill("TERM", user.id());
    let _ = user.wait();
}
