//! `cxi vni`: a pool of VNIs in a file.

mod common;

use std::fs;
use std::path::Path;

use common::vni_pool::Pool;
use common::{MockNode, Said, assert_contains, command, refusals};
use serde_json::{Value, json};

#[test]
fn a_vni_is_used_again_only_after_every_node_has_confirmed() {
    let pool = Pool::of("1024-1025");
    pool.vni("reserve job1").prints("1024\n");
    assert_eq!(pool.vni("reserve job1").done(), "1024\n", "again");
    pool.vni("reserve job2").prints("1025\n");
    pool.vni("reserve job3")
        .refused(7, "error: failed to reserve 1 VNI: 0 available, 2 reserved by jobs");

    pool.vni("release job1 --nodes=node1,node2")
        .prints("Job job1: VNI 1024, draining, waits for node1, node2\n");
    let again = pool.vni("release job1");
    assert_eq!((again.code, again.err.as_str()), (8, ""));
    let short = pool.vni("reserve job3");
    short.failed(7, "error: failed to reserve 1 VNI: 0 available, 1 draining (oldest job job1, ");
    let hint = "\n  cxi vni show lists the draining jobs, and the nodes that have not confirmed.\n";
    assert_contains(&short.err, hint);
    pool.vni("reserve job1").refused(
        4,
        "error: job job1 was released and is still draining VNI 1024 (2 nodes have not \
         confirmed): confirm that first, or give the new run a different ID",
    );

    pool.vni("confirm job1 --node=node1").prints("Job job1: VNI 1024, draining, waits for node2\n");
    pool.vni("confirm job1 --node=node1")
        .refused(1, "error: job job1 does not wait for node node1 (1 node has not confirmed)");
    pool.vni("confirm job1 --node=node2")
        .prints("Job job1 no longer has VNIs: they may be used again\n");
    pool.vni("reserve job3").prints("1024\n");

    pool.vni("configure 2000-2009")
        .failed(0, "warning: 2 VNIs in use are no longer in the pool: they stay with their jobs\n");
    assert_eq!(pool.vni("configure 2000-2009").code, 8);
}

#[test]
fn a_job_that_does_not_start_gives_its_vnis_back() {
    let pool = Pool::of("1024");
    pool.vni("reserve job1").done();
    pool.vni("cancel job1").prints("Job job1 no longer has VNIs: they may be used again\n");
    let logged = fs::read_to_string(pool.path("pool.json")).unwrap();
    let last: Value = serde_json::from_str(logged.lines().last().unwrap()).unwrap();
    assert_eq!(last["change"], json!({"cancelled": {"job": "job1"}}));
    pool.vni("reserve job2").prints("1024\n");
    pool.vni("release job2").done();
    pool.vni("cancel job2").refused(1, "error: job job2 is released: its VNIs are draining");
    pool.vni("cancel job1").refused(5, "error: job job1 has no VNIs in the pool");
}

const IMPOSSIBLE: &str = r#"reserve job2 --count=5
  2: a job can have 1 to 4 VNIs (one service lists no more), not 5
reserve job2 --block=3
  2: invalid block of 3 VNIs: expected a power of two
reserve job2 --tenant=blue
  2: no tenant blue in the configuration of the pool (it has none)
reserve job1 --count=2
  1: job job1 has VNI 1024, which is not 2 VNIs: release it first
release job9
  5: job job9 has no VNIs in the pool
confirm job1 --all
  1: job job1 is not released: its VNIs are in use\n  End its use first: cxi vni release job1 --nodes …
confirm --stray=1030
  5: VNI 1030 is not stray: no node shows it without a job
show job9
  5: job job9 has no VNIs in the pool
configure 1,10
  2: no VNI to assign: the set is "1,10", of which "0-1,10" are excluded"#;

#[test]
fn impossible_requests_are_refused_and_change_nothing() {
    let pool = Pool::of("1024-1039");
    pool.vni("reserve job1").done();
    let read = || fs::read(pool.path("pool.json")).unwrap();
    let before = read();
    for (arguments, code, error) in refusals(IMPOSSIBLE) {
        pool.vni(arguments).refused(code, &error);
        assert_eq!(read(), before, "{arguments:?}");
    }
}

