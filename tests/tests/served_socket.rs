//! A node behind a socket: for ordinary users, without FUSE, mounts or namespaces.

#![allow(missing_docs, reason = "a test has no users")]
#![allow(unsafe_code, reason = "a child process that executes no program is unsafe to make")]

use std::fs;
use std::io::{Read as _, Write as _, pipe};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use cxi::{Device, DeviceId, Errno, Host, ServiceId};
use cxi_ioctl::socket::NodeSocket;
use cxi_test_kit::{Directory, root, skip};
use cxi_tests::node::{self, Served, cxi_mock, errors, need_node, printed, server};
use serde_json::Value;

const CXI: &str = env!("CARGO_BIN_EXE_test-cxi");

/// Runs a shell script on a node behind a socket.
fn on_node(options: &[&str], script: &str) -> Output {
    let mut command = server(["run", "--door", "socket"]);
    command
        .args(options)
        .args(["--", "sh", "-euc", script])
        .env("CXI", CXI)
        .env("SERVER", cxi_mock());
    command.output().expect("the server runs")
}

#[test]
fn devices_and_services_need_nothing() {
    let output = on_node(
        &["--nics", "2"],
        "$CXI devices --json; $CXI service create --uid 4711 --vni 1024 --device cxi0; \
         $CXI service list --json --device cxi0",
    );
    let text = printed(&output);
    let mut documents = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
    let devices = documents.next().expect("devices").expect("JSON");
    let nics = devices["devices"].as_array().or(devices.as_array()).expect("a list");
    assert_eq!(nics.len(), 2, "{text}");
    assert!(text.contains("hsn1") || text.contains("0000:"), "{text}");
    assert!(text.contains("4711"), "{text}");
    let said = errors(&output);
    assert_eq!(said.matches("CXI_NODE names the mock node at ").count(), 1, "{said}");
}

/// The whole life of a job, whose records are beside the socket and gone with the node.
#[test]
fn a_job_begins_and_ends() {
    let directory = Directory::new();
    let dir = directory.join("node");
    let output = on_node(
        &["--nics", "2", "--dir", &dir],
        "$CXI job prolog --job 7 --uid 1000 --vni 1030 --cores 8 >/dev/null; \
         $CXI service list --json --device cxi1 | grep -c '\"id\": 1000' || true; \
         ls -d \"$CXI_NODE.d/jobs\" >&2; \
         $CXI job epilog --job 7 >/dev/null; \
         $CXI service list --json --device cxi1 | grep -c '\"id\": 1000' || true",
    );
    assert_eq!(printed(&output), "1\n0", "{}", errors(&output));
    let left: Vec<_> = fs::read_dir(&dir).expect("the directory").flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// The open files of a NIC, as sysfs counts them.
fn clients(host: &Host) -> usize {
    let socket = NodeSocket::at(host.socket().expect("a socket"));
    socket.names(Path::new("/sys/class/cxi_user/cxi0/clients")).expect("a directory").len()
}

fn host(node: &Served) -> Host {
    Host::behind(Path::new(&node.dir()).join("node.sock"))
}

fn open(host: &Host) -> Device {
    host.open(DeviceId::new(0)).expect("cxi0")
}

const USABLE: [&str; 4] = ["--door", "socket", "--set", "disable_default_svc=0"];

/// Everything that a file holds is freed when it is closed, before anyone looks: as with the driver,
/// `close` does that.
#[test]
fn a_file_that_is_closed_frees_everything_at_once() {
    let node = Served::start(&USABLE);
    let host = host(&node);
    let mut at_once = 0;
    for _ in 0..200 {
        let device = open(&host);
        let lni = device.alloc_lni(ServiceId::DEFAULT).expect("an LNI");
        assert_eq!(clients(&host), 1);
        drop((lni, device));
        // Another connection, as another program has.
        let mut left = clients(&self::host(&node));
        at_once += usize::from(left == 0);
        // A program that another test starts has the file, too, until it executes.
        let deadline = Instant::now() + Duration::from_secs(10);
        while left > 0 && Instant::now() < deadline {
            left = clients(&self::host(&node));
        }
        assert_eq!(left, 0);
    }
    assert!(at_once > 150, "{at_once} of 200");
}

/// Threads take turns, and each gets the answer to its own command.
#[test]
fn threads_share_an_open_file() {
    let node = Served::start(&USABLE);
    let device = open(&host(&node));
    let expected = device.info().expect("properties");
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..200 {
                    assert_eq!(device.info().expect("properties"), expected);
                    assert_eq!(device.services().list().expect("services").len(), 1);
                }
            });
        }
    });
}

