//! Hardware collectives of jobs that the controller decides on, with a mock fabric manager.

mod common;

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::{fs, thread};

use common::cluster::{Cluster, Node};
use cxi_fabric_manager::{Endpoint, Fault};
use cxi_test_kit::FabricManager;

/// A controller with a fabric manager.
fn cluster(vnis: &str, mock: &FabricManager, more: &str) -> Cluster {
    let cluster = Cluster::new(vnis);
    configure(&cluster, mock, more);
    cluster
}

fn configure(cluster: &Cluster, mock: &FabricManager, more: &str) {
    let manager = mock.settings("1s");
    cluster.configure(&format!("[collectives]\ntrees = 4\n{more}{manager}"));
}

/// The variables that a step sets for its collectives.
fn of_collectives(node: &Node, job: &str, more: &[&str]) -> Vec<String> {
    let said = node.cxi(&[&["job", "env", "--job", job], more].concat());
    let text = said.done();
    let lines = text.lines().filter(|line| line.contains(" FI_CXI_"));
    lines.map(str::to_owned).collect()
}

fn set(lines: &[String]) -> usize {
    let set = lines.iter().filter(|line| line.starts_with("export "));
    set.count()
}

#[track_caller]
fn readable_by(path: &Path, uid: u32) {
    let file = fs::metadata(path).unwrap();
    assert_eq!((file.permissions().mode() & 0o777, file.uid()), (0o600, uid));
}

#[test]
fn a_job_has_one_reservation_for_all_its_nodes_until_it_ends() {
    let mock = FabricManager::start();
    let cluster = cluster("1024", &mock, "");
    let [one, two] = ["n1", "n2"].map(|name| cluster.node(name));
    cluster.reserve("7", "n[1-2]").done();
    assert_eq!(mock.state().jobs["alpha-7"].limit, 4);
    one.prolog("7").done();
    two.prolog("7").done();
    let lines = of_collectives(&one, "7", &[]);
    assert_eq!(lines, of_collectives(&two, "7", &[]));
    for line in [
        "export FI_CXI_HWCOLL_ADDRS_PER_JOB=4",
        "export FI_CXI_HWCOLL_MIN_NODES=2",
        "export FI_CXI_COLL_JOB_ID='alpha-7'",
        "export FI_CXI_COLL_JOB_STEP_ID=0",
    ] {
        assert!(lines.iter().any(|one| one == line), "{line}: {lines:?}");
    }
    let step = of_collectives(&one, "7", &["--step=3"]);
    assert!(step.contains(&"export FI_CXI_COLL_JOB_STEP_ID=3".to_owned()));

    // Only the controller and the job's user can read the session token.
    let user = nix::unistd::geteuid();
    let uid = if user.is_root() { 1000 } else { user.as_raw() };
    let kept = |name: &str| cluster.path().join("n1.toml.jobs").join(name);
    let decided = |name: &str| cluster.path().join("decisions/running/7").join(name);
    readable_by(&kept("7.secret"), uid);
    readable_by(&decided("reservation.json"), user.as_raw());
    let token = lines.iter().find(|line| line.contains("MCAST_TOKEN"));
    let token = token.unwrap().split('\'').nth(1).unwrap();
    for file in [kept("7.json"), decided("job.json")] {
        assert!(!fs::read_to_string(file).unwrap().contains(token));
    }

    // Another node still runs the step after it has ended on the first node.
    one.epilog("7").done();
    assert!(!kept("7.secret").exists());
    assert!(!mock.state().is_quiet());
    cluster.cxi("job release 7").done();
    mock.assert_quiet();
    let ended = cluster.path().join("decisions/ended/7");
    assert!(ended.join("job.json").exists() && !ended.join("reservation.json").exists());
    two.epilog("7").done();
    cluster.reserve("8", "n1").done();
}

#[test]
fn small_jobs_and_jobs_without_a_vni_have_none() {
    let mock = FabricManager::start();
    let cluster = cluster("1024-1026", &mock, "min-nodes = 3\n");
    let node = cluster.node("n1");
    cluster.reserve("1", "n[1-2]").done();
    node.prolog("1").done();
    assert_eq!(of_collectives(&node, "1", &[]), [""; 0]);
    let no_vni = "job reserve 2 --uid=1 --nodes=n[1-3] --network=no_vni";
    assert_eq!(cluster.cxi(no_vni).code, 0);
    mock.assert_quiet();
    // The nodes of all components count.
    let component = |number, nodes| {
        let component = format!("--component={number}");
        let nodes = format!("--nodes={nodes}");
        cluster.cxi(&["job", "reserve", "3", "--uid=1000", &component, &nodes]).done();
    };
    component(3, "n[1-2]");
    mock.assert_quiet();
    component(4, "n[3-4]");
    let release = |component| cluster.cxi(&["job", "release", "3", "--component", component]);
    release("3").done();
    assert!(!mock.state().is_quiet());
    release("4").done();
    mock.assert_quiet();
}

#[test]
fn a_job_that_asks_has_trees_however_small_it_is() {
    let mock = FabricManager::start();
    let cluster = cluster("1024-1026", &mock, "min-nodes = \"\"\n");
    let node = cluster.node("n1");
    cluster.reserve("1", "n[1-4]").done();
    mock.assert_quiet();
    cluster.cxi("job reserve 2 --uid=1000 --nodes=n[1-2] --network=hwcoll").done();
    node.prolog("2").done();
    let lines = of_collectives(&node, "2", &[]);
    assert!(lines.contains(&"export FI_CXI_COLL_JOB_ID='alpha-2'".to_owned()), "{lines:?}");
    assert!(!lines.iter().any(|line| line.starts_with("export FI_CXI_HWCOLL_MIN")), "{lines:?}");
    cluster.cxi("job release 2").done();
    mock.assert_quiet();
}