#[test]
fn no_pool_is_said_and_none_is_made() {
    let node = MockNode::new();
    let file = node.directory().join("none.json");
    let with_pool = |file: &Path, arguments: &str| -> Said {
        let mut command = command(arguments);
        command.env("CXI_POOL_FILE", file).output().unwrap().into()
    };
    with_pool(&file, "vni reserve job1").refused(
        2,
        &format!(
            "error: {}: there is no pool of VNIs\n  Create one, for example: cxi vni configure \
             1024-65535\n  The setting pool.file or CXI_POOL_FILE names another file.",
            file.display()
        ),
    );
    assert_eq!(fs::read_dir(node.directory()).unwrap().count(), 0);

    // A mock node's file is not a pool file.
    node.cxi("service create --vni=7").done();
    let before = fs::read(node.file()).unwrap();
    with_pool(&node.file(), "vni show").refused(
        2,
        &format!(
            "error: {}: not a change of a pool: expected value at line 1 column 1\n  The file was \
             left as it is. The setting pool.file or CXI_POOL_FILE names another one.",
            node.file().display()
        ),
    );
    assert_eq!(fs::read(node.file()).unwrap(), before);
}

#[test]
fn the_nodes_of_a_job_can_be_confirmed_at_once() {
    let pool = Pool::of("1024-1039");
    pool.vni("reserve 77 --count=2").done();
    pool.vni("release 77 --nodes=n1,n2").done();
    let shown = pool.show();
    assert_eq!(shown["jobs"][0]["phase"], "draining");
    assert_eq!(shown["jobs"][0]["waits_for"], json!(["n1", "n2"]));
    pool.vni("confirm 77 --all").done();
    assert_eq!(pool.show()["free"], 16);
}

#[test]
fn a_node_is_compared_with_the_pool() {
    let pool = Pool::of("1024-1027");
    pool.vni("reserve job1").done();
    let node = MockNode::new();
    let mock = node.option();
    for vni in ["1024", "1026", "2000"] {
        let vni = format!("--vni={vni}");
        node.cxi(&["service", "create", &vni]).done();
    }
    pool.vni(&["reconcile", "--node=node1", &mock]).prints(
        "VNI 1026 is on node1 and no job has it: it is not assigned until it is no longer \
         there\nVNI 2000 is on node1 and not in this pool\n",
    );
    let shown = pool.show();
    assert_eq!(shown["strays"][0]["vni"], 1026);
    assert_eq!(shown["free"], 2);

    node.cxi("service destroy 3").done();
    pool.vni(&["reconcile", "--node=node1", &mock]).done();
    assert_eq!(pool.show()["free"], 3);

    pool.vni("release job1 --nodes=node1").done();
    pool.vni("reconcile --node=node1 --seen=1025").prints(
        "VNI 1025 is on node1 and no job has it: it is not assigned until it is no longer \
         there\nJob job1 waits for node1, which shows none of its VNIs: if none of its prologs \
         can still be running, cxi vni confirm job1 --node node1\n",
    );
}

#[test]
fn a_damaged_file_is_refused_and_left_as_it_is() {
    let pool = Pool::of("1024-1031");
    pool.vni("reserve job1").done();
    pool.vni("reserve job2 --block=4").done();
    let whole = fs::read_to_string(pool.path("pool.json")).unwrap();
    let refused = |text: &str, message: &str| {
        fs::write(pool.path("pool.json"), text).unwrap();
        for arguments in ["show", "reserve job3"] {
            let expected = format!("error: {}: {message}", pool.path("pool.json").display());
            pool.vni(arguments).failed(2, &expected);
            assert_eq!(fs::read_to_string(pool.path("pool.json")).unwrap(), text);
        }
    };
    let twice = whole.lines().nth(1).unwrap();
    refused(
        &format!("{whole}{twice}\n"),
        "event 3 (reserve VNI 1024 for job job1): expected event number 4, found 2",
    );
    // An incomplete last line would be a change that was never made.
    let half = &whole[..whole.trim_end().len() - 5];
    refused(&format!("{half}\n"), "not a change of a pool: EOF while parsing");
}

#[test]
fn vnis_that_rest_are_not_said_to_be_free() {
    let pool = Pool::of("1024-65535");
    pool.vni("configure 1024-65535 --rest=30s").done();
    pool.vni("reserve job1").done();
    pool.vni("release job1 --nodes=n1").done();
    pool.vni("confirm job1 --node=n1")
        .prints("Job job1 no longer has VNIs: they rest for 30s before they may be used again\n");
}

/// A command with the pool and the controller's records of a directory.
fn on_controller(pool: &Pool, arguments: &str) -> Said {
    let mut command = command(arguments);
    let records = pool.path("decisions");
    command.env("CXI_POOL_FILE", pool.path("pool.json")).env("CXI_CONTROLLER_RECORDS", records);
    command.env("CXI_CONTROLLER_WAIT", "0s").output().unwrap().into()
}

