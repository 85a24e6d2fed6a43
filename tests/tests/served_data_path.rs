//! The data path of a served node: what a process sends arrives, whichever other one is killed
//! meanwhile, and no process reaches more than what is exposed.

use cxi_test_kit::Directory;
use cxi_tests::fuse_file;
use cxi_tests::node::{self, OPEN, Run, Served, client, eventually, need_node, printed};
use cxi_tests::traffic::EXCHANGING;

/// A node with two NICs.
fn node(doorbells: &str) -> Served {
    let options = ["--nics", "2", "--doorbells", doorbells];
    Served::start(&[&options[..], &OPEN].concat())
}

#[test]
fn a_put_leaves_one_process_and_arrives_in_another() {
    need_node!(node::windows());
    for doorbells in ["trap", "poll"] {
        let node = node(doorbells);
        let nids = node.nids();
        for (device, to, from) in [("cxi0", 0, 0), ("cxi1", 1, 0)] {
            let there =
                node.command(&[client(), "exchange", device, "4", &nids[from], "3", "100"]).start();
            let here = node.enter(&[client(), "exchange", "cxi0", "3", &nids[to], "4", "100"]);
            assert_eq!(printed(&here), "ok", "{doorbells}");
            let there = there.wait_with_output().expect("the program ends");
            assert_eq!(printed(&there), "ok", "{doorbells}");
        }
        assert!(node.is_idle(), "{:?}", node.nics());
    }
}

/// Long messages are copied by programs that are stopped: they arrive complete as well, and signals
/// that come meanwhile reach the programs.
#[test]
fn long_messages_arrive_among_signals() {
    need_node!(node::windows());
    let node = node("trap");
    let [nid, _] = node.nids();
    let script = "$0 exchange cxi0 3 $1 4 400 65536 & one=$!
        $0 exchange cxi0 4 $1 3 400 65536 & other=$!
        while kill -CONT $one $other 2>/dev/null; do
            kill -STOP $one; kill -CONT $one; kill -WINCH $other
        done
        wait $one && wait $other";
    let told = printed(&node.enter(&["sh", "-c", script, client(), &nid]));
    assert_eq!(told, "ok\nok");
    assert!(node.is_idle(), "{:?}", node.nics());
}

/// End of a process, with its exit status.
type End = (&'static str, &'static str);

const KILL: End = ("kill -9 $victim", "137");
/// By its other thread.
const EXECUTE: End = ("echo >&3", "0");

/// Ends a process that exchanges messages of some bytes with another, which is notified.
fn end_one_of_two(node: &Served, nid: &str, exchange: &str, bytes: &str, end: End) {
    let script = "mkfifo $4/in; exec 3<> $4/in
        $0 $2 cxi0 3 $1 4 100000000 $3 < $4/in 2> $4/said & victim=$!
        $0 $2 cxi0 4 $1 3 100000000 $3 & peer=$!
        until grep -q $5 $4/said; do sleep 0.01; done
        eval $6; wait $peer; wait $victim; echo $?";
    let directory = Directory::new();
    let place = directory.path().display().to_string();
    let mut arguments = vec!["timeout", "120", "sh", "-c", script, client()];
    arguments.extend([nid, exchange, bytes, &place, EXCHANGING, end.0]);
    let told = printed(&node.enter(&arguments));
    let (peer, status) = told.split_once('\n').expect("two lines");
    assert!(peer.starts_with("the peer is gone"), "{told}");
    assert_eq!(status, end.1);
}

/// A process is killed while it sends: its peer is notified, two others are not, and nothing of it
/// is left.
#[test]
fn a_process_that_is_killed_leaves_nothing() {
    need_node!(node::windows());
    for doorbells in ["trap", "poll"] {
        let node = node(doorbells);
        let [nid, _] = node.nids();
        let others = node
            .command(&[
                "sh",
                "-c",
                "$0 exchange cxi0 5 $1 6 150 & $0 exchange cxi0 6 $1 5 150; wait",
            ])
            .args([client(), &nid])
            .start();
        end_one_of_two(&node, &nid, "exchange", "512", KILL);
        let others = others.wait_with_output().expect("the program ends");
        assert_eq!(printed(&others), "ok\nok", "{doorbells}");
        eventually("nothing is left", || node.is_idle());
    }
}