#[test]
fn a_reservation_that_has_disappeared_is_told() {
    let mock = FabricManager::start();
    let cluster = cluster("1024-1026", &mock, "");
    for job in ["1", "2"] {
        cluster.reserve(job, "n[1-2]").done();
    }
    mock.release("alpha-1").unwrap();
    let warning = "warning: job 1: its reservation is not at the fabric manager any more: ";
    cluster.cxi("job sweep -- echo 1 2").failed(8, warning);
    // The job goes on, and ends as others do.
    cluster.cxi("job release 1").done();
    let said = cluster.cxi("job sweep -- echo 2");
    assert_eq!((said.code, said.err.as_str()), (8, ""));
}

#[test]
fn a_bad_record_of_one_job_keeps_no_reservation_of_another() {
    let mock = FabricManager::start();
    let cluster = cluster("1024-1026", &mock, "");
    cluster.reserve("1", "n[1-2]").done();
    fs::write(cluster.path().join("decisions/running/1/reservation.json"), "{").unwrap();
    mock.reserve("alpha-2", 1).unwrap();
    cluster.cxi("job sweep -- echo 1").mentions(8, "reservation.json");
    let left: Vec<String> = mock.state().jobs.into_keys().collect();
    assert_eq!(left, ["alpha-1"]);
}

#[test]
fn a_job_without_a_reservation_starts_unless_it_must_have_one() {
    let mock = FabricManager::start();
    let cluster = cluster("1024-1025", &mock, "");
    let node = cluster.node("n1");
    let full = || {
        let fault = Fault::status(507).on(Endpoint::CreateJob);
        mock.inject(fault.times(1));
    };
    full();
    let reason = "cannot reserve 4 multicast trees for job 1: the answer is 507";
    let said = cluster.reserve("1", "n[1-2]");
    let warning = format!("warning: the job starts without hardware collectives: {reason}");
    said.failed(0, &warning);
    node.prolog("1").done();
    // It inherits nothing from an outer job.
    let lines = of_collectives(&node, "1", &[]);
    assert!(lines.contains(&"unset FI_CXI_COLL_JOB_ID".to_owned()) && set(&lines) == 0);

    cluster.configure("[collectives]\ntrees = 4\n");
    let warning = "collectives: cannot use the fabric manager: it has no address: expected the";
    cluster.reserve("2", "n[1-2]").mentions(0, warning);

    configure(&cluster, &mock, "required = true\n");
    cluster.cxi("job release 2").done();
    for node in ["n1", "n2"] {
        cluster.cxi(&["job", "confirm", "2", "--node", node]).done();
    }
    full();
    let said = cluster.reserve("3", "n[1-2]");
    said.failed(7, "error: cannot reserve 4");
    // No node has started the job, so none must confirm.
    assert_eq!(cluster.cxi("job release 3").code, 8);
    cluster.reserve("4", "n[1-2]").done();
}

/// Slurm may run a prolog again.
#[test]
fn a_job_that_is_reserved_again_keeps_what_it_has() {
    let mock = FabricManager::start();
    let cluster = cluster("1024", &mock, "required = true\n");
    let node = cluster.node("n1");
    cluster.reserve("1", "n[1-2]").done();
    node.prolog("1").done();
    let before = of_collectives(&node, "1", &[]);
    assert!(set(&before) > 0);
    mock.inject(Fault::status(400).on(Endpoint::GetJob).times(1));
    let said = cluster.reserve("1", "n[1-2]");
    let warning = "warning: job 1 keeps the reservation that it has: cannot reserve 4";
    said.failed(0, warning);
    node.prolog("1").done();
    assert_eq!(of_collectives(&node, "1", &[]), before);
}

#[test]
fn nodes_wait_until_it_is_known_whether_there_is_a_reservation() {
    let mock = FabricManager::start();
    let cluster = cluster("1024", &mock, "");
    let node = cluster.node("n1");
    cluster.reserve("1", "n[1-2]").done();
    // Simulate that the controller was killed in between.
    let file = cluster.path().join("decisions/running/1/reservation.json");
    fs::remove_file(file).unwrap();
    thread::scope(|scope| {
        let prolog = scope.spawn(|| node.prolog("1"));
        cluster.reserve("1", "n[1-2]").done();
        prolog.join().unwrap().done();
    });
    assert!(set(&of_collectives(&node, "1", &[])) > 0);
}

#[test]
fn what_cannot_be_released_is_for_the_sweep() {
    let mock = FabricManager::start();
    let cluster = cluster("1024-1027", &mock, "");
    let refuse = || {
        mock.inject(Fault::status(400).on(Endpoint::DeleteJob).times(1));
    };
    for job in ["1", "2", "3"] {
        cluster.reserve(job, "n[1-2]").done();
    }
    let told = |said: common::Said, start: &str| {
        said.failed(0, &format!("warning: cannot {start}"));
        said.mentions(0, "; the reservation is left until the next sweep\n");
    };
    refuse();
    let said = cluster.cxi("job release 1");
    told(said, "release the reservation of job 1: ");
    // The scheduler has restarted and still knows job 3.
    let sweep = "job sweep -- echo 3";
    mock.inject(Fault::status(400).on(Endpoint::ListJobs).times(1));
    told(cluster.cxi(sweep), "list the reservations of alpha: ");
    assert_eq!(mock.state().jobs.len(), 3);
    refuse();
    let warning = "warning: cannot release the reservation of job ";
    cluster.cxi(sweep).failed(8, warning);
    cluster.cxi(sweep);
    let left: Vec<String> = mock.state().jobs.into_keys().collect();
    assert_eq!(left, ["alpha-3"]);
}