/// The procedure of the documentation: the pool is an older copy, or a new one.
#[test]
fn a_restored_pool_is_told_of_the_jobs_that_have_a_record() {
    for is_copy in [true, false] {
        let pool = Pool::of("1024-1027");
        let cxi = |arguments: &str| on_controller(&pool, arguments);
        let reserve = |job: &str| cxi(&format!("job reserve {job} --uid 1000 --nodes n1"));
        reserve("1").prints("1024\n");
        fs::copy(pool.path("pool.json"), pool.path("copy.json")).unwrap();
        cxi("job release 1").done();
        cxi("job confirm 1 --node n1").done();
        reserve("2").prints("1025\n");
        reserve("3").prints("1026\n");
        cxi("job release 3").done();

        let audit = || cxi("audit --mock");
        let said = audit();
        assert!(!said.out.contains("pool:"), "{}", said.out);
        if is_copy {
            fs::copy(pool.path("copy.json"), pool.path("pool.json")).unwrap();
        } else {
            fs::remove_file(pool.path("pool.json")).unwrap();
            cxi("vni configure 1024-1027").done();
        }
        let said = audit();
        assert_eq!(said.code, 9);
        let expected = "error: pool: job 2 has VNI 1025, and the pool would give it to another job";
        assert_contains(&said.out.replace("\n       ", " "), expected);
        // Not even a reservation without a record takes them.
        let other = cxi("vni reserve other").done();
        assert!(["1024\n", "1027\n"].contains(&&*other), "{other}");
        cxi("vni cancel other").done();
        let said = cxi("vni reconcile --records");
        // Job 1 had ended when the copy was put back.
        let left = "info: job 1 has VNI 1024 in the pool, and no record\n";
        assert_eq!(said.out, if is_copy { left } else { "The pool and the records agree\n" });
        assert_eq!(said.code, 0, "{said:?}");
        if is_copy {
            cxi("vni release 1").done();
            cxi("vni confirm 1 --all").done();
        }
        assert!(!audit().out.contains("pool:"));
        cxi("job confirm 3 --node n1").done();
        let json = cxi("--json vni reconcile --records").json();
        assert_eq!(json, json!({"records": {"adopted": [], "mismatches": []}}));
        let pool = cxi("--json vni show").json();
        assert_eq!((&pool["reserved"], &pool["draining"]), (&json!(1), &json!(1)), "{pool}");
    }
}

#[test]
fn a_pool_that_is_configured_anew_is_told_which_jobs_it_did_not_know() {
    let pool = Pool::of("1024-1027");
    let cxi = |arguments: &str| on_controller(&pool, arguments);
    cxi("job reserve 7 --uid 1000 --nodes n1").prints("1024\n");
    fs::remove_file(pool.path("pool.json")).unwrap();
    cxi("vni configure 1024-1027").done();
    cxi("vni reconcile --records")
        .prints("Job 7 has VNI 1024 by its record: the pool did not know that\n");
    // What a node shows is no stray, as its job is known.
    cxi("vni reconcile --node n1 --seen 1024")
        .prints("n1 shows nothing that the pool does not know\n");
    let none = pool.vni("reconcile --records");
    none.refused(2, "error: no records: expected the setting controller.records");
}

#[test]
fn a_job_number_of_another_user_has_an_exit_code_and_a_way_out() {
    let pool = Pool::of("1024-1027");
    let cxi = |arguments: &str| on_controller(&pool, arguments);
    cxi("job reserve 7 --uid 1000 --nodes n1").done();
    let other = cxi("job reserve 7 --uid 1001 --nodes n1");
    other.mentions(10, "job 7 belongs to uid 1000, not 1001, and has not ended here");
    assert_contains(&other.err, "cxi job release 7 ends the earlier job");
    let said = cxi("--json job reserve 7 --uid 1001 --nodes n1");
    assert_contains(&(said.out + &said.err), "\"kind\":\"other_user\"");
    cxi("job release 7").done();
    cxi("job confirm 7 --node n1").done();
    cxi("job reserve 7 --uid 1001 --nodes n1").done();
}

#[test]
fn a_job_gets_no_vni_of_the_default_service_by_accident() {
    let prolog = "--mock job prolog --job 7 --uid 1000 --cores 4 --vni ";
    for vnis in ["1", "10", "1024,10"] {
        let refused = Said::from(command(&format!("{prolog}{vnis}")).output().unwrap());
        refused.mentions(2, "is one of the default service's");
        let mut allowed = command(&format!("{prolog}{vnis}"));
        allowed.env("CXI_ALLOW_DEFAULT_VNIS", "true");
        Said::from(allowed.output().unwrap()).done();
    }
}
