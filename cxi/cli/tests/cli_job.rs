//! `cxi job`: a job's services from prolog to epilog.

mod common;

use std::fs;

use common::{Arguments, MockNode, Said, assert_contains, refusals};
use serde_json::json;

fn prolog(node: &MockNode, number: u32, options: &(impl Arguments + ?Sized)) -> Said {
    let job = format!("job prolog --job={number} --uid=100{number} --vni=102{number} --cores=8");
    node.cxi(&[job.words(), options.words()].concat())
}

fn epilog(node: &MockNode, number: u32, options: &(impl Arguments + ?Sized)) -> Said {
    let job = format!("job epilog --job={number}");
    node.cxi(&[job.words(), options.words()].concat())
}

#[test]
fn the_fourth_job_is_told_who_has_the_tle_pools_and_what_to_do() {
    let node = MockNode::new();
    for number in 1..=3 {
        prolog(&node, number, &[]).prints(&format!(
            "Created service {} on cxi0-1: for uid 100{number}, VNI 102{number}\n",
            number + 1
        ));
    }
    prolog(&node, 4, "--mode=strict").refused(
        7,
        "error: cxi0-1: no TLE pool is left for the 8 TLEs of the job
  A NIC has 4 TLE pools. The default service has one even while it is disabled, so at most 3 \
         services with TLEs fit on a NIC, however few TLEs they ask for. A service without limits \
         also has TLEs.
  Held by:
    service 1 (default service, VNIs 1,10, disabled): 512 TLEs reserved
    service 2 (uid 1001, VNI 1021): 8 TLEs reserved, nothing in use
    service 3 (uid 1002, VNI 1022): 8 TLEs reserved, nothing in use
    service 4 (uid 1003, VNI 1023): 8 TLEs reserved, nothing in use
  What to do:
    - Give jobs limits with 0 TLEs: any number of them then fit on a NIC, without triggered \
         operations.
    - Wait for one of these jobs to end. If one has ended, release its services, or clean \
         up what ended jobs left on the node.
The job has no service on any NIC.
  --no-tles makes a job without TLEs; --mode=scale-back takes what is available.
  cxi job plan shows how many jobs of a size fit, cxi service usage which services use what.",
    );
    assert_eq!(node.services(), 6);

    // Each remedy that the message names works.
    prolog(&node, 4, "--no-tles").prints("Created service 5 on cxi0-1: for uid 1004, VNI 1024\n");
    let holders = "all 4 TLE pools are taken, by service 1 (default service), service 2 (uid \
                   1001), service 3 (uid 1002), service 4 (uid 1003)";
    let warnings = ["cxi0", "cxi1"].map(|nic| {
        format!(
            "warning: less than the job's size asks for: {nic}: 8 TLEs wanted, 0 available: \
             {holders}\n"
        )
    });
    prolog(&node, 5, &[]).warns(&warnings.concat());
    epilog(&node, 1, &[]).done();
    prolog(&node, 6, &[]).done();
}

#[test]
fn a_plan_says_how_many_jobs_fit_and_changes_nothing() {
    let node = MockNode::new();
    node.cxi("job plan --cores=8").prints(
        "cxi0-1:
  Resource  Reserved    Max
  PTEs            48   2048
  TXQs            16   1024
  TGQs             8    512
  EQs             16   2047
  CTs              8   2047
  LEs            128  16384
  TLEs             8      8
  ACs             16   1022
  3 more jobs of this size fit; TLE pools are the limit\n",
    );
    let plan = node.cxi("--json job plan --cores=200 --no-tles").json();
    assert_eq!(plan["plans"][1]["device"], "cxi1");
    assert_eq!(plan["plans"][1]["fits"], 1);
    assert_eq!(plan["plans"][1]["first_out"], "PTEs");

    assert_eq!(
        prolog(&node, 1, "--dry-run").done().lines().next(),
        Some("Would create one service on each of cxi0-1: for uid 1001, VNI 1021")
    );
    assert_eq!(node.services(), 0);
    let large = ["--cores=300", "--no-tles"];
    let first = ["-d", "cxi1", "job", "prolog", "--job=1", "--uid=1001", "--vni=1021"];
    node.cxi(&[&first[..], &large].concat()).done();
    let plan = node.cxi(&[["job", "plan"], large].concat()).done();
    let (one, other) = plan.split_once("cxi1:\n").unwrap();
    assert_contains(one, "  1 more job of this size fits; PTEs are the limit\n");
    assert_contains(other, "  No such job fits: there are not enough PTEs\n");
}

