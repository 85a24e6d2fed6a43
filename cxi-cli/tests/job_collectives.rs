//! Hardware collectives of jobs with a record, on a mock fabric manager.

mod common;

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use common::cluster::{Cluster, Node};
use common::fabric_manager::MockManager;
use cxi_fabric_manager::{Endpoint, Fault};

fn node(cluster: &Cluster, name: &str, job: &str, mock: &MockManager) -> Node {
    cluster.node_with(name, &format!("{job}{}", mock.settings()))
}

#[test]
fn a_job_has_a_reservation_from_its_prologs_to_its_epilogs() {
    let (cluster, mock) = (Cluster::new("1024"), MockManager::new());
    let nodes = ["n1", "n2"].map(|name| node(&cluster, name, "collectives = 4\n", &mock));
    cluster.reserve("7", "n[1-2]").done();
    let environments = nodes.each_ref().map(|node| {
        node.prolog("7").done();
        node.cxi(&["job", "env", "--job=7"]).done()
    });
    let [one, two] = &environments;
    let of_collectives = |text: &str| {
        let lines = text.lines().filter(|line| line.contains(" FI_CXI_"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(of_collectives(one), of_collectives(two));
    for line in [
        "export FI_CXI_HWCOLL_ADDRS_PER_JOB=4\n",
        "export FI_CXI_COLL_JOB_ID='alpha-7'\n",
        "unset FI_CXI_HWCOLL_MIN_NODES\n",
    ] {
        assert!(one.contains(line), "{one}");
    }
    assert_eq!(mock.manager.state().jobs["alpha-7"].limit, 4);

    // The session token is its user's, not in what everybody reads.
    let record = |name: &str| cluster.path().join("n1.toml.jobs").join(name);
    let secret = fs::metadata(record("7.secret")).unwrap();
    let owner = if nix::unistd::geteuid().is_root() {
        1000
    } else {
        nix::unistd::geteuid().as_raw()
    };
    assert_eq!(
        (secret.permissions().mode() & 0o777, secret.uid()),
        (0o600, owner)
    );
    let token = one
        .lines()
        .find(|line| line.contains("MCAST_TOKEN"))
        .unwrap();
    let token = token.split('\'').nth(1).unwrap();
    assert!(
        !fs::read_to_string(record("7.json"))
            .unwrap()
            .contains(token)
    );

    cluster.cxi(&["job", "release", "7"]).done();
    for node in &nodes {
        node.epilog("7").done();
    }
    mock.manager.assert_quiet();
    assert!(!record("7.secret").exists());
    cluster.reserve("8", "n1").done();
}

#[test]
fn a_job_without_a_reservation_starts_unless_it_must_have_one() {
    let (cluster, mock) = (Cluster::new("1024-1025"), MockManager::new());
    let goes_on = node(&cluster, "n1", "collectives = 4\n", &mock);
    let strict = "collectives = 4\ncollectives-required = true\n";
    let fails = node(&cluster, "n2", strict, &mock);
    let nowhere = cluster.node_with("n3", "collectives = 4\n");
    mock.manager
        .inject(Fault::status(507).on(Endpoint::CreateJob));
    cluster.reserve("1", "n[1-3]").done();
    let reason = "cannot reserve 4 multicast trees for job 1: the answer is 507";
    for (node, reason) in [
        (&goes_on, reason),
        (&nowhere, "no fabric manager is configured"),
    ] {
        let said = node.prolog("1");
        let warning = format!("warning: the job starts without hardware collectives: {reason}");
        assert!(
            said.code == 0 && said.err.starts_with(&warning),
            "{}",
            said.err
        );
        // Nothing that an outer job has is left for it.
        let environment = node.cxi(&["job", "env", "--job=1"]).done();
        assert!(
            environment.contains("unset FI_CXI_COLL_JOB_ID\n"),
            "{environment}"
        );
        node.epilog("1").done();
    }
    let said = fails.prolog("1");
    assert!(
        said.code == 7 && said.err.starts_with(&format!("error: {reason}")),
        "{}",
        said.err
    );
    assert_eq!(fails.services(), 0);
    mock.manager.assert_quiet();
}

#[test]
fn a_reservation_that_an_epilog_cannot_release_is_for_the_sweep() {
    let (cluster, mock) = (Cluster::new("1024"), MockManager::new());
    let node = node(&cluster, "n1", "collectives = 4\n", &mock);
    cluster.reserve("1", "n1").done();
    node.prolog("1").done();
    mock.manager
        .inject(Fault::status(400).on(Endpoint::DeleteJob).times(1));
    let said = node.epilog("1");
    assert_eq!(said.code, 0);
    let warning = "warning: cannot release the reservation of job 1: ";
    assert!(said.err.starts_with(warning), "{}", said.err);
    let hint = "; cxi collectives sweep releases what is left\n";
    assert!(said.err.ends_with(hint), "{}", said.err);
    assert_eq!(
        node.cxi(&["collectives", "sweep", "--none-live"]).done(),
        "Released the reservation of job 1\n"
    );
    mock.manager.assert_quiet();
}

/// A clean-up finishes what an epilog began, with the reservation.
#[test]
fn a_clean_up_releases_too() {
    let (cluster, mock) = (Cluster::new("1024"), MockManager::new());
    let node = node(&cluster, "n1", "collectives = 1\n", &mock);
    cluster.reserve("1", "n1").done();
    node.prolog("1").done();
    let epilog = ["job", "epilog", "--job=1", "--node=n1"];
    assert_eq!(node.faulty("SVC_DESTROY:EBUSY", &epilog).code, 4);
    assert!(mock.manager.quiet().is_err());
    cluster.cxi(&["job", "release", "1"]).done();
    node.clean().done();
    mock.manager.assert_quiet();
}
