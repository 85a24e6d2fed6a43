//! Doorbells of programs that reach a node through its socket: trapped while nothing happens, and polled
//! while there is traffic.

#![allow(missing_docs, reason = "a test has no users")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use cxi_test_kit::skip;
use cxi_tests::node::{OPEN, Run as _, Served, client, eventually, printed};

fn node() -> Served {
    Served::start(&[&["--door", "socket", "--nics", "2"], &OPEN[..]].concat())
}

#[test]
fn messages_pass_between_two_processes() {
    let node = node();
    let nids = node.nids();
    for (device, to, from) in [("cxi0", 0, 0), ("cxi1", 1, 0)] {
        let mut there = node.command(&[client(), "exchange", device, "4", &nids[from], "3", "300"]);
        let there = there.start();
        let here = node.enter(&[client(), "exchange", "cxi0", "3", &nids[to], "4", "300"]);
        assert_eq!(printed(&here), "ok");
        assert_eq!(printed(&there.wait_with_output().expect("the program ends")), "ok");
    }
    eventually("nothing is left", || node.is_idle());
}

/// Programs store at any time while doorbells are opened and closed, several at once: each store
/// arrives. Each pause is one after which they may just be closed.
#[test]
fn no_store_is_lost_where_doorbells_open_and_close() {
    let node = node();
    let rounds = if cxi_test_kit::full() { "60000" } else { "300" };
    let script = "$0 ring cxi0 3 $1 & $0 ring cxi0 4 $1 & $0 ring cxi1 3 $1; wait";
    let told = printed(&node.enter(&["sh", "-c", script, client(), rounds]));
    assert_eq!(told, "ok\nok\nok");
    eventually("nothing is left", || node.is_idle());
}

/// The times that threads of a process have begun to wait, and the names of the threads.
fn waits(pid: u32) -> (u64, Vec<String>) {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("a process");
    let mut names = Vec::new();
    let counts = threads.flatten().filter_map(|thread| {
        let status = fs::read_to_string(thread.path().join("status")).ok()?;
        names.extend(
            status.lines().find_map(|line| line.strip_prefix("Name:\t")).map(str::to_owned),
        );
        let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        count?.trim().parse::<u64>().ok()
    });
    (counts.sum(), names)
}

/// A program that has mapped doorbells costs nothing while it does not use them.
#[test]
fn an_idle_node_does_not_wake() {
    let node = node();
    let mut idle = node.command(&[client(), "hold", "cxi0", "4"]);
    let mut idle = idle.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a program");
    let mut said = String::new();
    let from = idle.stdout.as_mut().expect("a pipe");
    BufReader::new(from).read_line(&mut said).expect("it is ready");
    assert_eq!(said.trim(), "ready");
    sleep(Duration::from_millis(200));
    let (before, names) = waits(node.pid());
    sleep(Duration::from_millis(600));
    let (after, _) = waits(node.pid());
    drop(idle.stdin.take());
    assert!(idle.wait().expect("the program ends").success());
    if !names.iter().any(|name| name == "bells") {
        let status = fs::read_to_string("/proc/self/status").expect("a process");
        let confined = !status.lines().any(|line| line == "Seccomp:\t0");
        assert!(confined || !can_trap(), "doorbells are not trapped: {names:?}");
        return skip("this process may not have userfaultfd for shared memory");
    }
    // It would be 60 if one thread looked every 10 ms.
    assert!(after - before < 10, "{} waits: {names:?}", after - before);
}

/// Returns whether the kernel is new enough: 5.19.
fn can_trap() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("a kernel");
    let mut numbers = release.split(['.', '-']).map_while(|number| number.parse::<u32>().ok());
    numbers.next().zip(numbers.next()) >= Some((5, 19))
}
