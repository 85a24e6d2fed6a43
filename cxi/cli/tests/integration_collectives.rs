//! Hardware collectives in the scripts for Slurm, on a mock fabric manager.

mod common;

use std::fs;
use std::io::Write as _;
use std::time::{Duration, Instant};

use common::assert_contains;
use common::site::Site;
use common::slurm::{site_of_slurm, slurm_node};
use cxi_fabric_manager::model::TreeRequest;
use cxi_fabric_manager::{Delivery, Endpoint, Fault};
use cxi_site::collectives::Certificate;
use cxi_site::fabric::{Http, HttpRequest, HttpTransport as _};
use cxi_test_kit::FabricManager;

/// A site whose jobs with two or more nodes have collectives, with additional settings.
fn site(mock: &FabricManager, more: &str) -> Site {
    let site = site_of_slurm();
    let file = fs::OpenOptions::new().append(true).open(site.path("cxi.toml"));
    let mut file = file.unwrap();
    let manager = mock.settings("1s");
    write!(file, "[collectives]\ntrees = 4\n{more}{manager}").unwrap();
    site
}

fn jobs(mock: &FabricManager) -> Vec<String> {
    mock.state().jobs.into_keys().collect()
}

#[test]
fn a_job_of_many_nodes_has_trees_from_its_prolog_to_its_end() {
    let mock = FabricManager::start();
    let site = site(&mock, "");
    let node = slurm_node(&site, "n1");
    node.run("prolog-slurmctld.sh", &[]).done();
    assert_eq!(jobs(&mock), ["alpha-4711"]);
    node.run("prolog.sh", &[]).done();
    let environment = node.run("task-prolog.sh", &[("SLURM_STEP_ID", "3")]).done();
    for variable in [
        "COLL_JOB_ID=alpha-4711",
        "COLL_JOB_STEP_ID=3",
        &format!("COLL_FABRIC_MGR_URL={}", mock.multicasts_url()),
        "HWCOLL_ADDRS_PER_JOB=4",
        "HWCOLL_MIN_NODES=2",
    ] {
        assert_contains(&environment, &format!("export FI_CXI_{variable}\n"));
    }
    assert!(!environment.contains('\''), "{environment}");

    node.run("epilog.sh", &[]).done();
    node.run("epilog-slurmctld.sh", &[]).done();
    mock.assert_quiet();
}

/// Creates a tree as libfabric does, with a task's environment.
fn make_tree(environment: &str, step: &str) {
    let get = |name: &str| {
        let start = format!("export FI_CXI_COLL_{name}=");
        let mut values = environment.lines().filter_map(|line| line.strip_prefix(&start));
        values.next().unwrap().to_owned()
    };
    let body = TreeRequest::of_libfabric(&get("JOB_ID"), step, &[0x14433, 0x14434], 1024);
    let (url, body) = (get("FABRIC_MGR_URL"), serde_json::to_string(&body).unwrap());
    let bearer = format!("Bearer {}", get("MCAST_TOKEN"));
    let request = HttpRequest::post(&url, Some(&bearer), &body);
    let http = Http::new(&Certificate::Unverified).unwrap();
    let made = http.send(&request, Duration::from_secs(5)).unwrap();
    assert_eq!(made.status, 200);
}

#[test]
fn the_trees_of_a_step_are_freed_when_it_has_ended() {
    let mock = FabricManager::start();
    let site = site(&mock, "");
    let node = slurm_node(&site, "n1");
    node.run("prolog-slurmctld.sh", &[]).done();
    node.run("prolog.sh", &[]).done();
    let trees = || mock.state().roots.len();
    for step in ["0", "1"] {
        let environment = node.run("task-prolog.sh", &[("SLURM_STEP_ID", step)]).done();
        make_tree(&environment, step);
    }
    let end = |step, task| {
        let variables = [("SLURM_STEP_ID", step), ("SLURM_PROCID", task)];
        node.run("task-epilog.sh", &variables).done();
    };
    end("0", "1");
    assert_eq!(trees(), 2);
    end("0", "0");
    assert_eq!(trees(), 1);
    end("1", "0");
    assert_eq!(trees(), 0);
    // A job without a reservation or a record has no trees to free.
    node.run("task-epilog.sh", &[("SLURM_JOB_ID", "4712")]).done();
}

#[test]
fn a_fabric_manager_that_is_silent_delays_the_start_of_a_job_by_a_set_time() {
    let mock = FabricManager::start();
    let site = site(&mock, "wait = \"200ms\"\n");
    mock.inject(Fault::from(Delivery::Silence));
    let start = Instant::now();
    let node = slurm_node(&site, "n1");
    node.run("prolog-slurmctld.sh", &[]).done();
    assert!(start.elapsed() < Duration::from_secs(10), "{start:?}");
    let updates = fs::read_to_string(site.path("updates")).unwrap();
    assert_contains(&updates, "without hardware collectives: ");
    assert_contains(&updates, ": gave up after 200ms: no ");
    node.run("prolog.sh", &[]).done();
}

#[test]
fn a_job_starts_without_trees_unless_it_must_have_them() {
    let mock = FabricManager::start();
    let full = || {
        let fault = Fault::status(507).on(Endpoint::CreateJob);
        mock.inject(fault.times(1));
    };
    let goes_on = site(&mock, "");
    let node = slurm_node(&goes_on, "n1");
    full();
    node.run("prolog-slurmctld.sh", &[]).done();
    node.run("prolog.sh", &[]).done();
    let environment = node.run("task-prolog.sh", &[]).done();
    assert!(!environment.contains("export FI_CXI_"), "{environment}");
    let updates = fs::read_to_string(goes_on.path("updates")).unwrap();
    let told =
        "JobId=4711 AdminComment=slingshot: warning: the job starts without hardware collectives: ";
    assert!(updates.starts_with(told), "{updates}");

    let strict = site(&mock, "required = true\n");
    full();
    let said = slurm_node(&strict, "n1").run("prolog-slurmctld.sh", &[]);
    assert_eq!(said.code, 7);
}

#[test]
fn reservations_of_jobs_that_ended_unseen_are_swept() {
    let mock = FabricManager::start();
    let site = site(&mock, "");
    let node = slurm_node(&site, "n1");
    // Slurm has only job 4712.
    for job in ["4711", "4712"] {
        node.run("prolog-slurmctld.sh", &[("SLURM_JOB_ID", job)]).done();
    }
    site.run("sweep.sh", &[], &[]);
    assert_eq!(jobs(&mock), ["alpha-4712"]);
}