const INVALID: &str = r"job prolog --job=7 --vni=7 --cores=1
  2: no member: name who may use the services with --uid, --gid or --netns
job prolog --job=7 --uid=7 --cores=1
  2: no directory for the controller's decisions\n  Set controller.records to a directory on a file system that all nodes mount.
job prolog --job=7 --uid=7 --cores=1 --dry-run
  2: no VNIs: name them with --vni, or a block of them with --vni-range
job epilog --job=1 --retry-busy=soon
  2: invalid value 'soon' for '--retry-busy <TIME>': expected number at 0: expected a time such as 500ms, 30s or 5m\n\nFor more information, try '--help'.";

#[test]
fn invalid_requests_are_explained() {
    let node = MockNode::new();
    for (arguments, code, error) in refusals(INVALID) {
        node.cxi(arguments).refused(code, &error);
    }
    assert!(!node.file().exists());
}

#[test]
fn a_prolog_runs_twice_and_an_epilog_too() {
    let node = MockNode::new();
    prolog(&node, 1, &[]).done();
    prolog(&node, 1, &[]).prints("Adopted service 2 on cxi0-1: for uid 1001, VNI 1021\n");
    epilog(&node, 1, &[]).prints(
        "cxi0: service 2 (uid 1001, VNI 1021): destroyed\n\
         cxi1: service 2 (uid 1001, VNI 1021): destroyed\n",
    );
    epilog(&node, 1, &[]).ended(8, "Nothing to do: the job has no service on this node\n");
    assert_eq!(node.services(), 0);
}

#[test]
fn an_epilog_waits_for_what_is_busy_and_says_what_is_left() {
    let node = MockNode::new();
    prolog(&node, 1, &[]).done();
    let busy = "--mock-fault=cxi1:SVC_DESTROY:EBUSY";
    let left = "Its VNIs must not be given to another job on this node before it is destroyed.";
    let said = epilog(&node, 1, &[busy]);
    said.ended(4, "cxi0: service 2 (uid 1001, VNI 1021): destroyed\n");
    let expected = format!(
        "error: cxi1: service 2 (uid 1001, VNI 1021): still in use; no visible \
         process has the NIC open\n  --retry-busy TIME keeps trying until it is idle; \
         ending its processes helps.\n  {left}\n"
    );
    assert_eq!(said.err, expected);
    let said = epilog(&node, 1, &[busy, "--retry-busy=60ms", "--json"]);
    assert_eq!(said.code, 4);
    let error: serde_json::Value = serde_json::from_str(&said.err).unwrap();
    let error = &error["error"];
    assert_eq!(error["kind"], "busy");
    assert_eq!(error["exit_code"], 4);
    assert_eq!(error["errno"]["name"], "EBUSY");
    let out: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(out["status"], "still_busy");

    let busy = "--mock-fault=SVC_DESTROY:EBUSY:times=3";
    epilog(&node, 1, &[busy, "--retry-busy=10s"])
        .prints("cxi1: service 2 (uid 1001, VNI 1021): destroyed\n");

    // A failure that a retry cannot help decides the exit code.
    prolog(&node, 2, &[]).done();
    let faults = "--mock-fault=cxi0:SVC_DESTROY:EBUSY,cxi1:SVC_DESTROY:EIO";
    let said = epilog(&node, 2, &[faults]);
    said.failed(
        1,
        "error: cxi1: service 2 (uid 1002, VNI 1022): not destroyed: cxi1: SVC_DESTROY: the \
             device has been removed\n",
    );
    assert_contains(&said.err, "error: cxi0: service 2");
}

