//! Jobs with records: the controller decides once, nodes read the decision and confirm.

mod common;

use std::fs;
use std::process::Command;

use common::assert_contains;
use common::cluster::Cluster;

#[test]
fn the_controller_decides_once_and_a_vni_is_free_when_all_nodes_have_confirmed() {
    let cluster = Cluster::new("1024-1027");
    let (one, two) = (cluster.node("n1"), cluster.node("n2"));
    cluster.reserve("7", "n[1-2]").prints("1024\n");
    for node in [&one, &two] {
        node.prolog("7").prints("Created service 2 on cxi0-1: for uid 1000, VNI 1024\n");
        let environment = node.cxi("job env --job=7").done();
        assert_contains(&environment, "export SLINGSHOT_VNIS=1024\n");
    }
    cluster.cxi("job release 7").prints("Job 7 has ended\n");
    one.epilog("7").done();
    assert_eq!(cluster.cxi("job release 7").code, 8);
    assert_eq!(cluster.free(), 3, "the other node has it");
    let list = cluster.cxi("job list --controller").done();
    assert_contains(&list, "\n7    ended  1024  waits for n2\n");
    two.epilog("7").done();
    assert_eq!(two.services() + one.services(), 0);
    cluster.reserve("8", "n1").done();
    assert_eq!(cluster.free(), 3, "1024 again, and 1025 for job 8");
    // A second epilog finds nothing, and reports nothing to the controller.
    assert_eq!(two.epilog("7").code, 8);
}

#[test]
fn a_job_that_finds_no_vni_waits_and_is_refused_and_no_node_hears_of_it() {
    let cluster = Cluster::new("1024");
    let node = cluster.node("n1");
    cluster.reserve("1", "n1").done();
    node.prolog("1").done();
    cluster.reserve("2", "n1").failed(7, "error: ");
    assert!(!cluster.path().join("decisions/running/2").exists());

    // The node confirms while the command waits.
    cluster.cxi("job release 1").done();
    assert_eq!(cluster.reserve("2", "n1").code, 7);
    std::thread::scope(|threads| {
        let waiting = threads.spawn(|| {
            let reserve = "job reserve 2 --uid=1000 --nodes=n1";
            cluster.waiting("CXI_CONTROLLER_WAIT=20s", reserve).done()
        });
        node.epilog("1").done();
        assert_eq!(waiting.join().unwrap(), "1024\n");
    });
    // A requeued job waits for its own nodes.
    node.prolog("2").done();
    cluster.cxi("job release 2").done();
    assert_eq!(cluster.reserve("2", "n1").code, 4);
    node.epilog("2").done();
    cluster.reserve("2", "n1").done();
}

#[test]
fn components_of_a_heterogeneous_job_share_its_vnis_and_services() {
    let cluster = Cluster::new("1024-1027");
    let (one, two) = (cluster.node("n1"), cluster.node("n2"));
    let reserve = |component: u8, nodes: &str| {
        let job = format!("job reserve 4 --component={component} --uid=1000 --nodes={nodes}");
        cluster.cxi(&job).done()
    };
    // Components may come in any order.
    assert_eq!(reserve(5, "n2"), "1024\n");
    assert_eq!(reserve(4, "n[1-2]"), "1024\n");
    for (node, component) in [(&one, "4"), (&two, "5"), (&two, "4")] {
        let prolog = format!("job prolog --job=4 --cores=1 --component={component}");
        node.cxi(&prolog).done();
        // Tasks of all components have the leader's job ID.
        node.cxi("job env --job=4").done();
    }
    assert_eq!(two.services(), 2);

    // The services on the second node stay for the component that is still running there.
    let epilog = |component| format!("job epilog --job=4 --node=n2 --component {component}");
    cluster.cxi("job release 4 --component=5").done();
    assert_eq!(two.cxi(&epilog("5")).code, 8);
    assert_eq!(two.services(), 2);
    assert_eq!(two.clean().code, 8);
    cluster.cxi("job release 4 --component=4").done();
    two.cxi(&epilog("4")).done();
    assert_eq!(cluster.cxi("job release 4").code, 8);
    assert_eq!(cluster.free(), 3);
    one.cxi("job epilog --job=4 --node=n1 --component=4").done();
    cluster.cxi("job release 4");
    assert_eq!(cluster.free(), 4);
}