/// As with the driver, a child process that is made by fork has the file, too: it stays open until both
/// have closed it, and neither gets what the other one asked for.
#[test]
fn a_child_has_the_file_too() {
    let node = Served::start(&USABLE);
    let host = host(&node);
    let device = open(&host);
    let lni = device.alloc_lni(ServiceId::DEFAULT).expect("an LNI");
    let expected = device.info().expect("properties");
    let mut child = Command::new("true");
    let of_child = device.clone();
    let expected_there = expected.clone();
    let (mut is_there, mut there) = pipe().expect("a pipe");
    // SAFETY: the child asks for nothing that another thread of this process may have locked: the file
    // is this test's own, and the allocator's locks are free after a fork.
    unsafe {
        child.pre_exec(move || {
            there.write_all(&[1])?;
            for _ in 0..100 {
                let seen = of_child.info().map_err(std::io::Error::other)?;
                if seen != expected_there {
                    return Err(std::io::ErrorKind::InvalidData.into());
                }
            }
            Ok(())
        });
    }
    let parent = thread::spawn({
        let device = device.clone();
        move || {
            is_there.read_exact(&mut [0]).expect("the child is there");
            (0..400).all(|_| device.info().is_ok_and(|seen| seen == expected))
        }
    });
    assert!(child.status().expect("the child asks").success());
    assert!(parent.join().expect("the parent asks"));
    assert_eq!(clients(&host), 1);
    drop((child, lni, device));
    // A program that another test starts has the file, too, until it executes.
    node::eventually("the file is closed", || clients(&self::host(&node)) == 0);
}

/// A wait object is polled as one with a file: for POLLPRI, until it is rearmed.
#[test]
fn a_wait_object_reports_what_is_new() {
    let node = Served::start(&USABLE);
    let host = host(&node);
    let device = open(&host);
    let lni = device.alloc_lni(ServiceId::DEFAULT).expect("an LNI");
    let wait = lni.alloc_wait().expect("a wait object");
    let interrupt = wait.open(host.sysfs()).expect("its interrupt");
    let short = Some(Duration::from_millis(20));
    assert!(!interrupt.wait(short).expect("poll"), "nothing has happened");
    let path = wait.path(host.sysfs());
    let client = path.iter().nth_back(3).expect("a client").to_str().expect("a number");
    for times in [1, 3] {
        for _ in 0..times {
            node.order(&["wake", client, &wait.id().to_string()]);
        }
        assert!(interrupt.wait(Some(Duration::from_secs(5))).expect("poll"), "it was woken");
        assert!(!interrupt.wait(short).expect("poll"), "once for all");
    }
}

/// A second node takes no place that is taken, and an end is the end for programs that go on.
#[test]
fn a_node_that_has_ended_is_a_nic_that_is_gone() {
    let node = Served::start(&USABLE);
    let device = open(&host(&node));
    drop(node);
    assert_eq!(device.services().list().unwrap_err().errno(), Errno::EIO);
}

