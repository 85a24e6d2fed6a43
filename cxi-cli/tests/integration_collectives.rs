//! Hardware collectives in the scripts for Slurm, on a mock fabric manager.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use common::site::Site;
use common::slurm::{site_of_slurm, slurm_node};
use cxi_fabric_manager::{Endpoint, Fault, MockFabricManager};

/// A site whose jobs of two nodes and more have collectives, with more settings.
fn site(manager: &MockFabricManager, more: &str) -> Site {
    let site = site_of_slurm();
    let path = site.directory.path().display();
    fs::create_dir(site.path("auth")).unwrap();
    for (name, text) in [
        ("endpoint", manager.token_url().as_str()),
        ("client-id", "wlm"),
        ("client-secret", "mock-secret"),
    ] {
        fs::write(site.path("auth").join(name), text).unwrap();
    }
    let settings = format!(
        "CXI_FABRIC_MANAGER={}\nCXI_CLUSTER=alpha\ntrees=4\nnodes=2\ndirectory={path}/reserved\n\
         here={path}/here\naccess='--auth-dir {path}/auth --certificate no --deadline 2s'\n{more}",
        manager.url()
    );
    fs::write(site.path("collectives"), settings).unwrap();
    site
}

/// The permissions of a file, if it is there.
fn mode(site: &Site, name: &str) -> Option<u32> {
    let file = fs::metadata(site.path(name)).ok()?;
    Some(file.permissions().mode() & 0o777)
}

fn jobs(manager: &MockFabricManager) -> Vec<String> {
    manager.state().jobs.into_keys().collect()
}

#[test]
fn a_job_of_many_nodes_has_trees_from_its_prolog_to_its_end() {
    let manager = MockFabricManager::start().unwrap();
    let site = site(&manager, "");
    let node = slurm_node(&site, "n1");
    node.run("prolog-slurmctld.sh", &[]).done();
    assert_eq!(jobs(&manager), ["alpha-4711"]);
    // The session token is nobody else's.
    assert_eq!(mode(&site, "reserved/4711"), Some(0o600));
    node.run("prolog.sh", &[]).done();
    assert_eq!(mode(&site, "here/4711"), Some(0o600));
    let environment = node.run("task-prolog.sh", &[("SLURM_STEP_ID", "3")]).done();
    let told: Vec<&str> = environment
        .lines()
        .filter_map(|line| line.strip_prefix("export FI_CXI_"))
        .collect();
    for told_one in [
        "COLL_JOB_ID=alpha-4711",
        "COLL_JOB_STEP_ID=3",
        &format!("COLL_FABRIC_MGR_URL={}", manager.multicasts_url()),
        "HWCOLL_ADDRS_PER_JOB=4",
        "HWCOLL_MIN_NODES=2",
    ] {
        assert!(told.contains(&told_one), "{told_one}: {environment}");
    }
    assert!(!environment.contains('\''), "{environment}");

    node.run("epilog.sh", &[]).done();
    assert_eq!(mode(&site, "here/4711"), None);
    node.run("epilog-slurmctld.sh", &[]).done();
    assert_eq!(
        (jobs(&manager).len(), mode(&site, "reserved/4711")),
        (0, None)
    );
    manager.assert_quiet();
}

#[test]
fn a_job_starts_without_trees_unless_it_must_have_them() {
    let manager = MockFabricManager::start().unwrap();
    let full = || manager.inject(Fault::status(507).on(Endpoint::CreateJob));
    let site = site(&manager, "");
    let node = slurm_node(&site, "n1");
    full();
    node.run("prolog-slurmctld.sh", &[]).done();
    node.run("prolog.sh", &[]).done();
    let environment = node.run("task-prolog.sh", &[("SLURM_STEP_ID", "0")]).done();
    assert!(!environment.contains("FI_CXI_"), "{environment}");
    let updates = fs::read_to_string(site.path("updates")).unwrap();
    let told =
        "JobId=4711 AdminComment=slingshot: warning: the job starts without hardware collectives: ";
    assert!(updates.starts_with(told), "{updates}");

    let strict = self::site(&manager, "required=--required\n");
    full();
    let said = slurm_node(&strict, "n1").run("prolog-slurmctld.sh", &[]);
    assert_eq!(said.code, 7);

    let small = self::site(&manager, "nodes=3\nrequired=--required\n");
    slurm_node(&small, "n1")
        .run("prolog-slurmctld.sh", &[])
        .done();
    assert!(jobs(&manager).is_empty());
}

#[test]
fn reservations_of_jobs_that_ended_unseen_are_swept() {
    let manager = MockFabricManager::start().unwrap();
    let site = site(&manager, "");
    let node = slurm_node(&site, "n1");
    // Slurm has 4712 alone.
    for job in ["4711", "4712"] {
        node.run("prolog-slurmctld.sh", &[("SLURM_JOB_ID", job)])
            .done();
    }
    site.run("slurmctld-start.sh", &[], &[]);
    assert_eq!(jobs(&manager), ["alpha-4712"]);
}