#[test]
fn a_refusal_on_one_nic_leaves_nothing_on_the_other() {
    let node = MockNode::new();
    node.cxi("service create -d cxi1 --uid=9 --vni-range=1016-1023").done();
    let said = prolog(&node, 1, &[]);
    said.mentions(1, "service 2 (uid 9, VNIs 1016-1023)");
    said.mentions(1, "The job has no service on any NIC.");
    assert_eq!(node.services(), 1);
}

#[test]
fn the_environment_is_that_of_the_grant_and_of_the_nics() {
    let node = MockNode::new();
    // The service has a different ID on each NIC.
    node.cxi("service create -d cxi1 --uid=9 --vni=9").done();
    let printed = prolog(&node, 1, "--json").json();
    assert_eq!(printed["environment"]["SLINGSHOT_SVC_IDS"], "2,3");
    let shell = "export SLINGSHOT_VNIS=1021\nexport SLINGSHOT_DEVICES=cxi0,cxi1\nexport \
                 SLINGSHOT_SVC_IDS=2,3\nexport SLINGSHOT_TCS=0xa\n";
    node.cxi("job env --job=1").prints(shell);
    let environment = node.cxi("--json job env --job=1").json();
    assert_eq!(environment["environment"]["SLINGSHOT_SVC_IDS"], "2,3");
    assert_eq!(environment["clear"], json!([]));

    prolog(&node, 2, &[]).done();
    epilog(&node, 1, &[]).done();
    node.cxi("job env --job=1")
        .mentions(5, "error: job 1 has no record on this node: there is no ");
    assert_eq!(node.services(), 3);
}

#[test]
fn cleaning_spares_what_lives_and_what_is_not_the_schedulers() {
    let node = MockNode::new();
    for number in 1..=3 {
        let service = format!("--uid=100{number} --vni=102{number} --limit=txqs=1:1");
        node.cxi(&format!("service create {service}")).done();
    }
    let before = fs::read(node.file()).unwrap();
    let clean = ["job", "clean", "--vni-pool=1022-1100", "--live=1023", "-d"];
    let clean = |options: &[&str]| node.cxi(&[&clean, options].concat());
    // An administrator's services are left, even by an order that takes what is foreign.
    for more in [&["all"][..], &["all", "--foreign"]] {
        clean(more).ended(8, "Nothing to do: no service is left of a job that has ended\n");
        assert_eq!(node.services(), 6);
    }
    // Another scheduler writes no records.
    fs::remove_dir_all(node.directory().join("state.json.d/services")).unwrap();
    clean(&["all"]).mentions(8, "left cxi1: service 3 (uid 1002, VNI 1022): no record says who");
    assert_eq!(node.services(), 6);
    let clean = |options: &[&str]| clean(&[options, &["--foreign"]].concat());
    clean(&["cxi0", "--dry-run"]).prints(
        "Would destroy cxi0: service 3 (uid 1002, VNI 1022): its VNI is in the pool, and no live \
         job has it\n\
         Keeps cxi0: service 1 (default service, VNIs 1,10, disabled): it is the default \
         service\n\
         Keeps cxi0: service 2 (uid 1001, VNI 1021): none of its VNIs is in the pool\n\
         Keeps cxi0: service 4 (uid 1003, VNI 1023): it belongs to a live job\n",
    );
    assert_eq!(fs::read(node.file()).unwrap(), before);
    clean(&["all"]).prints(
        "cxi0: service 3 (uid 1002, VNI 1022): destroyed\n\
         cxi1: service 3 (uid 1002, VNI 1022): destroyed\n",
    );
    let again = clean(&["all"]);
    again.ended(8, "Nothing to do: no service is left of a job that has ended\n");
    assert_eq!(node.services(), 4);
}