#[test]
fn a_program_enters_and_an_unplugged_nic_is_gone() {
    let directory = Directory::new();
    let dir = directory.join("node");
    let output = on_node(
        &["--nics", "2", "--dir", &dir],
        "unset CXI_NODE; \
         $SERVER enter --dir \"$CXI_MOCK_DIR\" -- $CXI service list --device cxi1 --json >/dev/null; \
         $SERVER ctl unplug 1; \
         ! $SERVER enter --dir \"$CXI_MOCK_DIR\" -- $CXI service list --device cxi1",
    );
    printed(&output);
    assert!(errors(&output).contains("cxi1"), "{output:?}");
}

#[test]
fn without_privileges_nothing_is_changed() {
    if cxi_test_kit::is_root() {
        return skip("root has privileges");
    }
    for option in ["--as-user", "--strict-admin"] {
        let output = on_node(&[option], "$CXI service create --uid 1 --vni 1024");
        assert!(!output.status.success(), "{output:?}");
        assert!(errors(&output).contains("not permitted: it needs CAP_SYS_ADMIN"), "{output:?}");
    }
}

/// Neither root nor another user is led to a node by a variable.
#[test]
fn another_users_node_is_refused() {
    if !root("be two users") {
        return;
    }
    let directory = Directory::new();
    let place = directory.path().join("shared");
    fs::create_dir(&place).expect("a directory");
    fs::set_permissions(&place, fs::Permissions::from_mode(0o777)).expect("a mode");
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("a mode");
    let (server, client) = (place.join("server"), place.join("client"));
    fs::copy(cxi_mock(), &server).expect("a copy");
    fs::copy(node::client(), &client).expect("a copy");
    let script = format!(
        "{client} as 54321 {server} run --door socket -- sh -c 'echo $CXI_NODE >{place}/path; \
         chmod 777 $CXI_NODE; sleep 3' & \
         while ! test -s {place}/path; do sleep 0.1; done; \
         CXI_NODE=$(cat {place}/path) \"$0\" devices; echo $?; wait",
        client = client.display(),
        server = server.display(),
        place = place.display()
    );
    let mut command = Command::new("sh");
    command.args(["-c", &script, CXI]).env("TMPDIR", &place).env_remove("XDG_RUNTIME_DIR");
    let output = command.output().expect("a shell");
    let said = errors(&output);
    assert!(said.contains("is served by user 54321: expected user 0"), "{output:?}");
}

/// libfabric looks for NICs in the system's own directories. Where it can be given others, it finds them
/// there, and what an order changes has changed there when the order is done.
#[test]
fn libfabrics_own_looks_find_the_nics() {
    if !node::copies() {
        return;
    }
    let directory = Directory::new();
    let script = "
        cd /sys/class/net/hsn1
        cat operstate speed addr_assign_type address
        basename $(readlink -f device)
        test $(readlink -f device) = $(readlink -f /sys/class/cxi/cxi1/device)
        ls device/cxi
        cut -d@ -f1 /sys/class/cxi/cxi1/device/telemetry/pct_retry_srb_requests
        ls /sys/class/cxi_user /sys/bus/pci/drivers/cxi_ss1 | grep -c .
        ls -d /dev/cxi* 2> /dev/null || true
        $SERVER ctl link down 1; cat operstate carrier
        $SERVER ctl unplug 1; ls -d /sys/class/net/hsn*
        test ! -e /sys/devices/pci-cxi-mock/0000:42:00.0
        $SERVER ctl plug 1; cat /sys/class/net/hsn1/operstate
        ! echo 1500 2> /dev/null > mtu";
    let output = on_node(&["--nics", "2", "--dir", &directory.join("node")], script);
    assert_eq!(
        printed(&output).lines().collect::<Vec<_>>(),
        [
            ["up", "400000", "3", "02:00:00:00:01:01", "0000:42:00.0"].as_slice(),
            &["cxi1", "0", "6", "down", "0", "/sys/class/net/hsn0", "down"],
        ]
        .concat(),
        "{}",
        errors(&output)
    );
}

