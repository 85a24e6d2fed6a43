//! The data path under other projects' programs, from directories that variables name: HPE's libcxi in
//! `CXI_TEST_LIBCXI_BIN`, libfabric with its `cxi` provider in `CXI_TEST_LIBFABRIC_BIN`.

#![allow(clippy::print_stdout, reason = "says what each program did")]

use std::path::{Path, PathBuf};
use std::process::Output;

use cxi_test_kit::skip;
use cxi_tests::node::{self, Run, Served, errors, need_node};

/// Two NICs with the driver that the newest libcxi is for, the default service for all users, and
/// the QoS profile that HPE's tests load.
const NODE: [&str; 8] = [
    "--nics",
    "2",
    "--release",
    "main",
    "--set",
    "disable_default_svc=0",
    "--set",
    "active_qos_profile=1",
];

/// Suites of `libcxi_test` that move data, every test of which passes.
const SUITES: &str = "@(atomic|counting_event|msg|pte|rendezvous|rgid|rma_eqpt)/*";

/// They reserve huge pages of the machine, unless they see none.
const WITHOUT_HUGE_PAGES: &str =
    "mount -t tmpfs none /sys/kernel/mm/hugepages && exec timeout 60 \"$@\"";

/// Pairs of libcxi's programs, a client and a server, with short runs.
const TOOLS: [(&str, &str); 8] = [
    ("cxi_write_bw", "-n 5 -l 8 -s 8:65536"),
    ("cxi_read_bw", "-n 5 -l 8 -s 8:65536"),
    ("cxi_send_bw", "-n 5 -l 8 -s 8:65536"),
    ("cxi_atomic_bw", "-n 5 -l 8"),
    ("cxi_write_lat", "-n 20"),
    ("cxi_read_lat", "-n 20"),
    ("cxi_send_lat", "-n 20"),
    ("cxi_atomic_lat", "-n 20"),
];
/// Programs of libcxi, with arguments for which they must succeed.
const QUIET: [(&str, &[&str]); 4] = [
    ("cxi_stat", &["-a"]),
    ("cxi_stat", &["-m"]),
    ("cxi_service", &["list", "-v"]),
    ("cxi_device_list", &[]),
];

/// The port that they listen on, as the kernel lists it.
const TOOLS_PORT: &str = "C02A";

/// Arguments of `fi_pingpong` with verification: tagged and untagged messages, and long ones.
const PINGPONG: [&str; 3] = [
    "-p cxi -e rdm -c -m tagged -I 10",
    "-p cxi -e rdm -c -m msg -I 10",
    "-p cxi -e rdm -c -m tagged -I 2 -S 6291456",
];
const PINGPONG_PORT: &str = "B9E8";

/// Runs a program that listens on a port, and then one on another NIC that connects to it.
const PAIR: &str = r#"
    FI_CXI_DEVICE_NAME=cxi0 "$PROGRAM" $SERVER > /dev/null & server=$!
    until cat /proc/net/tcp* | grep -q ":$PORT 0*:0000 0A"; do sleep 0.05; done
    FI_CXI_DEVICE_NAME=cxi1 "$PROGRAM" $CLIENT && wait $server && exit
    kill $server; exit 1"#;

/// The directory that a variable names, and a node.
fn set_up(variable: &str) -> Option<(PathBuf, Served)> {
    let Some(directory) = std::env::var_os(variable).map(PathBuf::from) else {
        skip(format_args!("{variable} names no directory of programs"));
        return None;
    };
    node::windows().then(|| (directory, Served::start(&NODE)))
}

/// Runs a server and a client, for a minute at most.
fn pair(node: &Served, program: &Path, port: &str, [server, client]: [&str; 2]) -> Output {
    node.command(&["timeout", "60", "sh", "-c", PAIR])
        .env("PROGRAM", program)
        .env("PORT", port)
        .env("SERVER", server)
        .env("CLIENT", client)
        .run()
}

/// Reports how each call ended; all must succeed.
fn judge(calls: impl IntoIterator<Item = (String, Output)>) {
    let mut failed = Vec::new();
    for (call, output) in calls {
        let good = output.status.success();
        println!("{} {call}", if good { "pass" } else { "FAIL" });
        if !good {
            failed.push(format!("{call}: {output:?}"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn tests_of_libcxi_pass() {
    need_node!();
    let Some((directory, node)) = set_up("CXI_TEST_LIBCXI_BIN") else { return };
    let output = node
        .command(&["sh", "-c", WITHOUT_HUGE_PAGES, "sh"])
        .arg(directory.join("libcxi_test"))
        .args(["-j1", "--filter", SUITES])
        .run();
    let said = errors(&output);
    assert!(said.contains("Tested: "), "{said}");
    assert!(!said.contains("Tested: 0"), "{said}");
    judge([("libcxi_test".to_owned(), output)]);
}

#[test]
fn programs_of_libcxi_find_all_that_they_read() {
    need_node!();
    let Some((directory, node)) = set_up("CXI_TEST_LIBCXI_BIN") else { return };
    judge(QUIET.map(|(name, arguments)| {
        let mut command = node.command(&["timeout", "60"]);
        let output = command.arg(directory.join(name)).args(arguments).run();
        assert!(output.stderr.is_empty(), "{name} {arguments:?}: {output:?}");
        (format!("{name} {}", arguments.join(" ")), output)
    }));
}

#[test]
fn tools_of_libcxi_measure() {
    need_node!();
    let Some((directory, node)) = set_up("CXI_TEST_LIBCXI_BIN") else { return };
    judge(TOOLS.map(|(name, options)| {
        let client = format!("localhost {options}");
        let output = pair(&node, &directory.join(name), TOOLS_PORT, ["", &client]);
        (format!("{name} {options}"), output)
    }));
}

#[test]
fn libfabric_sends_what_arrives() {
    need_node!();
    let Some((directory, node)) = set_up("CXI_TEST_LIBFABRIC_BIN") else { return };
    let program = directory.join("fi_pingpong");
    judge(PINGPONG.map(|options| {
        let client = format!("{options} 127.0.0.1");
        let output = pair(&node, &program, PINGPONG_PORT, [options, &client]);
        (format!("fi_pingpong {options}"), output)
    }));
}