#[test]
fn a_task_without_an_environment_is_told_why() {
    let cluster = Cluster::new("1024");
    let node = cluster.node("n1");
    let record = cluster.path().join("n1.toml.jobs/9.json");
    node.cxi("job env --job=9").refused(
        5,
        &format!(
            "error: job 9 has no record on this node: there is no {}\n  Its prolog did not run \
             here or failed, or its epilog has finished.",
            record.display()
        ),
    );
    // A job that needs no VNI has a record and nothing else.
    cluster.cxi("job reserve 9 --uid=1000 --nodes=n1 --network=no_vni").done();
    node.prolog("9").done();
    let cleared = node.cxi("job env --job=9").done();
    let unset = |line: &str| line.starts_with("unset SLINGSHOT_");
    assert!(cleared.lines().all(unset), "{cleared}");
    assert_eq!(node.epilog("9").code, 8);
    assert!(!record.exists());
}

#[test]
fn a_failed_epilog_is_finished_by_a_clean_up() {
    let cluster = Cluster::new("1024");
    let node = cluster.node("n1");
    cluster.reserve("1", "n1").done();
    node.prolog("1").done();
    let epilog = ["job", "epilog", "--job=1", "--node=n1"];
    assert_eq!(node.faulty("SVC_DESTROY:EBUSY", &epilog).code, 4);
    cluster.cxi("job release 1").done();
    assert_eq!(node.cxi("--json job list").json()["jobs"][0]["state"], "ended");
    let clean = ["job", "clean", "--node=n1"];
    assert_eq!(node.faulty("SVC_DESTROY:EBUSY", &clean).code, 4);
    assert_eq!(cluster.cxi("job release 1").code, 8);
    assert_eq!(cluster.free(), 0);
    node.clean().prints(
        "cxi0: service 2 (uid 1000, VNI 1024): destroyed\ncxi1: service 2 (uid 1000, VNI 1024): \
         destroyed\nJob 1 has ended: nothing is left of it\n",
    );
    assert_eq!(node.clean().code, 8);
    cluster.reserve("2", "n1").done();
}

#[test]
fn an_epilog_that_never_ran_is_made_up_for() {
    let cluster = Cluster::new("1024");
    let node = cluster.node("n1");
    cluster.reserve("1", "n1").done();
    node.prolog("1").done();
    assert_eq!(node.clean().code, 8, "the job lives");
    cluster.cxi("job release 1").done();
    node.clean().done();
    assert_eq!(node.services(), 0);
    cluster.reserve("2", "n1").done();
}

#[test]
fn a_node_that_was_reset_confirms() {
    let cluster = Cluster::new("1024");
    let (one, two) = (cluster.node("n1"), cluster.node("n2"));
    for how in ["epilog", "clean"] {
        cluster.reserve("1", "n[1-2]").done();
        one.prolog("1").done();
        two.prolog("1").done();
        two.reset();
        cluster.cxi("job release 1").done();
        one.epilog("1").done();
        assert_eq!(cluster.reserve("2", "n1").code, 7, "the reset node has not confirmed");
        match how {
            "epilog" => assert_eq!(two.epilog("1").code, 8),
            _ => assert_eq!(two.clean().done(), "Job 1 has ended: nothing is left of it\n"),
        }
        cluster.reserve("2", "n1").done();
        cluster.cxi("job release 2").done();
        one.epilog("2");
        cluster.cxi("job release 2");
    }
    // For a node that never comes back, an operator confirms.
    cluster.reserve("3", "n[1-2]").done();
    cluster.cxi("job release 3").done();
    for node in ["n1", "n2"] {
        cluster.cxi(&["job", "confirm", "3", "--node", node]).done();
    }
    cluster.cxi("job confirm 3 --node=n3").refused(5, "error: there is no job 3 that waits for n3");
    cluster.reserve("4", "n1").done();
}

