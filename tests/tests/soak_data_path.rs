//! Random traffic among eight processes of a node with two NICs, each of which is killed or ends
//! after some time, and followed by another one in its place. What anybody gets is what was put,
//! the memory of the server stays as it is, and in the end nothing is left.
//!
//! Some seconds; `CXI_TEST_FULL=1` makes it ten minutes, `CXI_TEST_SECONDS` says how long.

use std::fs;
use std::io::{Write, stderr};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use cxi_test_kit::Random;
use cxi_tests::node::{self, OPEN, Served, client, eventually, need_node, printed, server};

const PLACES: u32 = 8;
/// Memory that the server may have in addition at the end, compared with a quarter of the time,
/// KiB.
const GROWTH: u64 = 8 << 10;

#[derive(Default)]
struct Counts {
    done: AtomicU64,
    nobody: AtomicU64,
    ended: AtomicU64,
    killed: AtomicU64,
}

#[test]
fn traffic_and_kills_leave_nothing_with_traps() {
    soak("trap");
}

#[test]
fn traffic_and_kills_leave_nothing_with_polls() {
    soak("poll");
}

fn soak(doorbells: &str) {
    need_node!(node::windows());
    let options = ["--nics", "2", "--doorbells", doorbells];
    let node = &Served::start(&[&options[..], &OPEN].concat());
    let addresses = node.nids().join(",");
    let counts = Counts::default();
    let files = open_files(node);
    let (start, length) = (Instant::now(), node::soak_length(4));
    let mut memory = Vec::new();
    scope(|scope| {
        for place in 0..PLACES {
            let (addresses, counts) = (&addresses, &counts);
            scope.spawn(move || {
                let mut random = Random::new(place.into());
                while start.elapsed() < length {
                    live(node, (addresses, place), counts, &mut random);
                }
            });
        }
        while start.elapsed() < length {
            memory.push(resident(node));
            sleep(length / 100);
        }
    });
    eventually("nothing is left", || node.is_idle());
    eventually("no file is left open", || open_files(node) <= files);
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let (ended, killed) = (count(&counts.ended), count(&counts.killed));
    let (quarter, last) = (memory[memory.len() / 4], memory[memory.len() - 1]);
    let _ = writeln!(
        stderr(),
        "{doorbells}: {} operations, {} to nobody, by {ended} processes that ended; {killed} were \
         killed; {} KiB at first, {quarter} after a quarter, {last} at the end",
        count(&counts.done),
        count(&counts.nobody),
        memory[0],
    );
    assert!(ended > 0 && killed > 0, "{ended} ended, {killed} killed");
    assert!(count(&counts.done) > 0, "nothing was exchanged");
    assert!(last < quarter + GROWTH, "{memory:?}");
}

/// A process in a place, to its end or until it is killed.
fn live(node: &Served, (addresses, place): (&str, u32), counts: &Counts, random: &mut Random) {
    let device = ["cxi0", "cxi1"][random.below(2)];
    let (place, places) = (place.to_string(), PLACES.to_string());
    let time = (50 + random.below(1000)).to_string();
    // As the process itself, so that a kill hits it.
    let mut command = server(["enter", "--dir", &node.dir(), "--outlive", "--"]);
    let roam = [client(), "roam", device, addresses, &place, &places, &time];
    command.args(roam).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program runs");
    if random.below(2) == 0 {
        sleep(Duration::from_micros(random.below(500_000)));
        child.kill().expect("a child can be killed");
        child.wait().expect("it ends");
        counts.killed.fetch_add(1, Ordering::Relaxed);
        return;
    }
    let output = child.wait_with_output().expect("it ends");
    let said = printed(&output);
    let mut numbers = said.split(' ').map(|number| number.parse().expect("a number"));
    for counter in [&counts.done, &counts.nobody] {
        counter.fetch_add(numbers.next().expect("two numbers"), Ordering::Relaxed);
    }
    counts.ended.fetch_add(1, Ordering::Relaxed);
}

fn open_files(node: &Served) -> usize {
    let files = fs::read_dir(format!("/proc/{}/fd", node.pid()));
    files.expect("the server runs").count()
}

/// Memory of the server, in KiB.
fn resident(node: &Served) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", node.pid()));
    let status = status.expect("the server runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|it| it.parse().ok()).expect("a number")
}