/// Work of programs on a NIC shows in the copies within seconds.
#[test]
fn copies_of_sysfs_follow_what_programs_do() {
    if !node::copies() {
        return;
    }
    let node = Served::start(&[&USABLE[..], &["--nics", "2"]].concat());
    let sent = "cat /sys/class/cxi/cxi0/device/telemetry/cq_success_tx_cntr | cut -d@ -f1";
    assert_eq!(printed(&node.enter(&["sh", "-c", sent])), "0");
    let nids = node.nids();
    let exchange = |device, pid, nid: &str, peer| {
        let mut command = node.command(&[node::client(), "exchange", device, pid, nid, peer, "5"]);
        command.stdout(std::process::Stdio::null()).spawn().expect("a client runs")
    };
    let mut both = [exchange("cxi0", "3", &nids[1], "4"), exchange("cxi1", "4", &nids[0], "3")];
    assert!(both.iter_mut().all(|client| client.wait().expect("it ends").success()));
    node::eventually("the counter is copied", || {
        printed(&node.enter(&["sh", "-c", sent])).parse::<u32>().expect("a number") > 0
    });
}

/// A message says what forbids namespaces where the kernel makes none for ordinary users; the node is
/// served to this project's libraries, and a cluster is not.
#[test]
fn a_message_says_what_forbids_files_in_sys() {
    let directory = Directory::new();
    let within = |arguments: &[&str]| {
        let script = "echo 0 > /proc/sys/user/max_user_namespaces; \
                      exec setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin \"$@\"";
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "sh", "-euc", script, "sh", cxi_mock()]);
        command.args(arguments).args(["--", CXI, "devices"]).env_remove("CXI_NODE");
        command.env("TMPDIR", directory.path()).env_remove("XDG_RUNTIME_DIR");
        command.output().expect("unshare runs")
    };
    let output = within(&["run", "--door", "socket"]);
    if errors(&output).contains("unshare: ") {
        return skip(errors(&output));
    }
    let what = "An ordinary user needs user namespaces, and they are forbidden here\n  \
                sysctl user.max_user_namespaces=10000, or run as root.\n";
    assert!(printed(&output).contains("cxi0"), "{output:?}");
    let none = "programs that look for NICs in /sys themselves, as libfabric does, find none: ";
    assert_eq!(errors(&output), format!("cxi-mock: {none}{what}"));
    for command in [&["mpi", "--door", "socket"][..], &["cluster", "--door", "socket", "run"]] {
        let output = within(command);
        assert_eq!(output.status.code(), Some(77), "{output:?}");
        assert_eq!(errors(&output), format!("cxi-mock: {what}"));
        assert!(output.stdout.is_empty(), "{output:?}");
    }
}

/// A node with files answers at its socket, too: it is the same node, and programs of both doors talk.
#[test]
fn a_node_with_files_answers_at_its_socket_too() {
    if !(node::possible() && node::windows()) {
        return;
    }
    let node = Served::start(&["--set", "disable_default_svc=0", "--nics", "2"]);
    let host = host(&node);
    let device = open(&host);
    let lni = device.alloc_lni(ServiceId::DEFAULT).expect("an LNI");
    let list =
        ["sh", "-c", "test -z \"$CXI_NODE\"; ls /sys/class/cxi_user/cxi0/clients | grep -c ."];
    assert_eq!(printed(&node.enter(&list)), "1", "as the files show it");
    assert_eq!(node.state()["stats"]["lni"], 1);
    drop((lni, device));
    assert!(node.is_idle());

    let socket = Path::new(&node.dir()).join("node.sock");
    let nids = node.nids();
    let exchange = |arguments: [&str; 4]| {
        let mut command = node.command(&[&[node::client(), "exchange"][..], &arguments].concat());
        command.arg("50").stdout(std::process::Stdio::null());
        command
    };
    let mut by_files = exchange(["cxi0", "3", &nids[1], "4"]).spawn().expect("a client runs");
    let mut by_socket = exchange(["cxi1", "4", &nids[0], "3"]);
    let mut by_socket = by_socket.env("CXI_NODE", socket).spawn().expect("a client runs");
    assert!(by_files.wait().expect("it ends").success());
    assert!(by_socket.wait().expect("it ends").success());
}