#[test]
fn a_sweep_ends_what_the_scheduler_no_longer_knows() {
    let cluster = Cluster::new("1024-1027");
    let node = cluster.node("n1");
    for job in ["1", "2", "3"] {
        cluster.reserve(job, "n1").done();
        node.prolog(job).done();
    }
    for (command, why) in [
        ("exit 3", "ended with exit status: 3"),
        ("echo 2; kill $$", "ended with signal: 15 (SIGTERM)"),
        ("echo \"1 2'\"", "job id \"2'\" has"),
        ("cat /dev/zero", "too long"),
    ] {
        let said = cluster.cxi(&["job", "sweep", "--", "sh", "-c", command]);
        said.mentions(1, &format!("error: sh: {why}"));
        assert_contains(&said.err, "Nothing was released.");
    }
    // The wait is bounded even if the command has passed the pipe to another process.
    for command in ["exec sleep 60", "sleep 9 2> /dev/null & exit 0"] {
        let sweep = ["job", "sweep", "--", "sh", "-c", command];
        let said = cluster.waiting("CXI_WAIT=1s", &sweep);
        said.mentions(1, "error: sh: no list of jobs within 1s");
    }
    // A job that starts while the list is printed is not in it, and is kept.
    let late = format!(
        "{} job reserve 4 --uid=1000 --nodes=n1 > /dev/null; echo 2 9",
        env!("CARGO_BIN_EXE_cxi")
    );
    let sweep = ["job", "sweep", "--", "sh", "-c", late.as_str()];
    cluster.cxi(&sweep).prints("Job 1 has ended\nJob 3 has ended\n");
    node.clean().done();
    assert_eq!(cluster.cxi("job sweep -- echo 2 4").code, 8);
    assert_eq!((cluster.free(), node.services()), (2, 2));
    cluster.cxi("job sweep -- echo 2").prints("Job 4 has ended\n");
}

#[test]
fn a_record_that_others_can_write_is_not_believed() {
    use std::os::unix::fs::PermissionsExt as _;
    let cluster = Cluster::new("1024");
    let node = cluster.node("n1");
    cluster.reserve("1", "n1").done();
    let record = cluster.path().join("decisions/running/1/job.json");
    fs::set_permissions(&record, fs::Permissions::from_mode(0o664)).unwrap();
    node.prolog("1").refused(
        2,
        &format!("error: {}: group or others may write it: expected mode 644", record.display()),
    );
    assert_eq!(node.services(), 0);
    fs::remove_file(&record).unwrap();
    let pipe = Command::new("mkfifo").args(["-m", "644"]).arg(&record).status();
    assert!(pipe.unwrap().success());
    node.prolog("1")
        .refused(2, &format!("error: {}: not a record: expected a regular file", record.display()));
    let said = cluster.reserve("../1", "n1");
    assert_contains(&said.err, "expected no slash");
}

#[test]
fn a_scheduler_with_vnis_of_its_own_needs_the_record_only() {
    let cluster = Cluster::new("1024");
    let node = cluster.node("n1");
    let prolog = "job prolog --job=ƒ3Wq --uid=7 --vni=2000 --cores=1";
    // A container's network namespace may be gone when its epilog runs.
    node.cxi(prolog).done();
    assert_eq!(node.clean().code, 8);
    assert_eq!(node.epilog("ƒ3Wq").code, 0);
    assert_eq!(node.services(), 0);
    // Nor is anything left of a command that was killed while it wrote a record.
    let half = cluster.path().join("n1.toml.jobs/.7.json.aB3dE6.new");
    fs::write(&half, "{").unwrap();
    assert_eq!(node.clean().code, 8);
    assert!(!half.exists());
    // Its daemon was killed and has restarted: none of its jobs is live.
    node.cxi(prolog).done();
    node.cxi("job clean --none-live").done();
    assert_eq!(node.services(), 0);
    assert_eq!(node.cxi("job list").done().lines().count(), 1);
}

#[test]
fn where_a_job_is_in_its_life_is_explained_with_the_command_that_ends_it() {
    let cluster = Cluster::new("1024");
    let (one, two) = (cluster.node("n1"), cluster.node("n2"));
    let unknown = one.cxi("explain job 7");
    unknown.failed(5, "error: job 7 has no record here");
    cluster.reserve("7", "n[1-2]").done();
    one.prolog("7").done();
    one.cxi("explain job 7").prints(
        "Job 7 on this node: running, VNIs 1024\nJob 7 on the controller: running, VNIs 1024\n\
         cxi0-1: service 2 (for uid 1000, VNI 1024): none of its resources are in use; no visible \
         process has the NIC open\n\
         What to do:\n  cxi job epilog --job 7   (only if it was killed without an epilog)\n",
    );
    cluster.cxi("job release 7").done();
    let ended = one.cxi("explain job 7").done();
    assert_contains(&ended, "What to do:\n  cxi job epilog --job 7   (");
    one.epilog("7").done();
    // Neither node has a record of it now; the second node never started it.
    two.cxi("explain job 7").prints(
        "Job 7 on the controller: ended, VNIs 1024, waits for n2\nWhat to do:\n  cxi job confirm 7 --node n2   \
         (if n2 was reinstalled or is gone)\n",
    );
    let next = &two.cxi("--json explain job 7").json()["next"];
    assert_eq!(next.as_array().unwrap().len(), 1);
}