/// The NIC waits for a page of a process that does not come. All others go on, and so does that
/// process when the page is there.
#[test]
fn a_page_that_does_not_come_stops_no_other_process() {
    need_node!(node::windows());
    let directory = Directory::new();
    let (_session, unanswered) =
        fuse_file::mount_unanswered(directory.path(), "pages", 1 << 16).expect("FUSE works");
    for doorbells in ["trap", "poll"] {
        let node = node(doorbells);
        let [nid, _] = node.nids();
        let mut absent = node
            .command(&[client(), "absent", "cxi0", "7", &nid, "7"])
            .arg(directory.join("pages"))
            .start();
        eventually("the NIC reads the page", || !unanswered.lock().expect("no panic").is_empty());
        let telemetry = "cat /sys/class/cxi/cxi0/device/telemetry/* | wc -l";
        for _ in 0..3 {
            let lines = printed(&node.enter(&["timeout", "60", "sh", "-c", telemetry]));
            assert_ne!(lines, "0", "{doorbells}");
            let pair = "timeout 60 $0 exchange cxi0 5 $1 6 150 &
                timeout 60 $0 exchange cxi0 6 $1 5 150; wait";
            let pair = node.enter(&["sh", "-c", pair, client(), &nid]);
            assert_eq!(printed(&pair), "ok\nok", "{doorbells}");
        }
        // Whoever reads it gets an error, and may read again.
        eventually("the program ends", || {
            unanswered.lock().expect("no panic").clear();
            absent.try_wait().expect("it is a child").is_some()
        });
        let absent = absent.wait_with_output().expect("the program ends");
        assert_eq!(printed(&absent), "SRC_ERROR", "{doorbells}");
        eventually("nothing is left", || node.is_idle());
    }
}

/// A process with several threads is killed, or one of them executes another program, while it
/// sends long messages and commands; repeatedly, as the kernel reports the end of the first last.
#[test]
fn a_process_with_threads_that_ends_leaves_the_nic_to_others() {
    need_node!(node::windows());
    let node = node("trap");
    let [nid, _] = node.nids();
    for _ in 0..8 {
        for end in [KILL, EXECUTE] {
            end_one_of_two(&node, &nid, "threaded exchange", "65536", end);
        }
    }
    eventually("nothing is left", || node.is_idle());
}

#[test]
fn a_process_reaches_what_is_exposed_and_no_more() {
    need_node!(node::windows());
    let node = node("trap");
    let [nid, _] = node.nids();
    // The victim holds its buffer until the intruder has ended.
    let script = "mkfifo $2/hold; $0 hold cxi0 4 < $2/hold > $2/said & victim=$!
        exec 3> $2/hold
        until grep -q ready $2/said; do sleep 0.01; done
        $0 intrude cxi0 3 $1 4
        exec 3>&-; wait $victim; cat $2/said";
    let directory = Directory::new();
    let place = directory.path().display().to_string();
    let told = printed(&node.enter(&["sh", "-euc", script, client(), &nid, &place]));
    assert_eq!(
        told,
        "OP_VIOLATION OP_VIOLATION OP_VIOLATION OP_VIOLATION NO_TRANSLATION NO_TRANSLATION \
         PTLTE_NOT_FOUND PTLTE_NOT_FOUND\nready\nuntouched"
    );
    // So do the NIC's counters.
    let script = "cd /sys/class/cxi/cxi0/device/telemetry
        cut -d@ -f1 lpe_err_op_violation rmu_ptl_no_ptlte_cntr lpe_net_match_requests_1";
    let counted = printed(&node.enter(&["sh", "-c", script]));
    assert_eq!(counted, "4\n2\n4");
    assert!(node.is_idle(), "{:?}", node.nics());
}

/// Doorbells of target queues are opened and closed while a program stores to them: each store
/// arrives, trapped or not, and with two programs as with one.
#[test]
fn no_store_is_lost_where_doorbells_open_and_close() {
    need_node!(node::windows());
    let node = node("trap");
    let script = "$0 ring cxi0 3 1500 & $0 ring cxi0 4 1500; wait";
    let told = printed(&node.enter(&["sh", "-c", script, client()]));
    assert_eq!(told, "ok\nok");
    assert!(node.is_idle(), "{:?}", node.nics());
}