/// Programs get the windows of a node's files from its socket by themselves where the kernel maps none, and
/// everything else goes through the files.
/// A node with files goes on without its socket, but not silently.
#[test]
fn a_node_with_files_says_that_it_has_no_socket() {
    need_node!();
    let directory = Directory::new();
    directory.write("cxi-mock", "");
    let mut command = server(["cluster", "--door", "fuse", "--nodes", "2", "run", "--", "true"]);
    let output = command.env("XDG_RUNTIME_DIR", directory.path()).output().expect("it runs");
    let said = errors(&output);
    assert!(output.status.success(), "{said}");
    assert_eq!(said.matches("have only the files of the node").count(), 1, "{said}");
    assert!(said.contains(&directory.join("cxi-mock")), "{said}");
}

#[test]
fn windows_of_files_come_from_the_socket() {
    if !node::possible() {
        return;
    }
    let script = "
        nid() { echo $(($(cat /sys/class/cxi_user/cxi$1/device/properties/nid))); }
        test -z \"${CXI_NODE:-}\"
        \"$CLIENT\" exchange cxi0 3 $(nid 1) 4 50 & \"$CLIENT\" exchange cxi1 4 $(nid 0) 3 50
        wait $!
        CXI_NODE_WINDOWS=/nowhere \"$CLIENT\" exchange cxi0 3 $(nid 1) 4 1 2>&1 || true
        ls /sys/class/cxi_user/cxi*/clients | grep -c '^[0-9]' || true
        head -c 8 /dev/cxi0 2> /dev/null | wc -c";
    let mut command = Command::new("unshare");
    // There the kernel passes no windows through, for root either.
    command.args(["--user", "--map-root-user", cxi_mock(), "run", "--door", "fuse", "--nics", "2"]);
    command.args(["--set", "disable_default_svc=0", "--", "sh", "-euc", script]);
    command.env("CLIENT", node::client()).env_remove("CXI_MOCK_DIR").env_remove("CXI_NODE");
    let output = command.output().expect("unshare runs");
    let said = errors(&output);
    if said.contains("unshare: ") || output.status.code() == Some(77) {
        return skip(&said);
    }
    let text = printed(&output);
    let lines: Vec<_> = text.lines().collect();
    let [first, second, refused, rest @ ..] = &lines[..] else { panic!("{output:?}") };
    assert_eq!((*first, *second), ("ok", "ok"), "{output:?}");
    assert!(refused.contains("ENODEV") || refused.contains("No such device"), "{output:?}");
    assert_eq!(rest, ["0", "0"], "{output:?}");
}

/// The files that our libraries read are those of the file system.
#[test]
fn sysfs_is_that_of_the_files() {
    let script = "$CXI devices --json; $CXI audit --json";
    let behind = on_node(&["--nics", "2"], script);
    if !node::possible() {
        return;
    }
    let mut command = server(["run", "--door", "fuse", "--nics", "2", "--", "sh", "-euc", script]);
    let seen = command.env("CXI", CXI).output().expect("the server runs");
    assert_eq!(printed(&behind), printed(&seen));
}

#[test]
fn a_node_that_was_killed_leaves_no_socket_to_the_next() {
    let directory = Directory::new();
    let script = "kill -9 $PPID; ls \"$(dirname \"$CXI_NODE\")\"";
    let run = |script: &str| {
        let mut command = server(["run", "--door", "socket", "--", "sh", "-c", script]);
        command.env("XDG_RUNTIME_DIR", directory.path()).output().expect("the server runs")
    };
    run(script);
    let output = run("ls \"$(dirname \"$CXI_NODE\")\" | wc -l");
    assert_eq!(printed(&output), "1");
}
